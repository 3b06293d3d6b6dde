// The algorithms of experiment 10, as they are in all contestants written in C++. A contestant is a class with a
// function for each algorithm that it has.
#pragma once

#include "algorithm_inputs.hpp"

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

/// Small arrays are done again and again, each time afresh where the algorithm changes them; 2,000,000 elements in all.
class arrays {
 public:
  explicit arrays(std::size_t size) : size_{size}, count_{std::max<std::size_t>(1, 2'000'000 / size)} {}
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t elements() const { return size_ * count_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::size_t count_;
};

/// Times call(array, i) for all arrays; those that are changed are copied from the input first.
template <class Time, class F>
double on_changed(const Time& time, const arrays& a, std::vector<double>& all, F call) {
  const std::vector<double>& from = random_numbers(a.elements());
  all.resize(from.size());
  std::copy(from.begin(), from.end(), all.begin());
  return time([&] {
    for (std::size_t i = 0; i < a.count(); ++i) call(numbers{all}.subspan(i * a.size(), a.size()), i);
  });
}

/// For those that are not changed: the same small array each time, as it lies in the cache.
template <class Time, class F>
double on_same(const Time& time, const arrays& a, F call) {
  const std::vector<double>& from = random_numbers(a.elements());
  return time([&] {
    for (std::size_t i = 0; i < a.count(); ++i) call(inputs{from}.first(a.size()));
  });
}

inline std::vector<double> sorted_part(inputs from) {
  std::vector<double> v(from.begin(), from.end());
  std::sort(v.begin(), v.end());
  return v;
}

/// Keeps the compiler from leaving out what is not used.
template <class T>
void use(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// Runs one algorithm of the contestant `How` once. `time` runs its argument where How needs it and returns the
/// seconds. False in `ok` also if there is no such algorithm.
template <class How, class Time>
result run(std::string_view name, const parameters& p, How how, const Time& time) {
  const arrays a{p.size};
  const body b{p.work};
  static std::vector<double> work;
  static std::vector<double> out;
  const std::vector<double>& in = random_numbers(a.elements());
  const inputs first = inputs{in}.first(a.size());
  double seconds = 0;
  bool ok = false;
  const auto done = [&] { return result{seconds, static_cast<std::int64_t>(a.elements()), ok}; };
  out.resize(2 * a.size());
  if constexpr (requires { how.for_each(numbers{}, in_place{b}); }) {
    if (name == "for_each") {
      seconds = on_changed(time, a, work, [&](numbers v, std::size_t) { how.for_each(v, in_place{b}); });
      ok = std::equal(in.begin(), in.end(), work.begin(), [&](double x, double y) { return b(x) == y; });
      return done();
    }
  }
  if constexpr (requires { how.transform(inputs{}, out.data(), b); }) {
    if (name == "transform") {
      seconds = on_same(time, a, [&](inputs v) { how.transform(v, out.data(), b); });
      ok = std::equal(first.begin(), first.end(), out.begin(), [&](double x, double y) { return b(x) == y; });
      return done();
    }
  }
  if constexpr (requires { how.reduce(inputs{}, b); }) {
    if (name == "reduce") {
      double sum = 0;
      seconds = on_same(time, a, [&](inputs v) { use(sum = how.reduce(v, b)); });
      double expected = 0;
      for (const double x : first) expected += b(x);
      ok = nearly(sum, expected);
      return done();
    }
  }
  if constexpr (requires { how.count_if(inputs{}, is_low{b, 1.25}); }) {
    if (name == "count_if") {
      std::int64_t found = 0;
      seconds = on_same(time, a, [&](inputs v) { use(found = how.count_if(v, is_low{b, 1.25})); });
      ok = found == std::count_if(first.begin(), first.end(), is_low{b, 1.25});
      return done();
    }
  }
  if constexpr (requires { how.min_element(inputs{}); }) {
    if (name == "min_element") {
      std::size_t at = 0;
      seconds = on_same(time, a, [&](inputs v) { use(at = how.min_element(v)); });
      ok = static_cast<std::ptrdiff_t>(at) == std::min_element(first.begin(), first.end()) - first.begin();
      return done();
    }
  }
  if constexpr (requires { how.find(inputs{}, 1.0); }) {
    if (name == "find") {  // what is not there
      std::size_t at = 0;
      seconds = on_same(time, a, [&](inputs v) { use(at = how.find(v, 2.0)); });
      ok = at == a.size();
      return done();
    }
  }
  if constexpr (requires { how.inclusive_scan(inputs{}, out.data()); }) {
    if (name == "inclusive_scan") {
      seconds = on_same(time, a, [&](inputs v) { how.inclusive_scan(v, out.data()); });
      ok = nearly(out[a.size() - 1], std::accumulate(first.begin(), first.end(), 0.0));
      return done();
    }
  }
  if constexpr (requires { how.copy_if(inputs{}, out.data(), is_low{b, 1.25}); }) {
    if (name == "copy_if") {
      std::size_t n = 0;
      seconds = on_same(time, a, [&](inputs v) { n = how.copy_if(v, out.data(), is_low{b, 1.25}); });
      std::vector<double> expected;
      std::copy_if(first.begin(), first.end(), std::back_inserter(expected), is_low{b, 1.25});
      ok = n == expected.size() && std::equal(expected.begin(), expected.end(), out.begin());
      return done();
    }
  }
  if constexpr (requires { how.histogram(inputs{}, std::span<std::uint64_t>{}, bin_of{}); }) {
    if (name == "histogram") {
      std::vector<std::uint64_t> bins(256);
      seconds = on_same(time, a, [&](inputs v) { how.histogram(v, std::span{bins}, bin_of{}); });
      std::vector<std::uint64_t> expected(256);
      for (const double x : first) expected[bin_of{}(x)] += a.count();
      ok = bins == expected;
      return done();
    }
  }
  if constexpr (requires { how.merge(inputs{}, inputs{}, out.data()); }) {
    if (name == "merge") {  // other ones each time, for a processor learns how the same two small arrays mix
      work = in;
      const std::size_t half = a.size() / 2;
      for (std::size_t i = 0; i < a.elements(); i += a.size()) {
        const auto begin = work.begin() + static_cast<std::ptrdiff_t>(i);
        const auto middle = begin + static_cast<std::ptrdiff_t>(half);
        std::sort(begin, middle);
        std::sort(middle, begin + static_cast<std::ptrdiff_t>(a.size()));
      }
      seconds = time([&] {
        for (std::size_t i = 0; i < a.elements(); i += a.size())
          how.merge(inputs{work}.subspan(i, half), inputs{work}.subspan(i + half, a.size() - half), out.data());
      });
      ok = std::is_sorted(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(a.size()));
      return done();
    }
  }
  if constexpr (requires { how.sort(numbers{}); }) {
    if (name == "sort") {
      seconds = on_changed(time, a, work, [&](numbers v, std::size_t) { how.sort(v); });
      ok = std::equal(work.begin(), work.begin() + static_cast<std::ptrdiff_t>(a.size()), sorted_part(first).begin());
      return done();
    }
  }
  if constexpr (requires { how.stable_sort(numbers{}); }) {
    if (name == "stable_sort") {
      seconds = on_changed(time, a, work, [&](numbers v, std::size_t) { how.stable_sort(v); });
      ok = std::equal(work.begin(), work.begin() + static_cast<std::ptrdiff_t>(a.size()), sorted_part(first).begin());
      return done();
    }
  }
  if constexpr (requires { how.partition(numbers{}, is_low{b, 1.25}); }) {
    if (name == "partition") {
      std::size_t border = 0;
      seconds = on_changed(time, a, work, [&](numbers v, std::size_t i) {
        const std::size_t n = how.partition(v, is_low{b, 1.25});
        if (i == 0) border = n;
      });
      const numbers low = numbers{work}.first(a.size());
      ok = std::all_of(low.begin(), low.begin() + static_cast<std::ptrdiff_t>(border), is_low{b, 1.25}) &&
           std::none_of(low.begin() + static_cast<std::ptrdiff_t>(border), low.end(), is_low{b, 1.25});
      return done();
    }
  }
  if constexpr (requires { how.unique(numbers{}); }) {
    if (name == "unique") {
      std::vector<double>& few = work;
      few = in;
      for (double& x : few) x = std::floor(x * 3);
      std::vector<double> expected(few.begin(), few.begin() + static_cast<std::ptrdiff_t>(a.size()));
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      std::size_t left = 0;
      seconds = time([&] {
        for (std::size_t i = 0; i < a.count(); ++i) {
          const std::size_t n = how.unique(numbers{few}.subspan(i * a.size(), a.size()));
          if (i == 0) left = n;
        }
      });
      ok = left == expected.size() && std::equal(expected.begin(), expected.end(), few.begin());
      return done();
    }
  }
  if constexpr (requires { how.loop(std::size_t{}, [](std::size_t) {}); }) {
    for (const auto& [named, s] : {std::pair{"triangle", shape::triangle}, std::pair{"power_law", shape::power_law},
                                   std::pair{"long_end", shape::long_end}}) {
      if (name != named) continue;
      const std::vector<std::int64_t> counts = uneven(s, a.size(), static_cast<std::int64_t>(a.size()) * p.work);
      std::vector<std::int8_t> marks(a.size());
      seconds = time([&] {
        how.loop(a.size(), [&](std::size_t i) { marks[i] = static_cast<std::int8_t>(steps(counts[i]) > 0 ? 1 : 2); });
      });
      ok = std::all_of(marks.begin(), marks.end(), [](std::int8_t m) { return m == 1; });
      return {seconds, static_cast<std::int64_t>(a.size()), ok};
    }
  }
  return done();
}

}  // namespace algorithms
