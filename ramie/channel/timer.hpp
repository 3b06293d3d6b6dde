// Channels that deliver the time once.
#pragma once

#include <ramie/channel/alarm_clock.hpp>
#include <ramie/channel/ends.hpp>
#include <ramie/sync/deadline.hpp>

#include <chrono>

namespace ramie {

/// Sends the time to its channel once, when it is due; after `reset`, once more. Uses one fiber of the caller's
/// runtime. (A select that is not to wait too long needs no timer: on_timeout.)
class timer {
 public:
  using clock = std::chrono::steady_clock;

  /// Due in `delay`, or at once if that is not positive. Throws usage_error on a plain thread, `cancelled` while the
  /// runtime shuts down, std::bad_alloc. Does not suspend.
  template <class Rep, class Period>
  explicit timer(std::chrono::duration<Rep, Period> delay) : alarms_{"timer", once(delay)} {}
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;

  /// Receives the time at which it was due. Any fiber or thread, while the timer lives.
  [[nodiscard]] ramie::channel<clock::time_point>& channel() noexcept { return alarms_.channel(); }

  /// Due in `delay` from now on, whether it was due before or not: what is received afterwards is the new time. False,
  /// without effect, if it was stopped. Throws `cancelled`. Suspends for a moment. Not thread-safe: owner only.
  template <class Rep, class Period>
  bool reset(std::chrono::duration<Rep, Period> delay) {
    return alarms_.set(once(delay));
  }

  /// It will not be due any more: closes the channel. Suspends for a moment, not cancellably. Not thread-safe: owner
  /// only. The destructor does the same.
  void stop() noexcept { alarms_.stop(); }

 private:
  template <class Rep, class Period>
  static detail::alarm once(std::chrono::duration<Rep, Period> delay) {
    return {detail::time_after(delay), std::chrono::nanoseconds::zero()};
  }
  detail::alarm_clock alarms_;
};

/// The receiving end of a channel that gets the time at `deadline`, of any clock, or `delay` from now, once, and then
/// closes. Uses one fiber of the caller's runtime until then, or until the last copy of the receiver is gone. If the
/// runtime shuts down first, the channel is closed without a value. Throws usage_error on a plain thread,
/// std::bad_alloc, `cancelled` as spawn does. Does not suspend.
[[nodiscard]] receiver<std::chrono::steady_clock::time_point> at(std::chrono::steady_clock::time_point deadline);
template <class Clock, class Duration>
[[nodiscard]] receiver<std::chrono::steady_clock::time_point> at(std::chrono::time_point<Clock, Duration> deadline) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) return at(detail::saturated(deadline));
  else return at(detail::time_after(detail::time_left(deadline)));
}
template <class Rep, class Period>
[[nodiscard]] receiver<std::chrono::steady_clock::time_point> after(std::chrono::duration<Rep, Period> delay) {
  return at(detail::time_after(delay));
}

}  // namespace ramie
