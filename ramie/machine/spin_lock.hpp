// A lock for critical sections of a few dozen instructions.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/backoff.hpp>

#include <cstdint>

namespace ramie::detail {

/// Lockable. Never held across a suspension. A waiter spins a little, then yields its time slice, because the holder
/// may have been preempted, and then sleeps between looks, because the holder may be of a lower real-time priority.
class spin_lock {
 public:
  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      lock_slowly();
  }
  [[nodiscard]] bool try_lock() noexcept {
    return held_.load(std::memory_order_relaxed) == 0 && held_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unlock() noexcept { held_.store(0, std::memory_order_release); }

 private:
  RAMIE_COLD void lock_slowly() noexcept {
    for (int round = 0; !try_lock();) pause_a_little(round);
  }
  atomic<std::uint32_t> held_{0};
};

}  // namespace ramie::detail
