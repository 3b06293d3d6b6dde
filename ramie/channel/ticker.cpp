#include <ramie/channel/ticker.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/deadline.hpp>
#include <ramie/base/error.hpp>
#include <ramie/channel/timer.hpp>
#include <ramie/fiber/scoped_value.hpp>
#include <ramie/fiber/spawn.hpp>

#include <string>
#include <utility>

namespace ramie {

namespace detail {

alarm_clock::alarm_clock(const char* name, alarm first)
    : fiber_{without_scoped_values([&] { return spawn(fiber_options{.name = name}, [this, first] { run(first); }); })} {
}

void alarm_clock::run(alarm now) {
  try {
    for (;;) {
      std::optional<alarm> order;
      channel_status status = channel_status::ok;
      // Without a deadline where there is none: only such a wait can be part of a deadlock.
      if (now.due != steady_time::max()) status = orders_.recv_until(order, now.due);
      else if (order = orders_.recv(); !order) status = channel_status::closed;
      if (status == channel_status::closed) return;
      if (status == channel_status::ok) {  // A2
        if (order->empty) continue;
        now = *order;
        ticks_.try_recv();
        continue;
      }
      if (ticks_.try_send(steady_time{now.due}) == channel_status::closed) return;
      if (now.period == now.period.zero()) {
        now.due = steady_time::max();
        continue;
      }
      // Ticks that are past already could not have been received in time.
      const auto late = os_now() - now.due;
      now.due += now.period * (late / now.period + 1);
    }
  } catch (const cancelled&) {
    ticks_.close();  // A3
    orders_.close();
  }
}

bool alarm_clock::set(alarm next) {
  if (orders_.send(next) == channel_status::closed) return false;
  return orders_.send({next.due, next.period, true}) == channel_status::ok;
}

void alarm_clock::stop() noexcept {
  ticks_.close();
  orders_.close();
  fiber_ = {};  // asks it to stop, and waits for it
}

}  // namespace detail

namespace {

std::chrono::nanoseconds checked(std::chrono::nanoseconds period) {
  if (period <= period.zero())
    throw invalid_argument{"ramie: ticker: period is " + std::to_string(period.count()) +
                           " ns; it must be more than 0 ns"};
  return period;
}

}  // namespace

ticker::ticker(std::chrono::nanoseconds period) : alarms_{"ticker", {detail::time_after(checked(period)), period}} {}

bool ticker::reset(std::chrono::nanoseconds period) {
  return alarms_.set({detail::time_after(checked(period)), period});
}

receiver<std::chrono::steady_clock::time_point> at(std::chrono::steady_clock::time_point deadline) {
  using time = std::chrono::steady_clock::time_point;
  auto ends = make_channel<time>(1);
  spawn(fiber_options{.name = "timer"}, [to = std::move(ends.sender), deadline] {
    // It waits as if it were a receiver: nobody else sends, and so it learns when the last receiver has gone.
    std::optional<time> none;
    if (to.get("at").recv_until(none, deadline) == channel_status::timeout)
      static_cast<void>(to.try_send(time{deadline}));
  }).detach();
  return std::move(ends.receiver);
}

}  // namespace ramie
