// Experiment 2: the sum of a range of numbers, split in the middle down to single numbers, each half a lightweight
// thread of its own.
#include <lab/harness/opaque.hpp>
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <cstdint>

namespace ramie::lab {
namespace {

// Every function below sums up [low, high].
constexpr std::int64_t middle_of(std::int64_t low, std::int64_t high) { return low + (high - low) / 2; }

RAMIE_LAB_CALL std::int64_t by_plain(std::int64_t low, std::int64_t high) {
  if (low == high) return low;
  const std::int64_t middle = middle_of(low, high);
  const std::int64_t left = opaque(by_plain(low, middle));
  return left + opaque(by_plain(middle + 1, high));
}

RAMIE_LAB_CALL std::int64_t by_fork_join(std::int64_t low, std::int64_t high) {
  if (low == high) return low;
  const std::int64_t middle = middle_of(low, high);
  auto [left, right] =
      ramie::fork_join([=] { return by_fork_join(low, middle); }, [=] { return by_fork_join(middle + 1, high); });
  return left + right;
}

RAMIE_LAB_CALL std::int64_t by_scope(std::int64_t low, std::int64_t high) {
  if (low == high) return low;
  const std::int64_t middle = middle_of(low, high);
  std::int64_t left = 0;
  std::int64_t right = 0;
  ramie::scope halves;
  halves.spawn([&left, low, middle] { left = by_scope(low, middle); });
  halves.spawn([&right, middle, high] { right = by_scope(middle + 1, high); });
  halves.join();
  return left + right;
}

RAMIE_LAB_CALL std::int64_t by_spawn(std::int64_t low, std::int64_t high) {
  if (low == high) return low;
  const std::int64_t middle = middle_of(low, high);
  auto left = ramie::spawn([=] { return by_spawn(low, middle); });
  auto right = ramie::spawn([=] { return by_spawn(middle + 1, high); });
  return left.join() + right.join();
}

/// Go's way: both halves send their sums on a channel.
void by_channel_node(ramie::channel<std::int64_t>& parent, std::int64_t low, std::int64_t high) {
  if (low == high) {
    static_cast<void>(parent.send(low));
    return;
  }
  const std::int64_t middle = middle_of(low, high);
  ramie::channel<std::int64_t> halves{2};
  ramie::spawn([&halves, low, middle] { by_channel_node(halves, low, middle); }).detach();
  ramie::spawn([&halves, middle, high] { by_channel_node(halves, middle + 1, high); }).detach();
  const std::int64_t one = *halves.recv();
  static_cast<void>(parent.send(one + *halves.recv()));
}

std::int64_t by_channel(std::int64_t low, std::int64_t high) {
  ramie::channel<std::int64_t> root{1};
  ramie::spawn([&root, low, high] { by_channel_node(root, low, high); }).detach();
  return *root.recv();
}

using sum_function = std::int64_t (*)(std::int64_t low, std::int64_t high);

template <sum_function sum_of>
run_result run(session& s) {
  const std::int64_t high = s.parameter("high");
  std::int64_t sum = 0;
  const double seconds = s.time([&] { sum = sum_of(1, opaque_input(high)); });
  return {.seconds = seconds, .units = 2 * high - 1, .ok = sum == high * (high + 1) / 2};
}

}  // namespace

workload sum_workload() {
  return {
      .name = "sum",
      .summary = "experiment 2: the sum of 1..high, split in the middle down to single numbers",
      .unit = "process",
      .parameters = {{.name = "high",
                      .help = "the greatest number; there are 2*high - 1 processes",
                      .standard = 10'000'000,
                      .min = 1,
                      .max = 3'000'000'000}},  // twice the sum still fits into 64 bits
      .styles =
          {
              {"plain", "noinline function calls, the yardstick", false, run<by_plain>},
              {"fork_join", "one half forked, the other called", true, run<by_fork_join>},
              {"scope", "both halves spawned into a scope", true, run<by_scope>},
              {"spawn", "both halves spawned as fibers and joined", true, run<by_spawn>},
              {"channel", "both halves spawned as fibers that report on a channel with room for two", true,
               run<by_channel>},
          },
  };
}

}  // namespace ramie::lab
