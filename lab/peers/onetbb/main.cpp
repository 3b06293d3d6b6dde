// oneTBB: fork and join by task_group and by parallel_invoke, and algorithms.
#include <common/algorithm_entries.hpp>
#include <common/peer.hpp>
#include <common/skynet.hpp>
#include <common/tasks/entries.hpp>
#include <common/wavefront.hpp>

#include <oneapi/tbb.h>

#include <array>
#include <deque>
#include <functional>

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

/// A range of numbers, split in two down to single ones: the library's own way to add up.
std::int64_t add_up(std::int64_t low, std::int64_t end) {
  return tbb::parallel_reduce(
      tbb::blocked_range<std::int64_t>{low, end, 1}, std::int64_t{0},
      [](const tbb::blocked_range<std::int64_t>& range, std::int64_t sum) {
        for (std::int64_t i = range.begin(); i != range.end(); ++i) sum += i;
        return sum;
      },
      std::plus<>{}, tbb::simple_partitioner{});
}

std::int64_t skynet_reduce(std::int64_t first, std::int64_t leaves) { return add_up(first, first + leaves); }
std::int64_t sum_reduce(std::int64_t low, std::int64_t high) { return add_up(low, high + 1); }

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

using algorithms::inputs;
using algorithms::numbers;

struct by_tbb {
  using part = tbb::blocked_range<std::size_t>;
  template <class F>
  void for_each(numbers v, F f) const {
    tbb::parallel_for(part{0, v.size()}, [=](const part& p) {
      for (std::size_t i = p.begin(); i != p.end(); ++i) f(v[i]);
    });
  }
  template <class F>
  void transform(inputs v, double* out, F f) const {
    tbb::parallel_for(part{0, v.size()}, [=](const part& p) {
      for (std::size_t i = p.begin(); i != p.end(); ++i) out[i] = f(v[i]);
    });
  }
  template <class F>
  double reduce(inputs v, F f) const {
    return tbb::parallel_reduce(
        part{0, v.size()}, 0.0,
        [=](const part& p, double sum) {
          for (std::size_t i = p.begin(); i != p.end(); ++i) sum += f(v[i]);
          return sum;
        },
        std::plus<>{});
  }
  template <class F>
  std::int64_t count_if(inputs v, F f) const {
    return tbb::parallel_reduce(
        part{0, v.size()}, std::int64_t{0},
        [=](const part& p, std::int64_t n) {
          for (std::size_t i = p.begin(); i != p.end(); ++i) n += f(v[i]) ? 1 : 0;
          return n;
        },
        std::plus<>{});
  }
  std::size_t min_element(inputs v) const {
    return tbb::parallel_reduce(
        part{0, v.size()}, std::size_t{0},
        [=](const part& p, std::size_t least) {
          for (std::size_t i = p.begin(); i != p.end(); ++i)
            if (v[i] < v[least]) least = i;
          return least;
        },
        [=](std::size_t a, std::size_t b) { return v[b] < v[a] || (v[b] == v[a] && b < a) ? b : a; });
  }
  void inclusive_scan(inputs v, double* out) const {
    tbb::parallel_scan(
        part{0, v.size()}, 0.0,
        [=](const part& p, double sum, bool is_final) {
          for (std::size_t i = p.begin(); i != p.end(); ++i) {
            sum += v[i];
            if (is_final) out[i] = sum;
          }
          return sum;
        },
        std::plus<>{});
  }
  void sort(numbers v) const { tbb::parallel_sort(v.begin(), v.end()); }
  template <class F>
  void loop(std::size_t n, F f) const {
    tbb::parallel_for(std::size_t{0}, n, f);
  }
};

/// Experiment 9.
struct group_crew {
  template <class F, class G>
  static void both(F&& f, G&& g) {
    tbb::parallel_invoke(f, g);
  }
  template <class F>
  static void all(std::size_t n, const F& f) {
    tbb::task_group group;
    for (std::size_t i = 0; i < n; ++i) group.run([&f, i] { f(i); });
    group.wait();
  }
  template <class T, class F>
  static T sum(std::size_t n, const F& f) {
    return tasks::sum_of_parts<group_crew, T>(n, f);
  }
};

class flow_graph {
  using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

 public:
  explicit flow_graph(wavefront::grid& g) {
    for (std::size_t r = 0; r < g.side(); ++r)
      for (std::size_t c = 0; c < g.side(); ++c) {
        nodes_.emplace_back(graph_, [&g, r, c](const tbb::flow::continue_msg&) { g.fill(r, c); });
        if (c > 0) tbb::flow::make_edge(nodes_[nodes_.size() - 2], nodes_.back());
        if (r > 0) tbb::flow::make_edge(nodes_[nodes_.size() - 1 - g.side()], nodes_.back());
      }
  }
  void run() {
    nodes_.front().try_put({});
    graph_.wait_for_all();
  }

 private:
  tbb::flow::graph graph_;
  std::deque<node> nodes_;
};

void wave(const peer::options& o, const measure& m) {
  in_arena(o, m, [&o] {
    const wavefront::result r =
        wavefront::run<flow_graph>(static_cast<std::size_t>(o.number("side", 64)), o.number("work", 200),
                                   [](auto&& f) { return peer::seconds_of(f); });
    return peer::outcome{r.seconds, r.tasks, r.ok};
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto around = [](const peer::options& o, const measure& m, const peer::run_once& once) {
    in_arena(o, m, once);
  };
  std::vector<peer::entry> entries =
      peer::algorithm_entries<by_tbb>("parallel",
                                      {"for_each", "transform", "reduce", "count_if", "min_element", "inclusive_scan",
                                       "sort", "triangle", "power_law", "long_end"},
                                      around);
  for (peer::entry& e : peer::task_entries<group_crew>("task_group", around)) entries.push_back(std::move(e));
  entries.insert(entries.begin(), {{"skynet", "parallel_reduce", "fiber", skynet<skynet_reduce>},
                                   {"sum", "parallel_reduce", "process", sum_of<sum_reduce>},
                                   {"skynet", "task_group", "fiber", skynet<skynet_group>},
                                   {"skynet", "parallel_invoke", "fiber", skynet<skynet_invoke>},
                                   {"sum", "parallel_invoke", "process", sum_of<sum_invoke>},
                                   {"sum", "task_group", "process", sum_of<sum_group>},
                                   {"wavefront", "flow_graph", "task", wave}});
  return peer::run("onetbb", std::to_string(TBB_VERSION_MAJOR) + "." + std::to_string(TBB_VERSION_MINOR), entries, argc,
                   argv);
}
