// oneTBB: fork and join by task_group and by parallel_invoke.
#include <common/peer.hpp>
#include <common/skynet.hpp>

#include <oneapi/tbb.h>

#include <array>

namespace {

std::int64_t skynet_group(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  std::array<std::int64_t, peer::fan_out> sums{};
  const std::int64_t part = leaves / peer::fan_out;
  tbb::task_group group;
  for (std::size_t i = 0; i + 1 < sums.size(); ++i) {
    group.run([&sums, first, part, i] { sums[i] = skynet_group(first + static_cast<std::int64_t>(i) * part, part); });
  }
  group.run_and_wait([&] { sums.back() = skynet_group(first + (peer::fan_out - 1) * part, part); });
  std::int64_t sum = 0;
  for (const std::int64_t s : sums) sum += s;
  return sum;
}

std::int64_t skynet_invoke(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  std::array<std::int64_t, peer::fan_out> sums{};
  const std::int64_t part = leaves / peer::fan_out;
  const auto child = [&](std::size_t i) {
    return [&sums, first, part, i] { sums[i] = skynet_invoke(first + static_cast<std::int64_t>(i) * part, part); };
  };
  tbb::parallel_invoke(child(0), child(1), child(2), child(3), child(4), child(5), child(6), child(7), child(8),
                       child(9));
  std::int64_t sum = 0;
  for (const std::int64_t s : sums) sum += s;
  return sum;
}

std::int64_t sum_invoke(std::int64_t low, std::int64_t high) {
  if (low == high) return low;
  const std::int64_t middle = peer::middle_of(low, high);
  std::int64_t left = 0;
  std::int64_t right = 0;
  tbb::parallel_invoke([&] { left = sum_invoke(low, middle); }, [&] { right = sum_invoke(middle + 1, high); });
  return left + right;
}

std::int64_t sum_group(std::int64_t low, std::int64_t high) {
  if (low == high) return low;
  const std::int64_t middle = peer::middle_of(low, high);
  std::int64_t left = 0;
  std::int64_t right = 0;
  tbb::task_group group;
  group.run([&] { left = sum_group(low, middle); });
  group.run_and_wait([&] { right = sum_group(middle + 1, high); });
  return left + right;
}

using measure = std::function<void(const peer::run_once&)>;

template <class F>
void in_arena(const peer::options& o, const measure& m, F once) {
  const auto threads = static_cast<std::size_t>(o.workers);
  tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads};
  tbb::task_arena arena{o.workers};
  m([&] {
    peer::outcome result{};
    arena.execute([&] { result = once(); });
    return result;
  });
}

template <std::int64_t (*root)(std::int64_t, std::int64_t)>
void skynet(const peer::options& o, const measure& m) {
  const std::int64_t leaves = o.number("leaves", 1'000'000);
  in_arena(o, m, [=] {
    std::int64_t sum = 0;
    const double seconds = peer::seconds_of([&] { sum = root(0, leaves); });
    return peer::outcome{seconds, peer::skynet_nodes(leaves), sum == peer::skynet_sum(leaves)};
  });
}

template <std::int64_t (*root)(std::int64_t, std::int64_t)>
void sum_of(const peer::options& o, const measure& m) {
  const std::int64_t high = o.number("high", 10'000'000);
  in_arena(o, m, [=] {
    std::int64_t sum = 0;
    const double seconds = peer::seconds_of([&] { sum = root(1, high); });
    return peer::outcome{seconds, 2 * high - 1, sum == high * (high + 1) / 2};
  });
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run("onetbb", std::to_string(TBB_VERSION_MAJOR) + "." + std::to_string(TBB_VERSION_MINOR),
                   {{"skynet", "task_group", "fiber", skynet<skynet_group>},
                    {"skynet", "parallel_invoke", "fiber", skynet<skynet_invoke>},
                    {"sum", "parallel_invoke", "process", sum_of<sum_invoke>},
                    {"sum", "task_group", "process", sum_of<sum_group>}},
                   argc, argv);
}
