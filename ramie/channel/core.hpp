// What a channel is, apart from the type of its elements: a lock, and who waits at which end.
//
//  C1 All fields are guarded by the lock; counts are atomics so that a select may glance at them without it.
//  C2 Receivers wait only while nothing is buffered, senders only while the buffer is full, and nobody waits once the
//     channel is closed. So there are never both waiting receivers and something they could have.
//  C3 Whoever finds a counterpart waiting takes its operation out of the list and claims its wait. If the claim fails,
//     the counterpart has timed out, was cancelled or (a select) was served elsewhere: the next one is tried.
//  C4 It hands the element over, writes the outcome, unlocks, and only then lets the counterpart go on. From then on it touches
//     neither the operation nor the channel: the counterpart may destroy both.
//  C5 Somebody who goes on for another reason than an event takes its operation out itself, under the lock.
//  C6 If moving an element throws, the claimed counterpart is told to `retry`: it begins anew as if it had just come, and
//     the exception leaves whichever call was moving. An element is always in exactly one place.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/adaptive_lock.hpp>
#include <ramie/sched/wait_list.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie {

/// What became of a channel operation.
enum class channel_status : std::uint8_t {
  ok,
  closed,   // the channel is closed (receiving: and drained)
  full,     // try_send: no room, and nobody waits to receive
  empty,    // try_recv: nothing there, and nobody waits to send
  timeout,  // a timed call ran out of time
};

/// A moment's view of a channel, for debugging and metrics.
struct channel_statistics {
  std::size_t length;             // elements buffered
  std::size_t waiting_senders;    // may count some that are just giving up
  std::size_t waiting_receivers;  // likewise
};

namespace detail {

/// One party's wait at one end of one channel. Lives on its stack.
struct operation : wait_node {
  enum class outcome : std::uint8_t { pending, done, closed, retry };
  void* slot = nullptr;  // sender: its element; receiver: the optional to fill
  outcome result = outcome::pending;
  claimed_wait claimed;  // by the counterpart
};

/// Operations at one end, oldest first.
class waiting_line {
 public:
  [[nodiscard]] std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  RAMIE_ALWAYS_INLINE void add(operation& o) noexcept {
    line_.push_back(o);
    count_.store(count() + 1, std::memory_order_relaxed);
  }
  RAMIE_ALWAYS_INLINE void remove(operation& o) noexcept {
    if (!o.linked) return;
    line_.remove(o);
    count_.store(count() - 1, std::memory_order_relaxed);
  }
  /// C3: the oldest that can still be served, claimed; or null.
  RAMIE_ALWAYS_INLINE operation* claim_first() noexcept {
    while (operation* o = line_.front()) {
      remove(*o);
      o->claimed = claim(o->waiter);
      if (o->claimed) [[likely]]
        return o;
    }
    return nullptr;
  }
  /// Is there anybody but `self`, who is no counterpart of its own?
  [[nodiscard]] bool has_other_than(const stack* self) const noexcept;

 private:
  wait_list<operation> line_;
  atomic<std::size_t> count_{0};
};

class channel_core {
 public:
  explicit channel_core(std::size_t places) noexcept : capacity{places} {}
  channel_core(const channel_core&) = delete;
  channel_core& operator=(const channel_core&) = delete;
  /// Ends the process if somebody still waits: there would be no channel for them to come back to.
  ~channel_core();

  void close() noexcept;
  /// C5.
  void leave(waiting_line& line, operation& mine) noexcept;

  /// Might a receiver, or a sender, get through at once? A glance, without the lock.
  [[nodiscard]] bool may_receive() const noexcept {
    return size.load(std::memory_order_relaxed) != 0 || senders.count() != 0 || closed.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool may_send() const noexcept {
    return size.load(std::memory_order_relaxed) < capacity || receivers.count() != 0 ||
           closed.load(std::memory_order_relaxed);
  }
  RAMIE_ALWAYS_INLINE void set_size(std::size_t n) noexcept { size.store(n, std::memory_order_relaxed); }

  adaptive_lock lock;
  const std::size_t capacity;
  atomic<std::size_t> size{0};
  std::size_t head = 0;  // place of the oldest element
  atomic<bool> closed{false};
  waiting_line receivers;
  waiting_line senders;
};

/// Holds a channel's lock for a block, or until `unlock`.
class channel_guard {
 public:
  RAMIE_ALWAYS_INLINE explicit channel_guard(channel_core& c) noexcept : core_{&c} { c.lock.lock(); }
  channel_guard(const channel_guard&) = delete;
  channel_guard& operator=(const channel_guard&) = delete;
  RAMIE_ALWAYS_INLINE ~channel_guard() {
    if (core_ != nullptr) core_->lock.unlock();
  }
  RAMIE_ALWAYS_INLINE void unlock() noexcept {
    core_->lock.unlock();
    core_ = nullptr;
  }
  /// And it was held in vain: the operation has to wait.
  RAMIE_ALWAYS_INLINE void unlock_for_nothing() noexcept {
    unlock();
    if (fork_deque* me = current_forks(); me != nullptr) me->uncount_lock();
  }
  /// C4.
  RAMIE_ALWAYS_INLINE void unlock_and_release(operation* served) noexcept {
    unlock();
    if (served != nullptr) served->claimed.go_on();
  }

 private:
  channel_core* core_;
};

}  // namespace detail
}  // namespace ramie
