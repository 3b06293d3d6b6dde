// Inputs and bodies of experiment 10, and the yardstick: plain loops and the algorithms of the standard library.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace algorithms {

using numbers = std::span<double>;
using inputs = std::span<const double>;

/// What is done to an element: a multiplication and an addition, or `work` more of them, each of which waits for the
/// one before.
struct body {
  int work;
  double operator()(double x) const {
    double y = x * 0.5 + 1;
    for (int i = 0; i < work; ++i) y = y * 0.999 + 0.001;
    return y;
  }
};
struct in_place {
  body of;
  void operator()(double& x) const { x = of(x); }
};
struct is_low {
  body of;
  double border;
  bool operator()(double x) const { return of(x) < border; }
};
struct bin_of {
  std::size_t operator()(double x) const { return static_cast<std::size_t>(x * 256); }
};
/// A body of so many steps.
inline double steps(std::int64_t n) {
  double y = 2;  // 1 would stay 1, which compilers see
  for (std::int64_t i = 0; i < n; ++i) y = y * 0.999 + 0.001;
  return y;
}

/// How a workload with uneven elements distributes its steps.
enum class shape { triangle, power_law, long_end };
inline std::vector<std::int64_t> uneven(shape s, std::size_t size, std::int64_t all_steps) {
  std::vector<double> weights(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double at = static_cast<double>(i) + 1;
    weights[i] = s == shape::triangle ? at : s == shape::power_law ? std::pow(at, -0.7) : 1;
  }
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  // A quarter of all.
  if (s == shape::long_end) sum += weights[size - 1] = sum / 3;
  std::vector<std::int64_t> steps(size);
  for (std::size_t i = 0; i < size; ++i)
    steps[i] = static_cast<std::int64_t>(weights[i] / sum * static_cast<double>(all_steps));
  return steps;
}

struct parameters {
  std::size_t size;
  int work;
};

struct result {
  double seconds;
  std::int64_t elements;
  bool ok;
};

/// Random numbers from 0 to 1.
inline const std::vector<double>& random_numbers(std::size_t size) {
  static std::vector<double> made;
  if (made.size() != size) {
    std::mt19937_64 source{size};
    std::uniform_real_distribution<double> any{0, 1};
    made.resize(size);
    for (double& x : made) x = any(source);
  }
  return made;
}

inline bool nearly(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

/// The plain loop or the algorithm of the standard library.
struct plain {
  template <class F>
  void for_each(numbers v, F f) const {
    for (double& x : v) f(x);
  }
  template <class F>
  void transform(inputs v, double* out, F f) const {
    std::transform(v.begin(), v.end(), out, f);
  }
  template <class F>
  double reduce(inputs v, F f) const {
    double sum = 0;
    for (const double x : v) sum += f(x);
    return sum;
  }
  template <class F>
  std::int64_t count_if(inputs v, F f) const {
    return std::count_if(v.begin(), v.end(), f);
  }
  std::size_t min_element(inputs v) const {
    return static_cast<std::size_t>(std::min_element(v.begin(), v.end()) - v.begin());
  }
  std::size_t find(inputs v, double x) const {
    return static_cast<std::size_t>(std::find(v.begin(), v.end(), x) - v.begin());
  }
  void inclusive_scan(inputs v, double* out) const { std::inclusive_scan(v.begin(), v.end(), out); }
  template <class F>
  std::size_t copy_if(inputs v, double* out, F f) const {
    return static_cast<std::size_t>(std::copy_if(v.begin(), v.end(), out, f) - out);
  }
  template <class F>
  void histogram(inputs v, std::span<std::uint64_t> bins, F f) const {
    for (const double x : v) ++bins[f(x)];
  }
  void merge(inputs a, inputs b, double* out) const { std::merge(a.begin(), a.end(), b.begin(), b.end(), out); }
  void sort(numbers v) const { std::sort(v.begin(), v.end()); }
  void stable_sort(numbers v) const { std::stable_sort(v.begin(), v.end()); }
  template <class F>
  std::size_t partition(numbers v, F f) const {
    return static_cast<std::size_t>(std::partition(v.begin(), v.end(), f) - v.begin());
  }
  std::size_t unique(numbers v) const { return static_cast<std::size_t>(std::unique(v.begin(), v.end()) - v.begin()); }
  template <class F>
  void loop(std::size_t n, F f) const {
    for (std::size_t i = 0; i < n; ++i) f(i);
  }
};

inline constexpr const char* names[] = {"for_each",  "transform",      "reduce",    "count_if",  "min_element",
                                        "find",      "inclusive_scan", "copy_if",   "histogram", "merge",
                                        "sort",      "stable_sort",    "partition", "unique",    "triangle",
                                        "power_law", "long_end"};

}  // namespace algorithms
