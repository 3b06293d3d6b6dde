// Timers, many at once: started and cancelled, started and fired, and fibers that sleep.
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>
#include <ramie/task/timer_queue.hpp>
#include <ramie/worker/worker.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramie::lab {
namespace {

using std::chrono::steady_clock;

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("count")); }

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

/// The timers that sleeping, timed waits and delayed messages are made of.
void start_timer(ramie::detail::timer_node& node, std::int64_t deadline_ns) {
  ramie::detail::current_worker()->timers_here->add(node, deadline_ns);
}

run_result cancelled(session& s) {
  const std::int64_t count = s.parameter("count");
  std::vector<ramie::detail::timer_node> nodes(static_cast<std::size_t>(count));
  std::int64_t removed = 0;
  double starting = 0;
  const double seconds = s.time([&] {
    constexpr std::int64_t hour_ns = 3'600'000'000'000;
    constexpr std::int64_t second_ns = 1'000'000'000;
    const auto start = steady_clock::now();
    const std::int64_t now_ns = ramie::detail::now_ns();
    for (std::int64_t i = 0; i < count; ++i) {
      start_timer(nodes[static_cast<std::size_t>(i)], now_ns + hour_ns + i % 1000 * second_ns);
    }
    starting = seconds_since(start);
    for (auto& node : nodes) removed += static_cast<std::int64_t>(node.queue->remove(node));
  });
  const auto each = 1e9 / static_cast<double>(count);
  return {.seconds = seconds,
          .units = count,
          .ok = removed == count,
          .figures = {{"start_ns_per_timer", starting * each}, {"cancel_ns_per_timer", (seconds - starting) * each}}};
}

/// Decrements a shared counter; the last one signals.
struct counted_timer : ramie::detail::timer_node {
  std::atomic<std::int64_t>* left;
  ramie::channel<bool>* all_fired;

  static void fire(ramie::detail::timer_node& fired) noexcept {
    auto& self = static_cast<counted_timer&>(fired);
    // The channel outlives the last decrement, this timer does not outlive any.
    ramie::channel<bool>& done = *self.all_fired;
    if (self.left->fetch_sub(1, std::memory_order_acq_rel) == 1) static_cast<void>(done.try_send(true));
  }
};

run_result fired(session& s) {
  const std::int64_t count = s.parameter("count");
  std::atomic<std::int64_t> left{count};
  ramie::channel<bool> all_fired{1};
  std::vector<counted_timer> timers(static_cast<std::size_t>(count));
  const double seconds = s.time([&] {
    for (std::int64_t i = 0; i < count; ++i) {
      counted_timer& timer = timers[static_cast<std::size_t>(i)];
      timer.call = &counted_timer::fire;
      timer.left = &left;
      timer.all_fired = &all_fired;
      start_timer(timer, ramie::detail::now_ns() + i % 1000 * 1000);
    }
    all_fired.recv();
  });
  return {.seconds = seconds, .units = count, .ok = left.load() == 0};
}

run_result slept(session& s) {
  const std::int64_t count = s.parameter("count");
  std::atomic<std::int64_t> awake{0};
  const double seconds = s.time([&] {
    ramie::scope sleepers;
    for (std::int64_t i = 0; i < count; ++i) {
      sleepers.spawn([i, &awake] {
        ramie::this_fiber::sleep_for(std::chrono::microseconds{i % 1000});
        awake.fetch_add(1, std::memory_order_relaxed);
      });
    }
    sleepers.join();
  });
  return {.seconds = seconds, .units = count, .ok = awake.load() == count};
}

}  // namespace

workload timers_workload() {
  return {
      .name = "timers",
      .summary = "many timers at once",
      .unit = "timer",
      .parameters = {{.name = "count", .help = "timers", .standard = 1'000'000, .min = 1, .max = 100'000'000}},
      .styles =
          {
              {"plain", "a noinline function call in place of each timer, the yardstick", false, by_plain},
              {"cancel", "all started, due in an hour, then all cancelled", true, cancelled},
              {"fire", "each due within a millisecond of its start; until the last has called", true, fired},
              {"sleep", "fibers that sleep up to a millisecond; until the last has ended", true, slept},
          },
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
