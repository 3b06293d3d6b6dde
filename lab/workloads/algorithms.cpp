// Experiment 10: parallel algorithms beside the plain loop, or the algorithm of the standard library.
#include <lab/harness/session.hpp>
#include <lab/peers/common/algorithms.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/parallel.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie::lab {
namespace {

using ::algorithms::inputs;
using ::algorithms::numbers;

struct by_ramie {
  template <class F>
  void for_each(numbers v, F f) const {
    parallel::for_each(v, f);
  }
  template <class F>
  void transform(inputs v, double* out, F f) const {
    parallel::transform(v, out, f);
  }
  template <class F>
  double reduce(inputs v, F f) const {
    return parallel::transform_reduce(v, 0.0, std::plus<>{}, f);
  }
  template <class F>
  std::int64_t count_if(inputs v, F f) const {
    return parallel::count_if(v, f);
  }
  std::size_t min_element(inputs v) const { return static_cast<std::size_t>(parallel::min_element(v) - v.begin()); }
  std::size_t find(inputs v, double x) const { return static_cast<std::size_t>(parallel::find(v, x) - v.begin()); }
  void inclusive_scan(inputs v, double* out) const { parallel::inclusive_scan(v, out); }
  template <class F>
  std::size_t copy_if(inputs v, double* out, F f) const {
    return static_cast<std::size_t>(parallel::copy_if(v, out, f).out - out);
  }
  template <class F>
  void histogram(inputs v, std::span<std::uint64_t> bins, F f) const {
    parallel::histogram(v, bins, f);
  }
  void merge(inputs a, inputs b, double* out) const { parallel::merge(a, b, out); }
  void sort(numbers v) const { parallel::sort(v); }
  void stable_sort(numbers v) const { parallel::stable_sort(v); }
  template <class F>
  std::size_t partition(numbers v, F f) const {
    return static_cast<std::size_t>(parallel::partition(v, f).begin() - v.begin());
  }
  std::size_t unique(numbers v) const { return static_cast<std::size_t>(parallel::unique(v).begin() - v.begin()); }
  template <class F>
  void loop(std::size_t n, F f) const {
    parallel::for_each(std::views::iota(std::size_t{0}, n), f);
  }
};

/// As by_ramie, the same bits for any number of workers.
struct deterministically {
  template <class F>
  double reduce(inputs v, F f) const {
    return parallel::transform_reduce(parallel::deterministic, v, 0.0, std::plus<>{}, f);
  }
};

struct session_clock {
  session& of;
  template <class F>
  double operator()(F&& f) const {
    return of.time(std::forward<F>(f));
  }
};

template <class How, std::size_t Index>
run_result run(session& s) {
  const ::algorithms::parameters p{static_cast<std::size_t>(s.parameter("size")),
                                   static_cast<int>(s.parameter("work"))};
  const ::algorithms::result r = ::algorithms::run(::algorithms::names[Index], p, How{}, session_clock{s});
  return {.seconds = r.seconds, .units = r.elements, .ok = r.ok};
}

template <std::size_t Index>
workload one() {
  const std::string_view name = ::algorithms::names[Index];
  const bool is_uneven = name == "triangle" || name == "power_law" || name == "long_end";
  workload made{
      .name = std::string{name},
      .summary = is_uneven ? "experiment 10: a loop whose elements take different times"
                           : "experiment 10: this algorithm over an array of doubles",
      .unit = "element",
      .parameters = {{.name = "size",
                      .help = "elements of the array",
                      .standard = is_uneven ? 10'000 : 10'000'000,
                      .min = 1,
                      .max = 1'000'000'000},
                     {.name = "work",
                      .help =
                          is_uneven ? "additions an element, on average" : "additions an element, besides the first",
                      .standard = is_uneven ? 1000 : 0,
                      .min = 0,
                      .max = 1'000'000}},
      .styles =
          {
              {"plain", "a loop, or the algorithm of the standard library", false, run<::algorithms::plain, Index>},
              {"parallel", "ramie::parallel's", true, run<by_ramie, Index>},
          },
  };
  if (name == "reduce")
    made.styles.push_back(
        {"deterministic", "the same bits for any number of workers", true, run<deterministically, Index>});
  return made;
}

template <std::size_t... Indices>
std::vector<workload> all(std::index_sequence<Indices...>) {
  std::vector<workload> made;
  (made.push_back(one<Indices>()), ...);
  return made;
}

}  // namespace

std::vector<workload> algorithm_workloads() { return all(std::make_index_sequence<std::size(::algorithms::names)>{}); }

}  // namespace ramie::lab
