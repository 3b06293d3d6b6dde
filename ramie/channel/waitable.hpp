// The cases of a select that are not on channels: what has ended or was set, and permits. select_case.hpp has the steps
// S1 to S4 of a select, of which these are part just as channel cases are.
//
//  V1 Under the lock of the primitive the case looks once more, and either withdraws the select's wait and takes what it
//     came for, or puts a node in the list of the waiters, marked `in_a_select`. So nothing that is set, counted down or
//     released afterwards is missed.
//  V2 The waker that serves the node claims the wait under that lock, as that of any waiter (wait_queue.hpp, Q3, H5). A wait that
//     was won by another case cannot be claimed: then its node is dropped, and the next waiter is served.
//  V3 What is handed over with the claim (a permit, the reset of an automatic event) is taken off only if the claim
//     succeeds. So a permit goes to one waiter, and to a select only if no other case of it was served.
//  V4 A served case does not touch the primitive any more: it may be gone. The others take their nodes out, each under
//     its lock.
//  V5 A fiber and a scope's child have one word for their joiner, and an actor wakes its joiners without a claim: nothing is
//     handed over there. Such a case publishes the wait, and takes it back after any wake-up. A wake-up that comes late
//     finds the wait over (wait_word.hpp, W4). Having been woken for one of them, the select begins again at S1, where
//     it finds the case ready, for what has ended stays so.
#pragma once

#include <ramie/channel/select_case.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/fiber/scope_child.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// A case of any other kind than on a channel; the members as those of select_case.
class waitable_case {
 public:
  waitable_case(const waitable_case&) = default;
  waitable_case& operator=(const waitable_case&) = delete;
  [[nodiscard]] virtual bool may_be_ready() const noexcept = 0;
  /// A case that is briefly not ready may be seen as not ready by `otherwise`: there is no count of changes.
  [[nodiscard]] bool may_be_ready(std::uint64_t&) const noexcept { return may_be_ready(); }
  [[nodiscard]] virtual bool attempt() = 0;
  virtual select_case::step add(wait& pause) = 0;
  virtual bool take_out() noexcept = 0;
  /// Called once all cases have been taken out, if take_out() has said that this one was served. True: it was for
  /// nothing, and the select begins again. Throws what attempt() throws.
  [[nodiscard]] virtual bool must_retry() { return false; }

 protected:
  waitable_case() noexcept = default;
  ~waitable_case() = default;
};

/// A waiter of a wait_queue. What its number means:
enum class queue_rule : std::uint8_t {
  until_one,         // set, and stays so: event
  one_becomes_zero,  // set, until a waiter comes: automatic event
  until_zero,        // counted down: latch, wait_group
  one_less,          // permits: semaphore
  until_two,         // there: future
};

class queue_waitable : public waitable_case {
 public:
  queue_waitable(wait_queue& queue, queue_rule rule) noexcept : queue_{&queue}, rule_{rule} {}
  [[nodiscard]] bool may_be_ready() const noexcept override;
  [[nodiscard]] bool attempt() override;
  select_case::step add(wait& pause) override;
  bool take_out() noexcept override;

 protected:
  ~queue_waitable() = default;

 private:
  [[nodiscard]] bool is_ready(std::uint64_t value) const noexcept;
  [[nodiscard]] std::uint64_t after(std::uint64_t value) const noexcept;

  wait_queue* queue_;
  queue_rule rule_;
  bool in_line_ = false;
  queued_wait node_;
};

/// The end of a fiber.
class join_waitable : public waitable_case {
 public:
  /// Throws usage_error if `t` is null or the caller itself.
  explicit join_waitable(task* t) : task_{t} { check_join(t); }
  [[nodiscard]] bool may_be_ready() const noexcept override;
  [[nodiscard]] bool attempt() override { return may_be_ready(); }
  select_case::step add(wait& pause) override;
  bool take_out() noexcept override;

 protected:
  ~join_waitable() = default;

 private:
  task* task_;
  std::uint64_t published_ = 0;
};

/// The end of a scope's child.
class child_waitable : public waitable_case {
 public:
  explicit child_waitable(child_end& of) noexcept : end_{&of} {}
  [[nodiscard]] bool may_be_ready() const noexcept override { return end_->is_ready(); }
  [[nodiscard]] bool attempt() override { return end_->is_ready(); }
  select_case::step add(wait& pause) override;
  bool take_out() noexcept override;

 protected:
  ~child_waitable() = default;

 private:
  child_end* end_;
  std::uint64_t published_ = 0;
};

/// A case of either kind.
class mixed_case {
 public:
  mixed_case() noexcept = default;
  mixed_case(select_case* c) noexcept : on_channel_{c} {}
  mixed_case(waitable_case* c) noexcept : other_{c} {}
  [[nodiscard]] bool may_be_ready() const noexcept {
    return on_channel_ != nullptr ? on_channel_->may_be_ready() : other_->may_be_ready();
  }
  [[nodiscard]] bool may_be_ready(std::uint64_t& increases) const noexcept {
    return on_channel_ != nullptr ? on_channel_->may_be_ready(increases) : other_->may_be_ready();
  }
  [[nodiscard]] bool attempt() const { return on_channel_ != nullptr ? on_channel_->attempt() : other_->attempt(); }
  [[nodiscard]] select_case::step add(wait& pause) const {
    return on_channel_ != nullptr ? on_channel_->add(pause) : other_->add(pause);
  }
  [[nodiscard]] bool take_out() const noexcept {
    return on_channel_ != nullptr ? on_channel_->take_out() : other_->take_out();
  }
  [[nodiscard]] bool must_retry() const {
    return on_channel_ != nullptr ? on_channel_->must_retry() : other_->must_retry();
  }

 private:
  select_case* on_channel_ = nullptr;
  waitable_case* other_ = nullptr;
};

struct mixed_cases {
  const mixed_case* first;
  const mixed_case& operator[](std::size_t i) const noexcept { return first[i]; }
};
extern template std::size_t select_ready(mixed_cases&, std::size_t);
extern template std::size_t select_poll(mixed_cases&, std::size_t);
extern template std::size_t select_take_out(mixed_cases&, std::size_t) noexcept;
extern template select_case::step select_add(mixed_cases&, std::size_t, wait&, std::size_t&);

}  // namespace ramie::detail
