// Several fibers take one lock again and again, and do next to nothing with it.
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace ramie::lab {
namespace {

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("fibers") * s.parameter("count")); }

template <class Mutex>
void lock_many(Mutex& mutex, std::int64_t& counter, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::lock_guard guard{mutex};
    ++counter;
  }
}

run_result by_mutex(session& s) {
  const std::int64_t fibers = s.parameter("fibers");
  const std::int64_t count = s.parameter("count");
  ramie::mutex mutex;
  std::int64_t counter = 0;
  const double seconds = s.time([&] {
    ramie::scope all;
    for (std::int64_t i = 0; i < fibers; ++i) all.spawn([&] { lock_many(mutex, counter, count); });
    all.join();
  });
  return {.seconds = seconds, .units = fibers * count, .ok = counter == fibers * count};
}

run_result by_std(session& s) {
  const std::int64_t fibers = s.parameter("fibers");
  const std::int64_t count = s.parameter("count");
  std::mutex mutex;
  std::int64_t counter = 0;
  const double seconds = s.time([&] {
    std::vector<std::thread> all;
    all.reserve(static_cast<std::size_t>(fibers));
    for (std::int64_t i = 0; i < fibers; ++i) all.emplace_back([&] { lock_many(mutex, counter, count); });
    for (std::thread& t : all) t.join();
  });
  return {.seconds = seconds, .units = fibers * count, .ok = counter == fibers * count};
}

}  // namespace

workload mutex_workload() {
  return {
      .name = "mutex",
      .summary = "fibers that do nothing but lock, count and unlock",
      .unit = "lock",
      .parameters = {{.name = "fibers", .help = "fibers that want the lock", .standard = 4, .min = 1, .max = 10'000},
                     {.name = "count", .help = "locks of each", .standard = 1'000'000, .min = 1, .max = 1'000'000'000}},
      .styles =
          {
              {"plain", "a noinline function call in place of each lock, the yardstick", false, by_plain},
              {"mutex", "ramie::mutex in fibers", true, by_mutex},
              {"std", "std::mutex in as many plain threads", false, by_std},
          },
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
