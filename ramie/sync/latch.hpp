// A count that goes down to zero once, as std::latch.
#pragma once

#include <ramie/sync/zero_count.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <source_location>

namespace ramie {

/// Fibers and plain threads may use all of it alike. A waiter may destroy it as soon as its wait has returned. The
/// waiting functions are in zero_count and timed_waits: try_wait, wait, wait_for, wait_until.
class latch : public detail::zero_count<latch> {
 public:
  /// The largest count.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return std::numeric_limits<std::int32_t>::max(); }

  /// Opens after `expected` count-downs, from 0 (open at once) to max(). Throws invalid_argument for any other number.
  constexpr explicit latch(std::ptrdiff_t expected) : zero_count{detail::checked_count(kind, expected, max())} {}

  /// Takes `n` off the count, and wakes all waiters if that makes it zero. Does not suspend. Throws usage_error, and
  /// changes nothing, if the count is less than `n`.
  void count_down(std::ptrdiff_t n = 1);

  /// count_down(n), then `wait`.
  RAMIE_ALWAYS_INLINE void arrive_and_wait(std::ptrdiff_t n = 1,
                                           std::source_location where = std::source_location::current()) {
    count_down(n);
    wait(where);
  }

 private:
  friend zero_count;
  static constexpr const char* kind = "latch";
};

}  // namespace ramie
