// A lock for short critical sections that is nearly free while one worker alone uses it, and a spin lock from the
// first use by anybody else on. Most channels, mailboxes and the like live and die on one worker.
//
//  Owner (a worker)                          Any other thread
//  A1 inside = 1                             B1 take `others`
//  A2 light fence                            B2 owner is a worker? owner = that one, deprived;
//  A3 owner is still this worker?               heavy fence; wait until inside == 0
//     else inside = 0 and go on as B1        B3 critical section
//  A4 critical section                       B4 release `others`
//  A5 inside = 0 (release)
//
// A1/A3 and B2 cannot both miss each other (fence.hpp). If the owner passed A3, the other waits at B2 for A5, whose
// release its acquire reads; later owners see at A3 that they own nothing any more. Owners are told apart by address;
// if a new worker gets the address of one that ended, it simply owns what the old one did.
//
// Nobody owns a lock where fences are not asymmetric, so A2 is but for the compiler.
//
// A worker becomes the owner of a fresh lock, under `others`, by a streak of uses by it alone: of one use, or of as
// many as the lock was made for, unless the worker is alone. For every change of hands costs a heavy fence (some
// microseconds, and an interruption of all workers), and what is often made by one worker and used by another, like the
// mailboxes of actors that are stolen before they ran, had better not be owned so soon. Who was deprived becomes the
// owner again in the same way: others may have had a part in what it does for a while only. The streak that is asked
// for doubles each time. Nobody else ever becomes the owner once there was one, and must not: at A3 a deprived owner
// may be about to clear `inside`, at any time later, and only when that same worker comes again is it certain that it
// has.
//
// Fibers that all moved to another worker pay for atomic instructions, some 10 ns a message.
//
// The idea of reservation: K. Kawachiya, A. Koseki, T. Onodera, "Lock reservation", OOPSLA 2002.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/current.hpp>
#include <ramie/sched/fork_deque.hpp>
#include <ramie/sched/spin_lock.hpp>

#include <cstdint>

namespace ramie::detail {

/// Lockable. Never held across a suspension; locked and unlocked by the same thread.
class adaptive_lock {
 public:
  adaptive_lock() noexcept = default;
  /// The first owner is who uses it 2 to the power of `patience` times, and nobody else in between; or once, if it is
  /// the only worker of its runtime.
  explicit adaptive_lock(std::uint8_t patience) noexcept : patience_{patience} {}

  RAMIE_ALWAYS_INLINE void lock() noexcept {
    fork_deque* me = current_forks();
    if (!lock_as_owner(me)) [[unlikely]]
      lock_slowly(me);
  }
  RAMIE_ALWAYS_INLINE bool try_lock() noexcept {
    fork_deque* me = current_forks();
    return lock_as_owner(me) || try_lock_slowly(me);
  }
  RAMIE_ALWAYS_INLINE void unlock() noexcept {
    if (as_owner_) [[likely]]
      inside_.store(0, std::memory_order_release);
    else others_.unlock();
  }

  /// A1 to A3 alone, for code that keeps all else in a function of its own: true if inside, and then leave_as_owner()
  /// is A5, not unlock(). False: nothing was done. Such uses are not counted. `me`: the caller's current_forks().
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool try_enter_as_owner(const fork_deque* me) noexcept {
    if (owner_.load(std::memory_order_relaxed) != me) [[unlikely]]
      return false;
    inside_.store(1, std::memory_order_relaxed);
    compiler_fence();
    if (owner_.load(std::memory_order_relaxed) == me) [[likely]]
      return true;
    inside_.store(0, std::memory_order_release);
    return false;
  }
  RAMIE_ALWAYS_INLINE void leave_as_owner() noexcept { inside_.store(0, std::memory_order_release); }

 private:
  RAMIE_ALWAYS_INLINE bool lock_as_owner(fork_deque* me) noexcept {
    if (!try_enter_as_owner(me)) return false;
    as_owner_ = true;
    me->count_lock();
    return true;
  }
  /// A value of `owner_` that is no worker's address, nor that of a plain thread's, but tells which one it was (or
  /// null).
  static fork_deque* deprived(const fork_deque* who) noexcept {
    return reinterpret_cast<fork_deque*>(reinterpret_cast<std::uintptr_t>(who) | 1);
  }
  RAMIE_NOINLINE void lock_slowly(fork_deque* me) noexcept;
  RAMIE_NOINLINE bool try_lock_slowly(fork_deque* me) noexcept;
  void end_ownership(fork_deque* me) noexcept;

  // The lowest bit set: not the owner, but whose streak counts; of null while fresh. Never null, as plain threads are.
  atomic<fork_deque*> owner_{deprived(nullptr)};
  atomic<std::uint32_t> inside_{0};
  bool as_owner_ = false;      // how the lock is held now; written and read by the holder
  bool was_owned_ = false;     // others_: there has been an owner
  std::uint8_t patience_ = 0;  // others_: a streak of 2 to that
  std::uint16_t streak_ = 0;   // others_: uses by the one that counts since anybody else's
  spin_lock others_;
};

}  // namespace ramie::detail
