// The cost of an idle runtime.
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdint>
#include <thread>

namespace ramie::lab {
namespace {

/// CPU time while the calling thread sleeps.
run_result idle_for(std::int64_t seconds) {
  const double before = process_cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds{seconds});
  const double used = process_cpu_seconds() - before;
  return {.seconds = used,
          .units = seconds,
          .ok = true,
          .figures = {{"cpu_percent", 100 * used / static_cast<double>(seconds)}}};
}

run_result by_plain(session& s) { return idle_for(s.parameter("seconds")); }

run_result unused(session& s) {
  // It has worked before, or threads that are started on demand would be missing.
  s.runtime().run([] { ramie::spawn([] {}).join(); });
  return idle_for(s.parameter("seconds"));
}

run_result all_asleep(session& s) {
  auto sleeper = s.runtime().spawn(
      [seconds = s.parameter("seconds")] { ramie::this_fiber::sleep_for(std::chrono::seconds{seconds + 1}); });
  run_result result = idle_for(s.parameter("seconds"));
  sleeper.join();
  return result;
}

}  // namespace

workload idle_workload() {
  return {
      .name = "idle",
      .summary = "CPU time of a runtime with nothing to do; seconds are CPU time, units are real time",
      .unit = "second",
      .parameters = {{.name = "seconds", .help = "how long to do nothing", .standard = 5, .min = 1, .max = 3600}},
      .styles =
          {
              {"plain", "no runtime: what the measurement itself uses", false, by_plain},
              {"unused", "a runtime that has run one fiber and has none left", true, unused},
              {"asleep", "a runtime whose only fiber sleeps", true, all_asleep},
          },
      .yardstick = "",
      .standard_runs = 1,
      .standard_warmup = 0,
  };
}

}  // namespace ramie::lab
