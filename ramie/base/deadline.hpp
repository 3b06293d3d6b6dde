// From a duration to a point in time, without overflow at either end of the clock.
#pragma once

#include <ramie/base/atomic.hpp>

#include <chrono>

namespace ramie::detail {

/// Now plus `duration`, rounded up to the clock's tick. Now if it is negative; the clock's last moment if it is not a
/// number or longer than the clock counts (146 years are half of its range).
template <class Rep, class Period>
[[nodiscard]] std::chrono::steady_clock::time_point time_after(std::chrono::duration<Rep, Period> duration) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::duration<double> longest = std::chrono::hours{24 * 365 * 146};
  if (!(duration < longest)) return clock::time_point::max();
  if (duration <= duration.zero()) return detail::os_now();
  return detail::os_now() + std::chrono::ceil<clock::duration>(duration);
}

/// The time left by that clock; none if it is past.
template <class Clock, class Duration>
[[nodiscard]] auto time_left(std::chrono::time_point<Clock, Duration> deadline) {
  const auto now = Clock::now();
  using left = decltype(deadline - now);
  return now < deadline ? deadline - now : left::zero();
}

}  // namespace ramie::detail
