// Does a tick that is due every millisecond come every millisecond while other fibers compute without end?
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramie::lab {
namespace {

using std::chrono::steady_clock;

struct lateness {
  std::vector<double> us;
  std::int64_t missed = 0;
};

/// Ticks that were due before the last one was served count as missed, as with a ticker that drops them.
lateness tick(std::int64_t ticks, steady_clock::duration period) {
  lateness found;
  auto due = steady_clock::now();
  for (std::int64_t i = 0; i < ticks; ++i) {
    due += period;
    ramie::this_fiber::sleep_until(due);
    const auto now = steady_clock::now();
    found.us.push_back(std::chrono::duration<double, std::micro>(now - due).count());
    for (; now - due >= period; due += period) ++found.missed;
  }
  std::sort(found.us.begin(), found.us.end());
  return found;
}

run_result beside_hogs(session& s) {
  const std::int64_t hogs = s.parameter("hogs");
  const std::int64_t ticks = s.parameter("ticks");
  const std::chrono::microseconds period{s.parameter("period-us")};
  std::atomic<bool> stop{false};
  lateness found;
  const double seconds = s.time([&] {
    ramie::scope computing;
    for (std::int64_t i = 0; i < hogs; ++i) {
      computing.spawn([&stop] {
        while (!stop.load(std::memory_order_relaxed)) {
        }
      });
    }
    found = tick(ticks, period);
    stop.store(true, std::memory_order_relaxed);
    computing.join();
  });
  const std::size_t n = found.us.size();
  return {.seconds = seconds,
          .units = ticks,
          .ok = n == static_cast<std::size_t>(ticks),
          .figures = {{"lateness_p50_us", found.us[n / 2]},
                      {"lateness_p99_us", found.us[n * 99 / 100]},
                      {"lateness_max_us", found.us.back()},
                      {"missed_ticks", static_cast<double>(found.missed)}}};
}

}  // namespace

workload ticker_workload() {
  return {
      .name = "ticker",
      .summary = "a tick every millisecond beside fibers that compute without end",
      .unit = "tick",
      .parameters = {{.name = "hogs", .help = "fibers that never yield", .standard = 8, .min = 0, .max = 64},
                     {.name = "ticks", .help = "ticks to wait for", .standard = 1000, .min = 1, .max = 1'000'000},
                     {.name = "period-us",
                      .help = "microseconds from tick to tick",
                      .standard = 1000,
                      .min = 10,
                      .max = 1'000'000}},
      .styles = {{"sleep", "a fiber that sleeps until the next tick is due", true, beside_hogs}},
      .yardstick = "",
      .standard_runs = 3,
      .standard_warmup = 0,
  };
}

}  // namespace ramie::lab
