// How much memory lightweight threads take: parked ones, which have a stack, and tasks that were not started.
#include <lab/harness/error.hpp>
#include <lab/harness/memory.hpp>
#include <lab/harness/session.hpp>
#include <lab/workloads/chain.hpp>
#include <lab/workloads/registry.hpp>

#include <fmt/core.h>
#include <ramie/ramie.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ramie::lab {
namespace {

/// Refuses sizes that would exhaust the machine's memory: that kills other processes as well.
void check_memory(std::int64_t count, std::int64_t bytes_each) {
  const double wanted = static_cast<double>(count) * static_cast<double>(bytes_each);
  const auto available = static_cast<double>(available_memory());
  constexpr double share_max = 0.9;
  if (wanted <= available * share_max) return;
  constexpr double gib = 1024.0 * 1024 * 1024;
  throw lab_error{fmt::format("--count {}: would take about {:.1f} GiB, {:.1f} GiB are available", count, wanted / gib,
                              available / gib)};
}

struct growth {
  double resident_bytes;
  double page_table_bytes;
};

growth since(const memory_use& before, std::int64_t count) {
  const memory_use now = read_memory_use();
  const auto units = static_cast<double>(count);
  return {.resident_bytes = static_cast<double>(now.resident_bytes - before.resident_bytes) / units,
          .page_table_bytes = static_cast<double>(now.page_table_bytes - before.page_table_bytes) / units};
}

run_result parked(session& s) {
  constexpr std::int64_t bytes_each_about = 8192;
  const std::int64_t count = s.parameter("count");
  check_memory(count, bytes_each_about);
  memory_use before{};
  growth grown{};
  fiber_chain chain{1, count, [&] { grown = since(before, count); }};
  std::int64_t links = 0;
  s.time([&] {
    before = read_memory_use();
    links = chain.run();
  });
  return {.seconds = chain.parking_seconds(),
          .units = count,
          .ok = links == count,
          .figures = {{"resident_bytes_per_fiber", grown.resident_bytes},
                      {"page_table_bytes_per_fiber", grown.page_table_bytes},
                      {"wake_and_end_ns_per_fiber", chain.ending_seconds() * 1e9 / static_cast<double>(count)}}};
}

/// As the program in Go: all are spawned, all wait on one channel, which is then closed.
run_result on_channel(session& s) {
  constexpr std::int64_t bytes_each_about = 8192;
  constexpr std::int64_t burst = 1000;  // a worker that spawned them all at once would look stalled
  const std::int64_t count = s.parameter("count");
  check_memory(count, bytes_each_about);
  ramie::channel<std::int64_t> gate;
  std::atomic<std::int64_t> ended{0};
  growth grown{};
  double parking = 0;
  double ending = 0;
  s.time([&] {
    const memory_use before = read_memory_use();
    auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 1; i <= count; ++i) {
      ramie::spawn([&gate, &ended] {
        if (!gate.recv()) ended.fetch_add(1, std::memory_order_release);
      }).detach();
      if (i % burst == 0) ramie::this_fiber::yield();
    }
    while (static_cast<std::int64_t>(gate.statistics().waiting_receivers) < count) ramie::this_fiber::yield();
    parking = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    grown = since(before, count);
    start = std::chrono::steady_clock::now();
    gate.close();
    while (ended.load(std::memory_order_acquire) < count) ramie::this_fiber::yield();
    ending = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  return {.seconds = parking,
          .units = count,
          .ok = ended.load() == count,
          .figures = {{"resident_bytes_per_fiber", grown.resident_bytes},
                      {"page_table_bytes_per_fiber", grown.page_table_bytes},
                      {"wake_and_end_ns_per_fiber", ending * 1e9 / static_cast<double>(count)}}};
}

/// Spare workers would start the tasks once making them takes long enough to look like a stall.
void without_spares(ramie::runtime_options& options) { options.spare_workers = 0; }

run_result unstarted(session& s) {
  constexpr std::int64_t bytes_each_about = 512;
  const std::int64_t count = s.parameter("count");
  check_memory(count, bytes_each_about);
  std::atomic<std::int64_t> started{0};
  std::int64_t started_early = 0;
  growth grown{};
  double seconds = 0;
  s.time([&] {
    const memory_use before = read_memory_use();
    const auto start = std::chrono::steady_clock::now();
    // No suspension until all are made.
    for (std::int64_t i = 0; i < count; ++i) {
      ramie::spawn([&started] { started.fetch_add(1, std::memory_order_release); }).detach();
    }
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    started_early = started.load(std::memory_order_acquire);
    grown = since(before, count);
    while (started.load(std::memory_order_acquire) < count) ramie::this_fiber::yield();
  });
  return {.seconds = seconds,
          .units = count,
          .ok = started.load() == count,
          .figures = {{"resident_bytes_per_task", grown.resident_bytes},
                      {"page_table_bytes_per_task", grown.page_table_bytes},
                      {"share_started_early", static_cast<double>(started_early) / static_cast<double>(count)}}};
}

}  // namespace

workload memory_workload() {
  return {
      .name = "memory",
      .summary = "resident bytes of a parked fiber and of a task not started, and the time to make one, cold",
      .unit = "fiber",
      .parameters = {{.name = "count", .help = "fibers at once", .standard = 1'000'000, .min = 1, .max = 100'000'000}},
      .styles =
          {
              {"parked", "fibers that have started and wait in a join", true, parked},
              {"channel", "fibers that wait on one channel", true, on_channel},
              {"unstarted", "tasks spawned by a fiber that does not let them run yet", true, unstarted, without_spares},
          },
      .yardstick = "",
      .standard_runs = 3,
      .standard_warmup = 0,
      .standard_workers = "1",
      .fresh_process_each_run = true,
  };
}

}  // namespace ramie::lab
