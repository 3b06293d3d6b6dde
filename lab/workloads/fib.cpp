// Fibonacci numbers by their definition: nothing but calls, so nothing but what a fork costs.
#include <lab/harness/opaque.hpp>
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <cstdint>

namespace ramie::lab {
namespace {

RAMIE_LAB_CALL std::int64_t by_plain(std::int64_t n) {
  if (n < 2) return n;
  const std::int64_t a = opaque(by_plain(n - 1));
  return a + opaque(by_plain(n - 2));
}

RAMIE_LAB_CALL std::int64_t by_fork_join(std::int64_t n) {
  if (n < 2) return n;
  auto [a, b] = ramie::fork_join([=] { return by_fork_join(n - 1); }, [=] { return by_fork_join(n - 2); });
  return a + b;
}

/// fib(n) by addition, to check against.
std::int64_t expected(std::int64_t n) {
  std::int64_t a = 0;
  std::int64_t b = 1;
  for (; n > 0; --n) {
    a += b;
    std::swap(a, b);
  }
  return a;
}

using fib_function = std::int64_t (*)(std::int64_t n);

template <fib_function fib>
run_result run(session& s) {
  const std::int64_t n = s.parameter("n");
  std::int64_t result = 0;
  const double seconds = s.time([&] { result = fib(opaque_input(n)); });
  const std::int64_t calls = 2 * expected(n + 1) - 1;
  return {.seconds = seconds, .units = calls, .ok = result == expected(n)};
}

}  // namespace

workload fib_workload() {
  return {
      .name = "fib",
      .summary = "Fibonacci numbers by their definition: the price of a fork",
      .unit = "call",
      .parameters = {{.name = "n", .help = "which Fibonacci number", .standard = 40, .min = 0, .max = 60}},
      .styles =
          {
              {"plain", "noinline function calls, the yardstick", false, run<by_plain>},
              {"fork_join", "fib(n - 1) forked, fib(n - 2) called", true, run<by_fork_join>},
          },
  };
}

}  // namespace ramie::lab
