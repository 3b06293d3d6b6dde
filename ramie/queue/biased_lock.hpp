// Mutual exclusion that is nearly free for one thread, the owner, and expensive for all others (a Dekker pair with
// asymmetric fences, as in biased or "quick" locks: D. Dice, M. Moir, W. Scherer, "Quickly reacquirable locks", 2003).
//
//  Owner                                    Thief
//  O1 inside = 1                            T1 take `others` (one thief at a time)
//  O2 light fence                           T2 revoked = 1
//  O3 revoked == 0? else back out, O6       T3 heavy fence
//  O4 critical section                      T4 wait until inside == 0, or give up after a while
//  O5 inside = 0 (release)                  T5 critical section
//  O6 (revoked) take `others`, critical     T6 revoked = 0 (release), release `others`
//     section, release `others`
//
// Where fences are not asymmetric (fence.hpp), `revoked` is always 1: a full fence in O2 would cost as much as O6,
// and the lock is a plain one, `others`. So O2 is only a compiler fence.
//
// O1/O3 and T2/T4 cannot both miss each other (fence.hpp). If the owner passed O3, the thief sees inside == 1 and waits
// for O5, whose release its acquire reads. If the thief passed T3 first, the owner sees revoked == 1 and queues on
// `others`. The thief gives up at T4 because the owner may be preempted between O1 and O5.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <mutex>

namespace ramie::detail {

class biased_lock {
 public:
  /// Runs `section` as the owner and returns what it returns. Only the owning thread.
  template <class Section>
  RAMIE_ALWAYS_INLINE auto as_owner(Section&& section) noexcept {
    if (!try_enter()) [[unlikely]]
      return as_owner_slowly(section);
    if constexpr (std::is_void_v<decltype(section())>) {
      section();
      leave();
    } else {
      auto result = section();
      leave();
      return result;
    }
  }

  /// O1 to O3, for code that keeps the rare case elsewhere: true if inside, and then leave() is O5; false: call
  /// as_owner_slowly (O6). Only the owning thread.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool try_enter() noexcept {
    inside_.store(1, std::memory_order_relaxed);
    compiler_fence();
    if (revoked_.load(std::memory_order_acquire) == 0) [[likely]]
      return true;
    inside_.store(0, std::memory_order_release);
    return false;
  }
  RAMIE_ALWAYS_INLINE void leave() noexcept { inside_.store(0, std::memory_order_release); }

  /// O6.
  template <class Section>
  auto as_owner_slowly(Section&& section) noexcept {
    std::lock_guard guard{others_};
    return section();
  }

  /// Runs `section` with the owner kept out. False, without running it, if another thief is inside or the owner stays
  /// inside. Any other thread.
  template <class Section>
  bool try_as_thief(Section&& section) noexcept {
    if (!others_.try_lock()) return false;
    revoked_.store(1, std::memory_order_relaxed);
    if (!RAMIE_PLANT(biased_lock_no_fence)) heavy_fence();
    bool alone = false;
    for (int round = 0; round < 200 && !alone; ++round) {
      alone = inside_.load(std::memory_order_acquire) == 0;
      if (!alone) spin_pause();
    }
    if (alone) section();
    revoked_.store(at_rest(), std::memory_order_release);
    others_.unlock();
    return alone;
  }

 private:
  /// The value of `revoked` while there is no thief.
  static std::uint32_t at_rest() noexcept { return asymmetric_fences ? 0 : 1; }

  atomic<std::uint32_t> inside_{0};
  atomic<std::uint32_t> revoked_{at_rest()};
  spin_lock others_;
};

}  // namespace ramie::detail
