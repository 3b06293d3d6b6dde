// A number and the spin lock that guards it, in one word.
//
// The store that gives the lock back also publishes the new number, and is the last access of its holder to the object.
// So a thread that reads a number with the lock free knows that all threads that changed it have left, and may destroy
// the object at once. That is why a waiter may return from a wait without taking the lock, and its caller may then
// destroy the primitive. That is what is() acquires for. peek() is a glance that promises nothing: a thread that goes
// on takes the lock, or changes the word, by an acquiring step.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/backoff.hpp>

#include <cstdint>

namespace ramie::detail {

class word_lock {
 public:
  constexpr explicit word_lock(std::uint64_t value = 0) noexcept : word_{value << 1} {}

  /// Takes the lock and returns the number, which belongs to the holder until `unlock`. Never held across a suspension.
  [[nodiscard]] RAMIE_ALWAYS_INLINE std::uint64_t lock() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    if ((seen & held) == 0 && take(seen)) [[likely]]
      return seen >> 1;
    return lock_slowly();
  }
  RAMIE_ALWAYS_INLINE void unlock(std::uint64_t value) noexcept { word_.store(value << 1, std::memory_order_release); }

  /// One step from `from` to `to`, if that is the number and the lock is free. May fail spuriously.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool try_change(std::uint64_t from, std::uint64_t to) noexcept {
    std::uint64_t seen = from << 1;
    return word_.compare_exchange_weak(seen, to << 1, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  /// The number a moment ago. `free`: was the lock free then?
  [[nodiscard]] RAMIE_ALWAYS_INLINE std::uint64_t peek(bool& free) const noexcept {
    const std::uint64_t seen = word_.load(std::memory_order_relaxed);
    free = (seen & held) == 0;
    return seen >> 1;
  }
  /// True if the number was `value` and the lock was free.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool is(std::uint64_t value) const noexcept {
    return word_.load(std::memory_order_acquire) == value << 1;
  }

 private:
  static constexpr std::uint64_t held = 1;

  RAMIE_ALWAYS_INLINE bool take(std::uint64_t& seen) noexcept {
    return word_.compare_exchange_weak(seen, seen | held, std::memory_order_acquire, std::memory_order_relaxed);
  }
  RAMIE_COLD std::uint64_t lock_slowly() noexcept {
    for (int round = 0;;) {
      std::uint64_t seen = word_.load(std::memory_order_relaxed);
      if ((seen & held) == 0 && take(seen)) return seen >> 1;
      pause_a_little(round);
    }
  }

  atomic<std::uint64_t> word_;
};

}  // namespace ramie::detail
