// Bugs that interleaving tests switch on, one at a time: each breaks one step of one protocol, at the place that says
// RAMIE_PLANT(name). In normal builds that is the constant `false` (base/atomic.hpp). A plant that no test finds would
// mean that the tests are blind, so each has a test that fails unless it is found.
#pragma once

#include <cstdint>

namespace ramie::interleave {

enum class plant : std::uint8_t {
  none,
  spawn_deque_no_fence,        // spawn_deque.hpp: T4 left out
  spawn_deque_empty_early,     // spawn_deque.hpp: P4 left out after P0
  fork_deque_no_fence,         // fork_deque.cpp: T4 left out
  fork_stolen_in_clean_up,     // fork_deque.cpp: T5 does not ask for exceptions in flight
  fork_join_unordered,         // fork_deque.hpp: J1 without its release
  promoted_job_unclaimed,      // fork_jobs.cpp: R4, the worker runs the job although its parent has it
  alter_newest_unchecked,      // spawn_deque.hpp: P3 left out where the newest is altered
  biased_lock_no_fence,        // biased_lock.hpp: T3 left out
  adaptive_lock_no_fence,      // adaptive_lock.hpp: B2 without its fence
  policy_wake_not_passed_on,   // placement.cpp: wake_for_policy is not called again by the worker that was woken
  adaptive_lock_second_owner,  // adaptive_lock.hpp: another worker than the first one owns it later
  deprive_all_no_fence,        // adaptive_lock.hpp: C2 left out
  sleep_without_look,          // idle_set.hpp: S3 left out
  sleep_no_fence,              // idle_set.hpp: S2 left out
  search_ends_unfenced,        // idle_set.hpp: R3 left out
  search_ends_unmarked,        // idle_set.hpp: R2 left out
  injection_unannounced,       // idle_set.hpp: I3 and I4 before I1
  inbox_announced_early,       // inbox.hpp: B3 before B1
  waiter_woken_too_early,      // wait_word.hpp: W4 makes a fiber ready that is not parked yet
  parked_no_fence,             // wait_word.hpp: W3 without its light fence
  parked_without_look,         // wait_word.hpp: W3 without its second look
  early_claim_no_fence,        // wait_word.hpp: W6 without its fence
  early_claim_settled_twice,   // wait_word.hpp: W6, the waker makes a waiter ready that the destination makes ready too
  claimed_beside_inspector,    // wait_word.hpp: W7 does not look for inspectors
  mark_outlives_epochs,        // wait_word.hpp: W8 left out
  held_wait_let_go_twice,      // wait_word.hpp: a waker that meets `held` claims all the same
  cancelled_unfenced,          // wait_word.hpp: the canceller's, or W7's, fence left out
  scope_child_of_nobody,       // scope.cpp: a child that is a fiber of its own has no parent
  claim_unordered,             // wait.cpp, W4: the order of what a waker hands over left out
  end_unordered,               // loop.cpp: that of a fiber's result, for its joiner
  waiter_unordered,            // mutex.cpp, M3: that of a node in the queue, for the next holder of `busy`
  mail_unordered,              // adaptive_lock.hpp, A5: that of what the lock guards
  strand_unlinked,             // strands.cpp: a strand is not in the list of those that run for its fiber
  call_left_early,             // cancellation.cpp: K1, a call ends while its waits are looked at
  deadline_moved_late,         // cancellation.cpp: K5, a deadline is moved that has passed
  pinned_strand_unlinked,      // strands.cpp: N4, a strand ends though a walk looks at it
  stopped_scope_forgotten,     // region.cpp: with one scope that has failed all of its owner's are forgotten
  scope_begins_again_late,     // scope.cpp: a join forgets failures when `cancel` may be under way again
  scope_child_unmarked,        // scope.cpp: it begins without being linked at its owner
  join_unnoticed,              // loop.cpp: a fiber's end and a joiner's arrival miss each other
  timer_heap_narrow,           // timer_queue.cpp: the way down passes over the last child
  timer_removed_unlocked,      // timer_queue.hpp: `remove` without the lock
  close_holds_two,             // core.hpp: C7, close claims the next wait before it releases the one before
  channel_unlocked_early,      // core.hpp: the lock is released before the operation is in line
  hang_up_kept,                // descriptor.hpp: N3, a hang-up stays although a call found nothing
  hang_up_drained,             // descriptor.hpp: N3, a short read counts after a hang-up was lowered
  short_read_drains,           // descriptor.hpp: N3, a short read of what is no TCP counts as the last
  room_is_kept,                // retry.hpp: a writer whose wait an edge has ended does not say that there is room
  accept_pause_drops_edge,     // listener.cpp: accept, cut off in its pause, leaves the backlog's edge taken
  io_select_without_second_look,  // net/select.hpp: R2 does not look again under the lock
  io_select_unwatched,            // net/select.hpp: R1, a descriptor that nobody watches counts as not ready
  io_select_drops_edge,           // net/select.hpp: R3, an edge is used up without a look
  io_select_passes_edge,          // net/select.hpp: R3, an edge is handed on without a look
  select_without_second_look,     // select_case.hpp: S2 does not look again under the lock
  otherwise_glances_once,         // select_case.hpp: S1, `otherwise` after one glance
  otherwise_counts_ignored,       // select_case.hpp: S1, `otherwise` although a count changed between the glances
  mail_unnoticed,                 // cell.cpp: an actor becomes idle without a last look for mail
  interrupt_unnoticed,            // cell.cpp: an actor becomes idle without a last look for interrupts
  room_counted_late,              // cell.cpp: a bounded mailbox admits a sender before it counts the room
  tie_told_twice,                 // ties.cpp: I7, both sides of a tie end it, and each tells
  notes_outlive_incarnations,     // ties.cpp: I7, what is told to one incarnation reaches the next
  ties_outlive_incarnations,      // incarnation.cpp: I6, a restart leaves all ties as they are
  links_spread_normal_ends,       // ties.cpp: a normal end kills linked actors, too
  links_have_a_direction,         // ties.cpp: only the side that made a link finds it again
  mail_lost_at_restart,           // incarnation.cpp: I8, mail that was taken out and not handled is dropped
  refused_still_counted,          // incarnation.cpp: I8, requests that are refused still count as waiting
  room_left_to_nobody,            // posting.cpp: a sender that did not need its room does not let the next one in
  gone_too_late,                  // incarnation.cpp: I6, ties are taken out before `gone` is marked
  groups_left_late,               // incarnation.cpp: I10 without a supervisor, names and groups go after links are told
  asker_told_early,               // cell.cpp: the request on which the handler failed is refused before the end
  pool_left_early,                // pool_core.cpp: L3, a child takes itself out of the list before it has ended
  pool_listed_early,              // pool_core.cpp: L1, a child is in the list before it is enlisted
  mutex_unlock_unnoticed,         // mutex.cpp: M3 links the node although `locked` is already clear
  mutex_woken_left_on,            // mutex.cpp: M7, one that was woken and ran out of time leaves `woken` on
  mutex_favour_unattended,        // mutex.cpp: a favour begins while a waiter is parked and no wake-up is under way
  mutex_favour_no_fence,          // mutex.cpp: E2 without its fence
  select_held_beside_others,      // wait_queue.hpp: H5, a select's wait is held while the next is claimed
  circles_unchecked,              // circles.cpp: C2 left out
  circles_of_old_edges,           // circles.cpp: C2 holds the fibers, but does not look at the edges again
  source_sleep_no_fence,          // event_source.hpp: E2 without its fence
  source_wake_no_fence,           // event_source.hpp: E3 without its fence
  source_role_kept,               // event_source.hpp: E1, the role is not released
  source_role_shared,             // event_source.hpp: E1, it is taken although another thread has it
  call_back_missed,         // monitor.cpp: a spare that retires clears its token after it said that it is off duty
  reserve_keeps_all,        // scheduler.cpp: V5, the reserve gives nothing away when the runtime is hogged no more
  reserve_leaves_as_spare,  // reserve.cpp: V5, it goes off duty although V6 has made it a spare
  monitor_ends_late,        // scheduler.cpp: it still calls back spares when they leave for good
  monitor_leaves_source,    // monitor.cpp: the last worker falls asleep while the monitor has the role of the event
                            // source (E6)
  source_left_alone,        // monitor.cpp: a spare goes off duty with the role of the event source, and nobody takes it
  sink_without_look,        // descriptor.cpp: N7, a sink is set although `ready` is
  generation_ignored,       // descriptor.cpp: N5, an event of the use before is taken for one of this
  record_freed_amid_call,   // descriptor.cpp: N4, the last call ends in one step and finishes in another
  active_refusal_freed,     // patterns/active.cpp: Y6, a note that was refused is freed although its stream has it
  word_lock_early,          // wait_queue.hpp: Q2, links its node after it released the lock
};

extern plant planted;

/// Runtimes start no monitor, which would repair what a lost wake-up left behind.
extern bool unmonitored;

}  // namespace ramie::interleave
