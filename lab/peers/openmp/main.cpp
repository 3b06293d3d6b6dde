// OpenMP tasks.
#include <common/peer.hpp>
#include <common/skynet.hpp>

#include <array>

namespace {

std::int64_t skynet_node(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  std::array<std::int64_t, peer::fan_out> sums{};
  const std::int64_t part = leaves / peer::fan_out;
  for (std::size_t i = 0; i < sums.size(); ++i) {
#pragma omp task shared(sums) firstprivate(i)
    sums[i] = skynet_node(first + static_cast<std::int64_t>(i) * part, part);
  }
#pragma omp taskwait
  std::int64_t sum = 0;
  for (const std::int64_t s : sums) sum += s;
  return sum;
}

std::int64_t sum_node(std::int64_t low, std::int64_t high) {
  if (low == high) return low;
  const std::int64_t middle = peer::middle_of(low, high);
  std::int64_t left = 0;
#pragma omp task shared(left)
  left = sum_node(low, middle);
  const std::int64_t right = sum_node(middle + 1, high);
#pragma omp taskwait
  return left + right;
}

using measure = std::function<void(const peer::run_once&)>;

template <std::int64_t (*root)(std::int64_t, std::int64_t)>
double seconds_of_team(int workers, std::int64_t low, std::int64_t high, std::int64_t& sum) {
  double seconds = 0;
#pragma omp parallel num_threads(workers)
#pragma omp single
  seconds = peer::seconds_of([&] { sum = root(low, high); });
  return seconds;
}

void skynet(const peer::options& o, const measure& m) {
  const std::int64_t leaves = o.number("leaves", 1'000'000);
  m([&] {
    std::int64_t sum = 0;
    const double seconds = seconds_of_team<skynet_node>(o.workers, 0, leaves, sum);
    return peer::outcome{seconds, peer::skynet_nodes(leaves), sum == peer::skynet_sum(leaves)};
  });
}

void sum_of(const peer::options& o, const measure& m) {
  const std::int64_t high = o.number("high", 10'000'000);
  m([&] {
    std::int64_t sum = 0;
    const double seconds = seconds_of_team<sum_node>(o.workers, 1, high, sum);
    return peer::outcome{seconds, 2 * high - 1, sum == high * (high + 1) / 2};
  });
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run("openmp", "gcc " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__),
                   {{"skynet", "task", "fiber", skynet}, {"sum", "task", "process", sum_of}}, argc, argv);
}
