#include <ramie/channel/ticker.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/deadline.hpp>
#include <ramie/base/error.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/this_fiber.hpp>

#include <string>

namespace ramie {

namespace {

using clock = ticker::clock;

void tick(channel<clock::time_point>& ticks, clock::time_point due, std::chrono::nanoseconds period) {
  try {
    for (;;) {
      this_fiber::sleep_until(due);
      if (ticks.try_send(clock::time_point{due}) == channel_status::closed) return;
      // Those that are past already nobody could have received in time.
      const auto late = detail::os_now() - due;
      due += period * (late / period + 1);
    }
  } catch (const cancelled&) {
    // The ticker was stopped, or its runtime ends: in that case, too, nobody is to wait for the next one.
    ticks.close();
  }
}

}  // namespace

ticker::ticker(std::chrono::nanoseconds period) {
  if (period <= period.zero())
    throw invalid_argument{"ramie: ticker: period is " + std::to_string(period.count()) +
                           " ns; it must be more than 0 ns"};
  fiber_ = spawn(fiber_options{.name = "ticker"},
                 [this, period, due = detail::time_after(period)] { tick(ticks_, due, period); });
}

void ticker::stop() noexcept {
  ticks_.close();
  fiber_ = {};  // asks it to stop, and waits for it
}

}  // namespace ramie
