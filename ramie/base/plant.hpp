// Bugs that interleaving tests switch on, one at a time: each breaks one step of one protocol, at the place that says
// RAMIE_PLANT(name). In normal builds that is the constant `false` (base/atomic.hpp). A plant that no test finds would
// say that the tests are blind, so each has a test that fails unless it is found.
#pragma once

#include <cstdint>

namespace ramie::interleave {

enum class plant : std::uint8_t {
  none,
  spawn_deque_no_fence,        // spawn_deque.hpp: T4 left out
  fork_deque_no_fence,         // fork_deque.hpp: T4 left out
  promoted_job_unclaimed,      // fork_deque.cpp: R4, the worker runs the job though its parent has it
  alter_newest_unchecked,      // spawn_deque.hpp: P3 left out where the newest is altered
  biased_lock_no_fence,        // biased_lock.hpp: T3 left out
  adaptive_lock_no_fence,      // adaptive_lock.hpp: B2 without its fence
  adaptive_lock_slot_taken,    // adaptive_lock.hpp: a third worker owns it in a slot that is another's
  deprive_all_no_fence,        // adaptive_lock.hpp: C2 left out
  sleep_without_look,          // idle_set.hpp: S3 left out
  sleep_no_fence,              // idle_set.hpp: S2 left out
  injection_unannounced,       // idle_set.hpp: I3 and I4 before I1
  inbox_announced_early,       // inbox.hpp: B3 before B1
  waiter_woken_too_early,      // wait_word.hpp: W4 makes a fiber ready that is not parked yet
  parked_without_look,         // wait_word.hpp: W3 without its second look
  early_claim_no_fence,        // wait_word.hpp: W6 without its fence
  early_claim_settled_twice,   // wait_word.hpp: W6, the waker makes ready whom the destination makes ready too
  claimed_beside_inspector,    // wait_word.hpp: W7 does not look for inspectors
  held_wait_let_go_twice,      // wait_word.hpp: whoever meets `held` claims all the same
  cancelled_unfenced,          // wait_word.hpp: the canceller's, or W7's, fence left out
  join_unnoticed,              // worker.cpp: a fiber's end and a joiner's arrival miss each other
  timer_removed_unlocked,      // timer_queue.hpp: `remove` without the lock
  channel_unlocked_early,      // core.hpp: the lock goes back before the operation is in line
  select_without_second_look,  // select_case.hpp: S2 does not look again under the lock
  mail_unnoticed,              // cell.cpp: an actor goes to rest without a last look for mail
  room_counted_late,           // cell.cpp: a bounded mailbox lets a sender in before it counts the room
  mutex_unlock_unnoticed,      // mutex.cpp: M3 links the node though `locked` is off by now
  mutex_favour_unattended,     // mutex.cpp: a favour begins while somebody waits and nobody is on his way
  mutex_favour_no_fence,       // mutex.cpp: E2 without its fence
  word_lock_early,             // wait_queue.hpp: Q2, links its node after it gave the lock back
};

extern plant planted;

/// No runtime starts its monitor, which would find what a lost wake-up left behind.
extern bool unmonitored;

}  // namespace ramie::interleave
