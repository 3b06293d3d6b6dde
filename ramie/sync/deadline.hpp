// Points in time of any clock, as deadlines of the steady one.
#pragma once

#include <ramie/base/deadline.hpp>

#include <chrono>
#include <type_traits>

namespace ramie::detail {

using steady_time = std::chrono::steady_clock::time_point;

/// In the steady clock's own ticks, rounded up. What lies beyond its range becomes its last moment, or its epoch, which
/// is long past.
template <class Duration>
[[nodiscard]] steady_time saturated(std::chrono::time_point<std::chrono::steady_clock, Duration> t) noexcept {
  using ticks = steady_time::duration;
  constexpr std::chrono::duration<double> longest = std::chrono::hours{24 * 365 * 292};  // the clock's range
  if (t.time_since_epoch() >= longest) return steady_time::max();
  if (t.time_since_epoch() <= longest.zero()) return steady_time{};
  return std::chrono::ceil<ticks>(t);
}

/// Calls `attempt(steady deadline)`, which waits until then at most and returns whether it succeeded, until it succeeds
/// or the time has come. Clocks other than the steady one may be set meanwhile, so the time is looked at again.
template <class Clock, class Duration, class Attempt>
auto attempt_until(std::chrono::time_point<Clock, Duration> deadline, Attempt&& attempt) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return attempt(saturated(deadline));
  } else {
    for (;;) {
      const auto left = time_left(deadline);
      const auto got = attempt(left == left.zero() ? steady_time{} : time_after(left));
      if (got || time_left(deadline) == left.zero()) return got;
    }
  }
}

}  // namespace ramie::detail
