// A channel that delivers the time, again and again.
#pragma once

#include <ramie/channel/alarm_clock.hpp>

#include <chrono>

namespace ramie {

/// Sends the time to its channel once per period, as long as the ticker exists. The channel has room for one tick: if
/// the last one was not taken, the next is dropped, so a slow receiver sees fewer ticks and never a burst of old ones.
/// Ticks are due at start + n * period, whatever delays one of them: no drift. Uses one fiber of the caller's runtime.
class ticker {
 public:
  using clock = std::chrono::steady_clock;

  /// The first tick comes after one period. Throws invalid_argument if `period` is not positive, usage_error on a plain
  /// thread, `cancelled` while the runtime shuts down, std::bad_alloc. Does not suspend.
  template <class Rep, class Period>
  explicit ticker(std::chrono::duration<Rep, Period> period) : ticker{detail::in_ns(period)} {}
  explicit ticker(std::chrono::nanoseconds period);
  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;

  /// Receives the time at which each tick was due. Any fiber or thread, while the ticker lives.
  [[nodiscard]] ramie::channel<clock::time_point>& channel() noexcept { return alarms_.channel(); }

  /// Starts again with another period, from now on: a tick that was not taken is dropped. False, without effect, if it
  /// was stopped. Throws invalid_argument; `cancelled`, after which either period may be in effect. Suspends for a
  /// moment. Not thread-safe: owner only.
  template <class Rep, class Period>
  bool reset(std::chrono::duration<Rep, Period> period) {
    return reset(detail::in_ns(period));
  }
  bool reset(std::chrono::nanoseconds period);

  /// No more ticks: closes the channel. Its waiters get nothing; a buffered tick can still be received. Stopping again
  /// does nothing. Suspends for a moment, not cancellably. Not thread-safe: owner only. The destructor does the same.
  void stop() noexcept { alarms_.stop(); }

 private:
  detail::alarm_clock alarms_;
};

}  // namespace ramie
