// A channel that delivers the time, again and again.
#pragma once

#include <ramie/channel/channel.hpp>
#include <ramie/fiber/join_handle.hpp>

#include <chrono>

namespace ramie {

/// Sends the time to its channel once a period, as long as it lives. The channel has room for one tick: if nobody took
/// the last one, the next is dropped, so a slow receiver sees fewer ticks and never a burst of old ones. Ticks are due
/// at start + n * period, whatever delays one of them: no drift. Costs a fiber of the calling one's runtime.
class ticker {
 public:
  using clock = std::chrono::steady_clock;

  /// The first tick comes after one period. Throws invalid_argument if `period` is not positive, usage_error on a plain
  /// thread, std::bad_alloc. Does not suspend.
  template <class Rep, class Period>
  explicit ticker(std::chrono::duration<Rep, Period> period) : ticker{in_ns(period)} {}
  explicit ticker(std::chrono::nanoseconds period);
  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;
  /// As `stop`.
  ~ticker() { stop(); }

  /// Receives the time at which each tick was due. Any fiber or thread, as long as the ticker lives.
  [[nodiscard]] ramie::channel<clock::time_point>& channel() noexcept { return ticks_; }

  /// No more ticks: closes the channel. Who waits for a tick gets nothing; one that is buffered can still be received.
  /// Again: does nothing. Suspends for a moment, not cancellably. The fiber, or thread, that owns the ticker.
  void stop() noexcept;

 private:
  template <class Rep, class Period>
  static std::chrono::nanoseconds in_ns(std::chrono::duration<Rep, Period> period) {
    constexpr std::chrono::duration<double> longest = std::chrono::hours{24 * 365 * 146};
    if (!(period < longest)) return std::chrono::nanoseconds::max();
    if (!(period > period.zero())) return std::chrono::nanoseconds::zero();
    return std::chrono::ceil<std::chrono::nanoseconds>(period);
  }

  ramie::channel<clock::time_point> ticks_{1};
  join_handle<void> fiber_;
};

}  // namespace ramie
