// Timers added, removed and fired in any order, against a model: a list of deadlines.
#include "input.hpp"

#include <ramie/task/timer_queue.hpp>

#include <algorithm>
#include <array>

namespace {

using ramie::detail::timer_node;
using ramie::detail::timer_queue;

struct timer : timer_node {
  std::int64_t deadline_ns = 0;
  bool running = false;
  int fired = 0;
};

std::int64_t fired_until = 0;
void on_fire(timer_node& n) noexcept {
  auto& t = static_cast<timer&>(n);
  fuzz::require(t.running && t.deadline_ns <= fired_until, "a timer fired that was not due");
  t.running = false;
  ++t.fired;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in{data, size};
  timer_queue queue;
  std::array<timer, 24> all;
  for (timer& t : all) t.call = &on_fire;
  std::int64_t now = 0;
  while (!in.empty()) {
    timer& t = all[in.pick(all.size() - 1)];
    switch (in.pick(3)) {
      case 0:
      case 1:
        if (t.running) {
          fuzz::require(queue.remove(t), "a running timer could not be removed");
          t.running = false;
        } else {
          t.deadline_ns = now + static_cast<int>(in.pick(40)) - 8;  // some are late already
          t.running = true;
          queue.add(t, t.deadline_ns);
        }
        break;
      case 2:
        if (!t.running) fuzz::require(!queue.remove(t), "a timer could be removed that does not run");
        break;
      default: {
        now += in.pick(20);
        fired_until = now;
        std::size_t due = 0;
        for (const timer& each : all) due += each.running && each.deadline_ns <= now ? 1 : 0;
        fuzz::require(queue.fire(now) == due, "not all fired that were due");
        for (const timer& each : all)
          fuzz::require(!each.running || each.deadline_ns > now, "a timer that was due did not fire");
        break;
      }
    }
    std::int64_t next = timer_queue::never;
    for (const timer& each : all)
      if (each.running) next = std::min(next, each.deadline_ns);
    fuzz::require(queue.next_ns() == next, "the earliest deadline is wrong");
  }
  for (timer& t : all)
    if (t.running) fuzz::require(queue.remove(t), "a timer was lost");
  return 0;
}
