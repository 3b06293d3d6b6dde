// A channel, apart from the type of its elements: a lock, and the waiters at each end.
//
//  C1 All fields are guarded by the lock; counts are atomics so that a select may glance at them without it.
//  C2 Receivers wait only while nothing is buffered, senders only while the buffer is full, and there are no waiters
//     once the channel is closed. So there are never both waiting receivers and something they could have.
//  C3 A caller that finds a counterpart waiting takes its operation out of the list and claims its wait. If the claim
//     fails, the counterpart has timed out, was cancelled or (a select) was served elsewhere: it tries the next one.
//  C4 The caller hands the element over, writes the outcome, unlocks, and only then wakes the counterpart. From then on
//     it touches neither the operation nor the channel: the counterpart may destroy both.
//  C5 A waiter that resumes for another reason than an event takes its operation out itself, under the lock.
//  C6 If moving an element throws, the claimed counterpart is told to `retry`: it begins again as if it had just come,
//     and the exception leaves the call that was moving. An element is always in exactly one place.
//  C7 close() ends many waits, and holds at most one of them at a time: a select may be in line here twice, and the
//     closer of another channel may want the same waits in another order. A thread that holds one wait and waits for
//     another could wait forever, for the other may be held by itself, or by such a thread. So each waiter is resumed
//     before the next is claimed, while close() still has the lock. The channel outlives that: another operation is
//     still in line, and before its owner returns, either close() claims it or its owner takes it out, for which it
//     needs the lock. Only the waiter of the last operation is resumed after the lock was given back (C4).
//  C8 A select with `otherwise` must not report "nothing ready" if one of its channels was ready at every moment. It
//     reads all counts twice, without locks. Each count carries the number of its increases (tally), so equal numbers
//     mean that no count has changed in between, and all were seen at one instant: the one between the two passes. Where
//     memory is weak, loads return old values, so counts are stored with release and loaded with acquire: a pass that saw
//     an element gone from one channel sees those that its receiver, or the sender of the request to receive, put elsewhere before. For
//     this no operation may pass through a state that looks less ready than the states before and after it: a receiver
//     that frees a place for a waiting sender leaves `size` as it is.
//  C9 The buffer of an unbounded channel grows, under the lock, when a sender finds all its places taken. Selects glance
//     at `capacity`, which never changes, and not at `places`. So no sender ever waits, and a full channel costs the
//     same as before: both are looked at only where `size` has reached `places`.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/queue/adaptive_lock.hpp>
#include <ramie/task/wait_list.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace ramie {

/// The outcome of a channel operation.
enum class channel_status : std::uint8_t {
  ok,
  closed,   // the channel is closed (receiving: and drained)
  full,     // try_send: no room, and no waiting receiver
  empty,    // try_recv: nothing buffered, and no waiting sender
  timeout,  // a timed call ran out of time
};

/// A moment's view of a channel, for debugging and metrics.
struct channel_statistics {
  std::size_t length;             // elements buffered
  std::size_t waiting_senders;    // may include some that are just giving up
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

/// A count, and how often it was increased (C8). Written under the lock; read without it as a glance.
class tally {
 public:
  static constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] RAMIE_ALWAYS_INLINE std::size_t count() const noexcept {
    return static_cast<std::uint32_t>(both_.load(std::memory_order_relaxed));
  }
  RAMIE_ALWAYS_INLINE void increase() noexcept { set(both_.load(std::memory_order_relaxed) + (one_increase | 1)); }
  RAMIE_ALWAYS_INLINE void decrease() noexcept { set(both_.load(std::memory_order_relaxed) - 1); }
  /// The count; adds the number of increases to `increases`. Acquire: what is read later was not read before, and is
  /// not older than what led to this count.
  [[nodiscard]] std::size_t count(std::uint64_t& increases) const noexcept {
    const std::uint64_t both = both_.load(std::memory_order_acquire);
    increases += both >> 32;
    return static_cast<std::uint32_t>(both);
  }

 private:
  static constexpr std::uint64_t one_increase = std::uint64_t{1} << 32;
  // Release: a thread that sees that this count fell sees also what had been increased elsewhere before.
  RAMIE_ALWAYS_INLINE void set(std::uint64_t both) noexcept { both_.store(both, std::memory_order_release); }
  atomic<std::uint64_t> both_{0};
};

/// Operations at one end, oldest first.
class waiting_line {
 public:
  [[nodiscard]] std::size_t count() const noexcept { return count_.count(); }
  [[nodiscard]] std::size_t count(std::uint64_t& increases) const noexcept { return count_.count(increases); }
  RAMIE_ALWAYS_INLINE void add(operation& o) noexcept {
    line_.push_back(o);
    count_.increase();
  }
  RAMIE_ALWAYS_INLINE void remove(operation& o) noexcept {
    if (!o.linked) return;
    line_.remove(o);
    count_.decrease();
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
  [[nodiscard]] bool empty() const noexcept { return line_.empty(); }
  /// Is there a waiter but `self`, which is no counterpart of its own?
  [[nodiscard]] bool has_other_than(const stack* self) const noexcept;

 private:
  wait_list<operation> line_;
  tally count_;
};

class channel_core {
 public:
  explicit channel_core(std::size_t most) noexcept : capacity{most}, places{most} {}
  /// Of an unbounded channel: without places at first.
  channel_core() noexcept : capacity{tally::most}, places{0} {}
  channel_core(const channel_core&) = delete;
  channel_core& operator=(const channel_core&) = delete;
  /// Ends the process if there are waiters: they would have no channel to come back to.
  ~channel_core();

  void close() noexcept;
  /// C5.
  void leave(waiting_line& line, operation& mine) noexcept;

  /// Might a receiver, or a sender, get through at once? A glance, without the lock.
  [[nodiscard]] bool may_receive() const noexcept {
    return size.count() != 0 || senders.count() != 0 || closed.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool may_send() const noexcept {
    return size.count() < capacity || receivers.count() != 0 || closed.load(std::memory_order_relaxed);
  }
  /// The same for C8: adds the increases of both counts, so each is looked at.
  [[nodiscard]] bool may_receive(std::uint64_t& increases) const noexcept {
    const bool filled = size.count(increases) != 0;
    const bool offered = senders.count(increases) != 0;
    return filled || offered || closed.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool may_send(std::uint64_t& increases) const noexcept {
    const bool has_room = size.count(increases) < capacity;
    const bool wanted = receivers.count(increases) != 0;
    return has_room || wanted || closed.load(std::memory_order_acquire);
  }

  adaptive_lock lock;
  const std::size_t capacity;
  std::size_t places;  // of the buffer: the capacity, or, in an unbounded channel, as many as were needed so far
  tally size;
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
  /// Releases a lock that was held for nothing: the operation has to wait.
  RAMIE_ALWAYS_INLINE void unlock_for_nothing() noexcept {
    unlock();
    if (worker_base* me = current_worker(); me != nullptr) me->uncount_lock();
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
