// A lock for short critical sections that is nearly free while a single worker uses it, and a spin lock from the
// first use by any other thread on. Most channels, mailboxes and the like are only ever used on one worker.
//
//  Owner (a worker)                          Any other thread
//  A1 inside = 1                             B1 take `others`
//  A2 light fence                            B2 owner is a worker? owner = that one, deprived;
//  A3 owner is still this worker?               heavy fence; wait until inside == 0
//     else inside = 0, and B1                B3 critical section
//  A4 critical section                       B4 release `others`
//  A5 inside = 0 (release)
//
// A1/A3 and B2 cannot both miss each other (fence.hpp). If the owner passed A3, the other thread waits at B2 for A5,
// whose release its acquire reads.
//
// At A3 a deprived owner may be about to clear `inside`, at any time later; only when that same worker uses the lock
// again is it certain that it has. So no worker but the first owner ever owns the lock; the others pay for an atomic
// instruction. Workers are told apart by address alone: a new worker that gets the address of one that ended, which is
// inside no lock and will clear nothing, owns what the old one did.
//
// Rejected: a second owner with a slot of its own in `inside`, for locks that move to another worker for good. Slots
// went by numbers of workers, ownership by their addresses. Both were used again, but not together, so after a restart
// of the runtime two workers could be inside.
//
// Where fences are not asymmetric, no lock has an owner, so A2 is only a compiler fence.
//
// Only A5 and B2's look at `inside` carry an order, beside `others`: `owner` is written under `others`, and a thread
// that acts on it holds `others`, or is the owner and compares it with itself.
//
// A worker becomes the owner of a fresh lock, under `others`, after a streak of uses without any other user: as many as
// the lock was made for (at least one), or one if the worker is alone. Every change of owner costs a heavy fence
// (fence.hpp), so a lock that is often made by one worker and used by another, such as the mailbox of an actor that is
// stolen before it ran, should not get an owner too soon. A deprived owner becomes the owner again in the same way:
// other workers may have used the lock only for a while. The required streak doubles each time.
//
// Locks that move to another worker by the hundred (a theft of ready actors) are taken from their owner with one heavy
// fence for all of them, before the first use there:
//  C1 of each lock that a worker owns: take `others` if it is free (else skip the lock); owner = that one, deprived
//  C2 heavy fence
//  C3 wait until inside == 0; not for long, for the owner may be waiting for another of these locks: then it is the
//     owner again. It may be at B1 by then, and then deprives itself at B2
//  C4 release `others`
//
// The idea of reservation: K. Kawachiya, A. Koseki, T. Onodera, "Lock reservation", OOPSLA 2002.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/current.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// Lockable. Never held across a suspension; locked and unlocked by the same thread.
class adaptive_lock {
 public:
  adaptive_lock() noexcept = default;
  /// The first owner is the worker that uses it 2 to the power of `patience` times without any other user in between;
  /// or once, if it is the only worker of its runtime.
  explicit adaptive_lock(std::uint8_t patience) noexcept : patience_{patience} {}

  RAMIE_ALWAYS_INLINE void lock() noexcept {
    worker_base* me = current_worker();
    if (!lock_as_owner(me)) [[unlikely]]
      lock_slowly(me);
  }
  RAMIE_ALWAYS_INLINE bool try_lock() noexcept {
    worker_base* me = current_worker();
    return lock_as_owner(me) || try_lock_slowly(me);
  }
  RAMIE_ALWAYS_INLINE void unlock() noexcept {
    if (!held_by_other_) [[likely]]
      inside_.store(0, RAMIE_PLANT(mail_unordered) ? std::memory_order_relaxed : std::memory_order_release);
    else others_.unlock();
  }

  /// C1 to C4 for the locks `all`, at most `deprived_most`; those that are null, or owned by `to`, are skipped. Not
  /// from inside any of them. The streak that they require does not grow. Returns how many were taken.
  static std::size_t deprive_all(adaptive_lock* const* all, std::size_t n, const worker_base* to = nullptr) noexcept;
  static constexpr std::size_t deprived_most = 32;

  /// From when this returns no worker owns it, until `may_be_owned`. Not from inside.
  void have_no_owner() noexcept;
  /// As if made anew with this patience. Not from inside.
  void may_be_owned(std::uint8_t patience) noexcept;

  /// A1 to A3 alone, for code that keeps the rest in a function of its own: true if inside, and then leave_as_owner()
  /// is A5, not unlock(). False: nothing was done. Such uses are not counted. `me`: the caller's
  /// current_worker().
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool try_enter_as_owner(const worker_base* me) noexcept {
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
  RAMIE_ALWAYS_INLINE bool lock_as_owner(worker_base* me) noexcept {
    if (!try_enter_as_owner(me)) return false;
    held_by_other_ = false;
    me->count_lock();
    return true;
  }
  /// A value of `owner_` that is neither a worker's address nor null, as plain threads are, but tells which worker it
  /// was (or null).
  static worker_base* deprived(const worker_base* who) noexcept {
    return reinterpret_cast<worker_base*>(reinterpret_cast<std::uintptr_t>(who) | deprived_bit);
  }
  RAMIE_NOINLINE void lock_slowly(worker_base* me) noexcept;
  RAMIE_NOINLINE bool try_lock_slowly(worker_base* me) noexcept;
  void end_ownership(worker_base* me) noexcept;

  static constexpr std::uintptr_t deprived_bit = 1;
  static constexpr std::uint8_t endless = 16;  // a patience: no streak is as long as that

  // deprived_bit: not the owner, but the worker whose streak counts; null while fresh. Never null, as plain threads
  // are.
  atomic<worker_base*> owner_{deprived(nullptr)};
  atomic<std::uint8_t> inside_{0};
  bool held_by_other_ = false;  // than the owner; written and read by the holder
  bool was_owned_ = false;      // others_: owner_ never changes to another worker any more
  std::uint8_t patience_ = 0;   // others_: a streak of 2 to that
  std::uint16_t streak_ = 0;    // others_: uses by the worker that counts since any other use
  spin_lock others_;
};

}  // namespace ramie::detail
