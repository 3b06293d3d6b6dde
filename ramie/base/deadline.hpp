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

/// The time left by that clock, rounded up to the steady clock's tick: none if it is past, or not a number; the longest
/// duration if it is further away than time_after counts.
template <class Clock, class Duration>
[[nodiscard]] std::chrono::steady_clock::duration time_left(std::chrono::time_point<Clock, Duration> deadline) {
  using ticks = std::chrono::steady_clock::duration;
  using rough = std::chrono::duration<double>;
  const auto now = Clock::now();
  // The exact difference of two points may be out of range.
  const rough about = rough{deadline.time_since_epoch()} - rough{now.time_since_epoch()};
  if (!(about > rough{-1})) return ticks::zero();
  if (about >= rough{std::chrono::hours{24 * 365 * 146}}) return ticks::max();
  const auto left = deadline - now;
  return left > left.zero() ? std::chrono::ceil<ticks>(left) : ticks::zero();
}

}  // namespace ramie::detail
