// What tickers and timers have in common: a fiber that sends the time to a channel when it is due.
//
//  A1 The fiber waits for an order until the next alarm is due. Without one it sends the time, if there is room.
//  A2 An order takes effect when the fiber takes it; the channel of orders has no buffer. The fiber drops a tick that
//     was not taken, and then takes a second, empty order: when that is taken, the tick of before is gone, and a tick
//     that is found in the channel belongs to the new order.
//  A3 The stop of the clock closes both channels, and so does the fiber when it is cancelled: nobody waits for a tick
//     or with an order that will never come about.
#pragma once

#include <ramie/channel/channel.hpp>
#include <ramie/fiber/join_handle.hpp>

#include <chrono>

namespace ramie::detail {

/// Rounded up; the longest there is if it is too long, zero if it is negative.
template <class Rep, class Period>
[[nodiscard]] std::chrono::nanoseconds in_ns(std::chrono::duration<Rep, Period> period) {
  constexpr std::chrono::duration<double> longest = std::chrono::hours{24 * 365 * 146};
  if (!(period < longest)) return std::chrono::nanoseconds::max();
  if (!(period > period.zero())) return std::chrono::nanoseconds::zero();
  return std::chrono::ceil<std::chrono::nanoseconds>(period);
}

struct alarm {
  steady_time due;
  std::chrono::nanoseconds period;  // zero: once
  bool empty = false;               // A2
};

class alarm_clock {
 public:
  alarm_clock(const char* name, alarm first);
  alarm_clock(const alarm_clock&) = delete;
  alarm_clock& operator=(const alarm_clock&) = delete;
  ~alarm_clock() { stop(); }
  [[nodiscard]] ramie::channel<steady_time>& channel() noexcept { return ticks_; }
  bool set(alarm next);
  void stop() noexcept;

 private:
  void run(alarm now);

  ramie::channel<steady_time> ticks_{1};
  ramie::channel<alarm> orders_;
  join_handle<void> fiber_;
};

}  // namespace ramie::detail
