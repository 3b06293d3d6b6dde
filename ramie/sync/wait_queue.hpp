// The waiters of a primitive, and the number that is its state: the common half of semaphore, latch, barrier, event,
// wait_group, once_flag and future.
//
//  Q1 The primitive's state is the number and the list; both belong to the holder of the number's lock (word_lock.hpp).
//  Q2 A waiter arms its wait, links its node and gives the lock back, in this order, all under the lock; then it
//     suspends.
//  Q3 A waker, under the lock, unlinks nodes from the front and claims their waits. A wait that cannot be claimed has
//     timed out or was cancelled; its node is dropped, and the waker takes the next: nothing is handed to a dead wait.
//  Q4 After it gave the lock back, the waker resumes the claimed waiters. It touches nothing but their nodes, which
//     live until then because a claimed wait cannot end: the primitive may be gone as soon as the first waiter runs.
//  Q5 A waiter that was not woken by a waker takes the lock and unlinks its node, if Q3 has not. So no waker looks at
//     it afterwards.
//
// Several waits are held at once by claim_all (latch, wait_group, event, barrier, once_flag, shared_state), by
// semaphore::release(n), shared_mutex, and condition_variable::notify_all. Why no such holder waits for another one:
//  H1 All waits that a holder has come from one list, and were claimed under its lock. Each is published in that list
//     alone, and was unlinked before it was claimed. So no other waker can reach it, and two holders never want the same
//     wait. (The wait of a select is in several lists: H5.)
//  H2 Besides wakers, only timers and inspectors look at such a wait. A timer ends it in one step and holds nothing.
//  H3 An inspector (stop requests, shutdown, dumps) holds one wait at a time, and only to look at its occupant and its
//     stack. Meanwhile it claims nothing and takes no primitive's lock. So an inspector that holds a wait does not wait
//     for any holder.
//  H4 Between the claims and the wake-ups, a holder only unlocks. Making a fiber ready may lock a scheduler's queue; the
//     holder of that lock claims nothing.
//  H5 The wait of a select is in the lists of all its cases, so another waker may want it, too. Its holder therefore
//     waits for nothing until it has resumed it: it claims no other wait meanwhile, as in channel/core.hpp, C7. So each
//     is resumed under the lock, before the next is claimed; only if its node was the last of the list, and nothing is
//     left to claim, when the lock was given back (Q4). The primitive outlives a waiter that is resumed under the lock:
//     another node is still in the list, and its owner cannot return before it has been claimed or has taken the lock.
//     A holder of waits of H1 may wait for the holder of a select's, which waits for none; so there is no circle.
// So a holder of several waits can only be waiting for an inspector that holds one, and that inspector waits for none.
// A mutex, the answer to an actor's request and a channel's counterpart hold one wait, and meanwhile wait for none.
#pragma once

#include <ramie/sync/word_lock.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/ready_point.hpp>
#include <ramie/task/wait.hpp>
#include <ramie/task/wait_list.hpp>

#include <cstdint>

namespace ramie::detail {

struct queued_wait : wait_node {
  std::uint64_t tag = 0;     // for the primitive to use
  bool in_a_select = false;  // H5
  claimed_wait claimed;      // written by the one that has won the wait
  queued_wait* next_claimed = nullptr;
};

/// Waits that were claimed under a lock, to be woken when it was given back (Q4).
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

/// For select: what a wait for a primitive, a future or a fiber is made of. Defined in channel/on_ready.hpp.
struct waitable_access;

class wait_queue : public word_lock {
 public:
  using word_lock::word_lock;

  // Under the lock.
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] queued_wait* front() const noexcept { return list_.front(); }
  void push_back(queued_wait& n) noexcept { list_.push_back(n); }
  void remove(queued_wait& n) noexcept { list_.remove(n); }

  /// Q3, for the first waiter, of which there is one. False if its wait was over.
  RAMIE_ALWAYS_INLINE bool claim_front(claimed_waits& into) noexcept {
    queued_wait* n = list_.pop_front();
    claimed_wait won = claim(n->waiter);
    if (!won) return false;
    n->claimed = won;
    if (n->in_a_select && !list_.empty() && !RAMIE_PLANT(select_held_beside_others)) [[unlikely]]
      won.go_on();  // H5
    else into.add(*n);
    return true;
  }
  /// Q3, for the first waiter that can be claimed. False if there is none.
  RAMIE_ALWAYS_INLINE bool claim_first(claimed_waits& into) noexcept {
    while (!list_.empty())
      if (claim_front(into)) return true;
    return false;
  }
  void claim_all(claimed_waits& into) noexcept {
    while (claim_first(into)) {
    }
  }

  /// Q2, with the lock held, which is given back with `value`. Returns when woken, or what `again()` has done, which
  /// begins anew (task/clean_up.hpp). Throws `cancelled`, resource_error.
  template <class Again>
  RAMIE_ALWAYS_INLINE void unlock_and_wait(std::uint64_t value, const wait_site& site, Again again) {
    queued_wait node;
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
      begin_again(again);
    }
  }

  /// The same until a deadline: false if that came first.
  template <class Again>
  bool unlock_and_wait_until(std::uint64_t value, const wait_site& site, steady::time_point deadline, Again again) {
    const wake_reason why = unlock_and_wait_until(value, site, deadline);
    return why == wake_reason::cancelled ? begin_again(again) : why == wake_reason::event;
  }

 private:
  wake_reason unlock_and_wait_until(std::uint64_t value, const wait_site& site, steady::time_point deadline);
  /// Q5.
  void give_up(queued_wait& node) noexcept;

  wait_list<queued_wait> list_;
};

}  // namespace ramie::detail
