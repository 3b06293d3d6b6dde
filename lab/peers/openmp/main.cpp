// OpenMP: tasks and loops. Compiled by g++ for its libgomp, and by clang for libomp, whose styles have a prefix.
#include <common/algorithm_entries.hpp>
#include <common/peer.hpp>
#include <common/skynet.hpp>
#include <common/tasks/entries.hpp>
#include <common/wavefront.hpp>

#include <array>
#include <string>

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

/// Experiment 9, as the Barcelona suite has it: a task for each, then a wait for all.
struct task_crew {
  template <class F, class G>
  static void both(const F& f, const G& g) {
#pragma omp task shared(f)
    f();
    g();
#pragma omp taskwait
  }
  template <class F>
  static void all(std::size_t n, const F& f) {
    for (std::size_t i = 0; i < n; ++i) {
#pragma omp task shared(f) firstprivate(i)
      f(i);
    }
#pragma omp taskwait
  }
  template <class T, class F>
  static T sum(std::size_t n, const F& f) {
    return tasks::sum_of_parts<task_crew, T>(n, f);
  }
};

void in_team(const peer::options& o, const measure& m, const peer::run_once& once) {
  m([&] {
    peer::outcome result{};
#pragma omp parallel num_threads(o.workers)
#pragma omp single
    result = once();
    return result;
  });
}

/// OpenMP has no graph that is made once: each run makes tasks that depend on others.
class depending_tasks {
 public:
  explicit depending_tasks(wavefront::grid& g) : grid_{g}, marks_((g.side() + 1) * (g.side() + 1)) {}
  void run() {
    const std::size_t stride = grid_.side() + 1;  // a row above and a column to the left that nothing depends on
    char* const marks = marks_.data();
    wavefront::grid& g = grid_;
    for (std::size_t r = 0; r < g.side(); ++r)
      for (std::size_t c = 0; c < g.side(); ++c) {
        char* const here = marks + (r + 1) * stride + c + 1;
        const char* const above = here - stride;
        const char* const left = here - 1;
#pragma omp task shared(g) firstprivate(r, c) depend(in : *above, *left) depend(out : *here)
        g.fill(r, c);
      }
#pragma omp taskwait
  }

 private:
  wavefront::grid& grid_;
  std::vector<char> marks_;
};

void wave(const peer::options& o, const measure& m) {
  in_team(o, m, [&o] {
    const wavefront::result r =
        wavefront::run<depending_tasks>(static_cast<std::size_t>(o.number("side", 64)), o.number("work", 200),
                                        [](auto&& f) { return peer::seconds_of(f); });
    return peer::outcome{r.seconds, r.tasks, r.ok};
  });
}

using algorithms::inputs;
using algorithms::numbers;

int team = 1;

#ifdef __clang__
const std::string prefix = "libomp-";
const std::string compiler = "clang " __clang_version__;
#else
const std::string prefix;
const std::string compiler = "gcc " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__);
#endif

struct by_loops {
  template <class F>
  void for_each(numbers v, F f) const {
    double* const at = v.data();
    const std::size_t n = v.size();
#pragma omp parallel for num_threads(team)
    for (std::size_t i = 0; i < n; ++i) f(at[i]);
  }
  template <class F>
  void transform(inputs v, double* out, F f) const {
    const double* const at = v.data();
    const std::size_t n = v.size();
#pragma omp parallel for num_threads(team)
    for (std::size_t i = 0; i < n; ++i) out[i] = f(at[i]);
  }
  template <class F>
  double reduce(inputs v, F f) const {
    const double* const at = v.data();
    const std::size_t n = v.size();
    double sum = 0;
#pragma omp parallel for simd num_threads(team) reduction(+ : sum)
    for (std::size_t i = 0; i < n; ++i) sum += f(at[i]);
    return sum;
  }
  template <class F>
  std::int64_t count_if(inputs v, F f) const {
    const double* const at = v.data();
    const std::size_t n = v.size();
    std::int64_t found = 0;
#pragma omp parallel for num_threads(team) reduction(+ : found)
    for (std::size_t i = 0; i < n; ++i) found += f(at[i]) ? 1 : 0;
    return found;
  }
  template <class F>
  void histogram(inputs v, std::span<std::uint64_t> bins, F f) const {
    const double* const at = v.data();
    const std::size_t n = v.size();
    std::uint64_t* const counts = bins.data();
    const std::size_t size = bins.size();
#pragma omp parallel for num_threads(team) reduction(+ : counts[ : size])
    for (std::size_t i = 0; i < n; ++i) ++counts[f(at[i])];
  }
  // The schedule for elements that take different times.
  template <class F>
  void loop(std::size_t n, F f) const {
#pragma omp parallel for num_threads(team) schedule(dynamic, 8)
    for (std::size_t i = 0; i < n; ++i) f(i);
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<peer::entry> entries = peer::algorithm_entries<by_loops>(
      prefix + "parallel_for",
      {"for_each", "transform", "reduce", "count_if", "histogram", "triangle", "power_law", "long_end"},
      [](const peer::options& o, const measure& m, const peer::run_once& once) {
        team = o.workers;
        m(once);
      });
  for (peer::entry& e : peer::task_entries<task_crew>(prefix + "task", in_team)) entries.push_back(std::move(e));
  entries.insert(entries.begin(), {{"skynet", prefix + "task", "fiber", skynet},
                                   {"sum", prefix + "task", "process", sum_of},
                                   {"wavefront", prefix + "depend", "task", wave}});
  return peer::run("openmp", compiler, entries, argc, argv);
}
