// Experiment 4: a function that takes n square roots and reports, called X times, and then as X fibers.
#include <lab/harness/opaque.hpp>
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace ramie::lab {
namespace {

using results = ramie::channel<bool>;

RAMIE_LAB_CALL void take_roots(std::int64_t n, results& done) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double thirteen = 13;
    asm("" : "+x"(thirteen));  // or the compiler computes the root once
    sum += std::sqrt(thirteen);
  }
  static_cast<void>(done.send(sum > 0));
}

std::int64_t collect(results& done, std::int64_t count) {
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < count; ++i) right += static_cast<std::int64_t>(*done.recv());
  return right;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Both in one run, so that both see the same machine. The channel has room for all results: no send waits.
run_result by_channel(session& s) {
  const std::int64_t n = opaque_input(s.parameter("n"));
  const std::int64_t x = s.parameter("x");
  std::int64_t right = 0;
  double direct = 0;
  double fibers = 0;
  s.time([&] {
    results done{static_cast<std::size_t>(x)};
    auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < x; ++i) take_roots(n, done);
    right += collect(done, x);
    direct = seconds_since(start);
    start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < x; ++i) ramie::spawn([n, &done] { take_roots(n, done); }).detach();
    right += collect(done, x);
    fibers = seconds_since(start);
  });
  return {
      .seconds = fibers,
      .units = x,
      .ok = right == 2 * x,
      .figures = {{"direct_ns_per_call", direct * 1e9 / static_cast<double>(x)}, {"share_of_direct", direct / fibers}}};
}

}  // namespace

workload overhead_workload() {
  return {
      .name = "overhead",
      .summary = "experiment 4: n square roots and a result sent, called directly and as a fiber each time",
      .unit = "call",
      .parameters =
          {{.name = "n", .help = "square roots each", .standard = 1, .min = 1, .max = 1'000'000},
           {.name = "x", .help = "calls, and then fibers", .standard = 100'000, .min = 1, .max = 100'000'000}},
      .styles = {{"channel", "a fiber for each call; share_of_direct is the time of the calls by that of the fibers",
                  true, by_channel}},
      .yardstick = "",
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
