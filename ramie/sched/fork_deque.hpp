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
//     look who sleeps (fork_attention)       T4 heavy fence
//  Owner, join of the frame at b             T5 bottom > t? then slots[t] is the thief's,
//  J1 bottom = b                                else top = t and nothing was stolen
//  J2 compiler fence                         T6 release `thieves`
//  J3 top <= b? then the frame is the owner's
//     again, else take `thieves` and look again
//
// J1..J3 against T3..T5 is Dekker's pattern: owner and thief cannot both take frame b. In doubt both lose their way
// into the lock, where top and bottom stand still. `top` may be one too high for a moment (T3 to T5): that only sends
// the owner into the lock. fork_join knows the slot it pushed at, so J1 needs no load of `bottom`: a chain of
// store-to-load forwards through it was the largest cost of the prototype. (Scopes load it, to write less.)
//
// A frame knows its deque. When its fiber parks, all of its frames are *promoted* (fork.cpp): their deque becomes
// `dead_forks`, whose top is above everything, so J3 fails and the join finds out the rest. Thus a fiber that goes on
// on another worker never touches the deque it left.
//
// `attention` is how workers that go to sleep learn of new jobs: they set `limit` of the others to null, so F3 fails
// and the owner wakes one of them. The same comparison catches a full deque.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/word.hpp>
#include <ramie/sched/current.hpp>
#include <ramie/sched/spin_lock.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

struct favour_cell;
struct fork_deque;
struct promoted_job;
struct stack;
class task_cache;

/// A fork job, on the stack of the fiber that forked it. `state` holds the function to run until somebody other than
/// the owner has run it (`done`) or the owner waits for that (a waiter reference). A thief reads the function before
/// the owner can find out about the theft: inside `thieves`.
struct fork_frame {
  using function = void (*)(fork_frame&) noexcept;
  static constexpr std::uint64_t done = 1;

  word<std::uint64_t> state;
  word<fork_deque*> deque;
  promoted_job* promoted;  // set with deque == dead_forks; null there: was stolen before

  /// For those who wait and those who wake.
  [[nodiscard]] atomic_ref<std::uint64_t> shared_state() noexcept {
    return atomic_ref<std::uint64_t>{*reinterpret_cast<std::uint64_t*>(&state)};
  }
};

/// A frame that need not lie on its fiber's stack, but belongs to something that does (a scope).
struct owned_frame : fork_frame {
  void* owner;
};

using fork_slot = word<fork_frame*>;

struct fork_deque {
  word<fork_slot*> bottom{nullptr};   // next free slot
  word<fork_slot*> top{nullptr};      // oldest job not stolen
  word<fork_slot*> limit{nullptr};    // bottom may not pass it; null: attention
  stack* running = nullptr;           // the stack the worker runs on; null: its thread's own
  std::uint64_t session = 0;          // changes at every switch; unique in the process (scope.hpp)
  favour_cell* favours = nullptr;     // the worker's
  task_cache* blocks_here = nullptr;  // the same
  fork_slot* base = nullptr;
  fork_slot* end = nullptr;
  spin_lock thieves;
  // Not in the cache line that thieves look at all the time: the next atomic instruction of the lock would have to wait
  // for it.
  alignas(128) word<std::uint64_t> locks{0};  // adaptive locks, but those held in vain, and mutexes: what gets done
  word<std::uint64_t> contended{0};           // mutexes that somebody else had
  word<std::uint64_t> seized{0};              // adaptive locks that were another worker's
  word<std::uint64_t> moved{0};               // adaptive locks of what it moved to another worker, or here
  word<std::uint64_t> crossed{0};  // wake-ups across workers, and adaptive locks that somebody else used last
  bool alone = false;              // the only worker of its runtime, but for spares
  std::uint16_t lock_id = 0;       // no other worker's; 0: can own no adaptive_lock

  RAMIE_ALWAYS_INLINE void count_lock() noexcept { locks.store_relaxed(locks.load_relaxed() + 1); }
  /// It was held in vain, and is not to count as something done: else threads that get into each other's way would look
  /// like those who do much.
  void uncount_lock() noexcept { locks.store_relaxed(locks.load_relaxed() - 1); }
  void count_seized() noexcept { seized.store_relaxed(seized.load_relaxed() + 1); }
  void count_moved(std::size_t n) noexcept { moved.store_relaxed(moved.load_relaxed() + n); }
  void count_crossed() noexcept { crossed.store_relaxed(crossed.load_relaxed() + 1); }
  void count_contended() noexcept { contended.store_relaxed(contended.load_relaxed() + 1); }
};

/// Where promoted frames point: nothing can be taken back from it.
extern fork_deque dead_forks;
/// Where frames of plain threads point: always taken back, never stolen.
extern fork_deque thread_forks;
/// Readies the marks. Called by each runtime before it starts workers.
void init_fork_marks() noexcept;

/// F3 found the attention mark or a full deque: wakes a sleeper, makes room. Owner.
void fork_attention(fork_deque& d) noexcept;

/// J3 failed, or full fences are needed. True: the frame is the caller's to run. False: it is being run elsewhere, or
/// was; then wait_for_thief. Owner; does not suspend.
bool fork_take_back_slowly(fork_frame& f, fork_slot* b) noexcept;

/// The frame of the calling fiber is not its youngest job: promotes all of them, if that is not done, so that each can
/// be taken back in any order.
void fork_uncover(const fork_frame& f) noexcept;

/// Suspends until the thief has run the frame. Uninterruptible.
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
  return nullptr;  // which is where its `top` is
}

/// J1 to J3. True: run it. False: call wait_for_thief.
RAMIE_ALWAYS_INLINE bool fork_take_back(fork_frame& f, fork_slot* b) noexcept {
  fork_deque* d = f.deque.load_relaxed();  // another one than at the fork, if the fiber suspended meanwhile
  d->bottom.store_relaxed(b);
  order_words();
  if (d->top.load_relaxed() <= b) [[likely]]
    return true;
  return fork_take_back_slowly(f, b);
}

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
    d->bottom.store_relaxed(b);
    order_words();
    if (d->top.load_relaxed() <= b) [[likely]]
      return true;
  }
  return fork_take_back_slowly(f, b);
}

}  // namespace ramie::detail
