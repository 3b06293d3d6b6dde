// Fork jobs of the fiber that a worker runs, oldest first. Only the running fiber pushes and takes back; other workers
// steal the oldest. The owner's side is in this header because it is inlined into the user's recursion: about ten
// instructions.
//
// The protocol is THE of Cilk-5 (M. Frigo, C. Leiserson, K. Randall, PLDI 1998) with an asymmetric fence:
//
//  Owner, fork                               Thief
//  F1 slots[bottom] = frame                  T1 take `thieves` (one thief at a time)
//  F2 bottom += 1 (release)                  T2 t = top; t < bottom? else nothing to steal
//  F3 compiler fence; attention? then        T3 top = t + 1
//     look for sleepers (fork_attention)     T4 heavy fence
//  Owner, join of the frame at b             T5 bottom > t, and no exceptions in flight?
//  J1 bottom = b (release)                      then slots[t] is the thief's,
//  J2 compiler fence                            else top = t and nothing was stolen
//  J3 top <= b? then the frame is the owner's
//     again, else take `thieves` and look again  T6 release `thieves`
//
// J1..J3 against T3..T5 is Dekker's pattern: owner and thief cannot both take frame b. In doubt the owner takes the
// lock too, where top and bottom stand still. `top` may be one too high for a moment (T3 to T5): that only sends
// the owner into the lock. fork_join knows the slot it pushed at, so J1 needs no load of `bottom`: a chain of
// store-to-load forwards through it was the largest cost of the prototype. (Scopes load it, to write less.)
//
// F2 and T5 hand the frame over, by release and acquire. So do J1 and T5: if an older frame and a younger one are
// pushed while a thief is at T4, the thief may read the `bottom` that the younger one's join has stored. T2, T3 and J3
// order nothing: T2 is a glance, a thief that backs out has touched words only, and an owner that finds its frame
// stolen takes `thieves`, as the next thief does.
//
// What is forked while an exception unwinds the stack is clean-up (task/region.hpp); its frame does not say so, which
// would cost each fork an instruction. The exceptions in flight on the owner are at least as many as they were at the
// fork, as long as the frame is there; F2 or J1 publishes them. So no frame is stolen at any: the owner runs it, or
// promotes it.
//
// A frame knows its deque. When its fiber parks, all of its frames are *promoted* (sched/fork_jobs.cpp): their deque
// becomes `dead_forks`, whose top is above everything, so J3 fails and the join takes the slow path. Thus a fiber that
// resumes on another worker never touches the deque it left.
//
// `attention` is how sleeping workers learn of new jobs: the worker that raises the hint that one sleeps (idle_set.hpp)
// sets all `limit`s to null, so F3 fails and the owner wakes one. The same comparison catches a full deque.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/word.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/fork_frame.hpp>
#include <ramie/task/scheduling.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

using fork_slot = word<fork_frame*>;

/// The first bases of each worker: one pointer leads the code that is inlined into the user's to all that it needs.
struct fork_deque : worker_base {
  alignas(128) word<fork_slot*> bottom{nullptr};  // next free slot
  word<fork_slot*> top{nullptr};                  // oldest job not stolen
  word<fork_slot*> limit{nullptr};                // bottom may not pass it; null: attention
  fork_slot* base = nullptr;
  fork_slot* end = nullptr;
  spin_lock thieves;
};

/// The calling worker's, or null on a plain thread.
RAMIE_ALWAYS_INLINE fork_deque* current_forks() noexcept { return static_cast<fork_deque*>(current_worker()); }

/// Where promoted frames point: nothing can be taken back from it.
extern fork_deque dead_forks;
/// Where frames of plain threads point: always taken back, never stolen.
extern fork_deque thread_forks;
/// Where frames point on machines without asymmetric fences: joins need a full fence.
extern fork_deque fenced_forks;
/// Prepares these marks. Called by each runtime before it starts workers.
void init_fork_marks() noexcept;

/// J3 failed, or full fences are needed. True: the caller runs the frame. False: another worker runs it, or has run it;
/// then call wait_for_thief. Owner; does not suspend.
bool fork_take_back_slowly(fork_frame& f, fork_slot* b) noexcept;

/// Suspends until the thief has run the frame. `in_flight`: exceptions, where it was forked. Uninterruptible.
void wait_for_thief(fork_frame& f, std::uint32_t in_flight) noexcept;
/// The same where as many are in flight now. For joins.
void wait_for_thief(fork_frame& f) noexcept;

/// F1 to F3. Returns the slot for `fork_take_back`.
RAMIE_ALWAYS_INLINE fork_slot* fork_push(fork_deque& d, fork_frame& f, fork_frame::function run) noexcept {
  fork_slot* b = d.bottom.load_relaxed();
  f.state.store_relaxed(reinterpret_cast<std::uint64_t>(run));
  f.deque.store_relaxed(&d);
  b->store_relaxed(&f);
  d.bottom.publish(b + 1);
  order_words();
  if (d.limit.load_relaxed() <= b) [[unlikely]]
    fork_attention(d);
  return b;
}

/// Instead of fork_push, on a plain thread.
RAMIE_ALWAYS_INLINE fork_slot* fork_nowhere(fork_frame& f) noexcept {
  f.deque.store_relaxed(&thread_forks);
  return nullptr;  // as the `top` of thread_forks
}

/// J1, and what is between J1 and J2.
RAMIE_ALWAYS_INLINE void fork_lower(fork_deque& d, fork_slot* b) noexcept {
  if (RAMIE_PLANT(fork_join_unordered)) d.bottom.store_relaxed(b);
  else d.bottom.publish(b);
  order_words();
}

/// J1 to J3. True: run it. False: call wait_for_thief.
RAMIE_ALWAYS_INLINE bool fork_take_back(fork_frame& f, fork_slot* b) noexcept {
  fork_deque* d = f.deque.load_relaxed();  // not that of the fork, if the fiber suspended meanwhile
  fork_lower(*d, b);
  if (d->top.load_relaxed() <= b) [[likely]]
    return true;
  return fork_take_back_slowly(f, b);
}

/// T2 to T5, by the thief that has `thieves`. Null: there is nothing that may be stolen.
[[nodiscard]] fork_frame* fork_steal(fork_deque& victim) noexcept;

/// Is the frame the youngest job of the calling worker?
RAMIE_ALWAYS_INLINE bool fork_is_youngest(const fork_frame& f) noexcept {
  return current_forks()->bottom.load_relaxed()[-1].load_relaxed() == &f;
}

/// As fork_take_back for the youngest job of the calling fiber, or for one that was promoted. The address of the deque
/// is known before the frame's is, so J1 need not wait for that.
RAMIE_ALWAYS_INLINE bool fork_take_back_youngest(fork_frame& f) noexcept {
  fork_deque* d = current_forks();
  fork_slot* b = d->bottom.load_relaxed() - 1;
  if (f.deque.load_relaxed() == d) [[likely]] {
    fork_lower(*d, b);
    if (d->top.load_relaxed() <= b) [[likely]]
      return true;
  }
  return fork_take_back_slowly(f, b);
}

}  // namespace ramie::detail
