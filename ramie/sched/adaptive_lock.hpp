// A lock for short critical sections that is nearly free while one worker alone uses it, and a spin lock from the
// first use by anybody else on. Most channels, mailboxes and the like live and die on one worker.
//
//  Owner (a worker)                          Any other thread
//  A1 inside[own slot] = 1                   B1 take `others`
//  A2 light fence                            B2 owner is a worker? owner = that one, deprived;
//  A3 owner is still this worker?               heavy fence; wait until inside == {0, 0}
//     else inside[own slot] = 0, and B1      B3 critical section
//  A4 critical section                       B4 release `others`
//  A5 inside[own slot] = 0 (release)
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
// for doubles each time.
//
// At A3 a deprived owner may be about to clear `inside`, at any time later, and only when that same worker comes again
// is it certain that it has. So each has a slot of its own in `inside`, which it keeps for ever: the first owner, and
// one more. Those two can be owners in turns, as when all fibers are gathered on the one that came second; any others
// never are, and pay for an atomic instruction. What the second does as the owner is not inlined.
//
// What moves to another worker by the hundred (a theft of ready actors) is taken from its owner with one heavy fence
// for all of it, before the first use there:
//  C1 of each lock that a worker owns: take `others` if it is free (else leave that one out); owner = that one, deprived
//  C2 heavy fence
//  C3 wait until inside == {0, 0}; not for long, for the owner may be waiting for another of these locks: then it is the
//     owner again. It may have passed B1 meanwhile, and deprives itself at B2
//  C4 release `others`
//
// The idea of reservation: K. Kawachiya, A. Koseki, T. Onodera, "Lock reservation", OOPSLA 2002.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/current.hpp>
#include <ramie/sched/fork_deque.hpp>
#include <ramie/sched/spin_lock.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// A fork_deque::lock_id that no other worker alive has; 0 if there are 65,535 others.
class lock_identity {
 public:
  lock_identity();  // throws std::bad_alloc
  ~lock_identity();
  lock_identity(const lock_identity&) = delete;
  lock_identity& operator=(const lock_identity&) = delete;
  [[nodiscard]] std::uint16_t value() const noexcept { return id_; }

 private:
  std::uint16_t id_;
};

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
    // Not inside_[held_in_]: the address of a store had better not hang on a load of what was only just stored.
    if (held_in_ == 0) [[likely]]
      inside_[0].store(0, std::memory_order_release);
    else if (held_in_ == 1) inside_[1].store(0, std::memory_order_release);
    else others_.unlock();
  }

  /// C1 to C4 for the locks `all`, at most `deprived_most`, of which those that are null, or `to` owns, count for
  /// nothing. Not from inside any of them. They stay as quick to be owned anew as they were. Returns how many were
  /// taken.
  static std::size_t deprive_all(adaptive_lock* const* all, std::size_t n, const fork_deque* to = nullptr) noexcept;
  static constexpr std::size_t deprived_most = 32;

  /// A1 to A3 alone, for code that keeps all else in a function of its own: true if inside, and then leave_as_owner()
  /// is A5, not unlock(). False: nothing was done. For the first owner. Such uses are not counted. `me`: the caller's
  /// current_forks().
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool try_enter_as_owner(const fork_deque* me) noexcept {
    if (owner_.load(std::memory_order_relaxed) != me) [[unlikely]]
      return false;
    inside_[0].store(1, std::memory_order_relaxed);
    compiler_fence();
    if (owner_.load(std::memory_order_relaxed) == me) [[likely]]
      return true;
    inside_[0].store(0, std::memory_order_release);
    return false;
  }
  RAMIE_ALWAYS_INLINE void leave_as_owner() noexcept { inside_[0].store(0, std::memory_order_release); }

 private:
  RAMIE_ALWAYS_INLINE bool lock_as_owner(fork_deque* me) noexcept {
    if (!try_enter_as_owner(me)) return false;
    held_in_ = 0;
    me->count_lock();
    return true;
  }
  /// A value of `owner_` that is no worker's address, nor that of a plain thread's, but tells which one it was (or
  /// null).
  static fork_deque* deprived(const fork_deque* who) noexcept {
    return reinterpret_cast<fork_deque*>((reinterpret_cast<std::uintptr_t>(who) | deprived_bit) & ~second_bit);
  }
  [[nodiscard]] bool is_free_of_owners() const noexcept;
  RAMIE_NOINLINE void lock_slowly(fork_deque* me) noexcept;
  RAMIE_NOINLINE bool try_lock_slowly(fork_deque* me) noexcept;
  void end_ownership(fork_deque* me) noexcept;
  bool enter_as_second(fork_deque* me) noexcept;
  [[nodiscard]] std::uint8_t slot_for(const fork_deque* me) const noexcept;

  static constexpr std::uintptr_t deprived_bit = 1;
  static constexpr std::uintptr_t second_bit = 2;
  static constexpr std::uint8_t slots = 2;

  // deprived_bit: not the owner, but whose streak counts; of null while fresh. second_bit: the owner in slot 1. Never
  // null, as plain threads are.
  atomic<fork_deque*> owner_{deprived(nullptr)};
  std::array<atomic<std::uint8_t>, slots> inside_{};
  std::uint8_t held_in_ = slots;  // by its owner in this slot, or by others_; written and read by the holder
  std::uint8_t patience_ = 0;     // others_: a streak of 2 to that
  std::uint16_t streak_ = 0;      // others_: uses by the one that counts since anybody else's
  std::array<std::uint16_t, slots> slot_users_{};  // others_: fork_deque::lock_id of whose slot it is; 0: nobody's yet
  spin_lock others_;
};

}  // namespace ramie::detail
