// Who waits at a primitive, and the number that says what for: the common half of semaphore, latch, barrier, event,
// wait_group, once_flag and future.
//
//  Q1 All that is known about the primitive is in the number and the list, and both belong to the holder of the
//     number's lock (word_lock.hpp).
//  Q2 A waiter arms its wait, links its node and gives the lock back, in this order, all under the lock; then it
//     suspends.
//  Q3 A waker, under the lock, unlinks nodes from the front and claims their waits. One that cannot be claimed has
//     timed out or was cancelled; it is dropped, and the waker takes the next: nothing is handed to nobody.
//  Q4 After it gave the lock back the waker lets the claimed go on. It touches nothing but their nodes, which live until
//     then, because a claimed wait stands still: the primitive may be gone as soon as the first one goes on.
//  Q5 A waiter that was not woken by a waker takes the lock and unlinks its node, if Q3 has not. So no waker looks at it
//     afterwards.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/sched/wait.hpp>
#include <ramie/sched/wait_list.hpp>
#include <ramie/sync/word_lock.hpp>

#include <cstdint>

namespace ramie::detail {

struct queued_wait : wait_node {
  std::uint64_t tag = 0;  // the primitive's
  claimed_wait claimed;
  queued_wait* next_claimed = nullptr;
};

/// Waits that were claimed under a lock, to go on when it was given back (Q4).
class claimed_waits {
 public:
  claimed_waits() noexcept = default;
  claimed_waits(const claimed_waits&) = delete;
  claimed_waits& operator=(const claimed_waits&) = delete;
  RAMIE_ALWAYS_INLINE ~claimed_waits() {
    while (first_ != nullptr) {
      queued_wait* n = first_;
      first_ = n->next_claimed;
      claimed_wait c = n->claimed;
      c.go_on();
    }
  }
  RAMIE_ALWAYS_INLINE void add(queued_wait& n) noexcept {
    n.next_claimed = nullptr;
    *last_ = &n;
    last_ = &n.next_claimed;
  }

 private:
  queued_wait* first_ = nullptr;
  queued_wait** last_ = &first_;
};

[[noreturn]] RAMIE_COLD inline void end_by_cancellation() { throw cancelled{}; }

class wait_queue : public word_lock {
 public:
  using word_lock::word_lock;

  // Under the lock.
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] queued_wait* front() const noexcept { return list_.front(); }
  void push_back(queued_wait& n) noexcept { list_.push_back(n); }
  void remove(queued_wait& n) noexcept { list_.remove(n); }

  /// Q3, for the waiter in front, who is there. False if its wait was over.
  RAMIE_ALWAYS_INLINE bool claim_front(claimed_waits& into) noexcept {
    queued_wait* n = list_.pop_front();
    n->claimed = claim(n->waiter);
    if (n->claimed) into.add(*n);
    return static_cast<bool>(n->claimed);
  }
  /// Q3, for the first one who can be claimed. False if nobody waits.
  RAMIE_ALWAYS_INLINE bool claim_first(claimed_waits& into) noexcept {
    while (!list_.empty())
      if (claim_front(into)) return true;
    return false;
  }
  void claim_all(claimed_waits& into) noexcept {
    while (claim_first(into)) {
    }
  }

  /// Q2, with the lock held, which goes back with `value`. Returns when woken; throws `cancelled`, resource_error.
  RAMIE_ALWAYS_INLINE void unlock_and_wait(std::uint64_t value, const wait_site& site, std::uint64_t tag = 0) {
    queued_wait node;
    node.tag = tag;
    wait pause{wait::kind::cancellable, site, wait::wakers::under_one_lock};
    node.waiter = pause.ref();
    if (RAMIE_PLANT(word_lock_early)) unlock(value);
    list_.push_back(node);
    if (!RAMIE_PLANT(word_lock_early)) unlock(value);
    wake_reason why;
    try {
      why = pause.suspend();
    } catch (...) {
      give_up(node);
      throw;
    }
    if (why != wake_reason::event) [[unlikely]] {
      give_up(node);
      end_by_cancellation();
    }
  }

  /// The same until a deadline: false if that came first.
  bool unlock_and_wait_until(std::uint64_t value, const wait_site& site, steady::time_point deadline,
                             std::uint64_t tag = 0);

 private:
  /// Q5.
  void give_up(queued_wait& node) noexcept;

  wait_list<queued_wait> list_;
};

}  // namespace ramie::detail
