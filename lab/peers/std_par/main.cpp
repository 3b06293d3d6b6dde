// The standard library's parallel algorithms, std::execution::par, as gcc's library has them: on top of oneTBB.
#include <common/algorithm_entries.hpp>

#include <oneapi/tbb.h>

#include <algorithm>
#include <execution>
#include <functional>
#include <numeric>
#include <ranges>

namespace {

using algorithms::inputs;
using algorithms::numbers;
constexpr auto par = std::execution::par;

struct by_std {
  template <class F>
  void for_each(numbers v, F f) const {
    std::for_each(par, v.begin(), v.end(), f);
  }
  template <class F>
  void transform(inputs v, double* out, F f) const {
    std::transform(par, v.begin(), v.end(), out, f);
  }
  template <class F>
  double reduce(inputs v, F f) const {
    return std::transform_reduce(par, v.begin(), v.end(), 0.0, std::plus<>{}, f);
  }
  template <class F>
  std::int64_t count_if(inputs v, F f) const {
    return std::count_if(par, v.begin(), v.end(), f);
  }
  std::size_t min_element(inputs v) const {
    return static_cast<std::size_t>(std::min_element(par, v.begin(), v.end()) - v.begin());
  }
  std::size_t find(inputs v, double x) const {
    return static_cast<std::size_t>(std::find(par, v.begin(), v.end(), x) - v.begin());
  }
  void inclusive_scan(inputs v, double* out) const { std::inclusive_scan(par, v.begin(), v.end(), out); }
  template <class F>
  std::size_t copy_if(inputs v, double* out, F f) const {
    return static_cast<std::size_t>(std::copy_if(par, v.begin(), v.end(), out, f) - out);
  }
  void merge(inputs a, inputs b, double* out) const { std::merge(par, a.begin(), a.end(), b.begin(), b.end(), out); }
  void sort(numbers v) const { std::sort(par, v.begin(), v.end()); }
  void stable_sort(numbers v) const { std::stable_sort(par, v.begin(), v.end()); }
  template <class F>
  std::size_t partition(numbers v, F f) const {
    return static_cast<std::size_t>(std::partition(par, v.begin(), v.end(), f) - v.begin());
  }
  std::size_t unique(numbers v) const {
    return static_cast<std::size_t>(std::unique(par, v.begin(), v.end()) - v.begin());
  }
  template <class F>
  void loop(std::size_t n, F f) const {
    std::vector<std::size_t> indices(n);
    std::iota(indices.begin(), indices.end(), 0);
    std::for_each(par, indices.begin(), indices.end(), f);
  }
};

void in_arena(const peer::options& o, const std::function<void(const peer::run_once&)>& m, const peer::run_once& once) {
  tbb::global_control limit{tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(o.workers)};
  tbb::task_arena arena{o.workers};
  m([&] {
    peer::outcome result{};
    arena.execute([&] { result = once(); });
    return result;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> names{
      "for_each", "transform", "reduce",      "count_if",  "min_element", "find",     "inclusive_scan", "copy_if",
      "merge",    "sort",      "stable_sort", "partition", "unique",      "triangle", "power_law",      "long_end"};
  return peer::run("std_par", std::to_string(_PSTL_VERSION), peer::algorithm_entries<by_std>("par", names, in_arena),
                   argc, argv);
}
