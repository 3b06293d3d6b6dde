// Experiment 9: programs of tasks, after the Barcelona OpenMP Tasks Suite (A. Duran and others, ICPP 2009), Cilk's
// examples and PBBS (J. Shun and others, SPAA 2012), written anew. What they are made of is the same for all
// contestants written in C++: a contestant is a `Crew`, a class with three functions that start tasks and wait for
// them,
//   Crew::both(f, g)       calls f and g;
//   Crew::all(n, f)        calls f(i) for each i below n, a task each;
//   Crew::sum<T>(n, f)     the same, and adds up what f returns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tasks {

struct result {
  double seconds;
  std::int64_t units;
  bool ok;
};

/// No tasks, but calls.
struct plain {
  template <class F, class G>
  static void both(F&& f, G&& g) {
    f();
    g();
  }
  template <class F>
  static void all(std::size_t n, const F& f) {
    for (std::size_t i = 0; i < n; ++i) f(i);
  }
  template <class T, class F>
  static T sum(std::size_t n, const F& f) {
    T total{};
    for (std::size_t i = 0; i < n; ++i) total += f(i);
    return total;
  }
};

/// `sum` for a crew that has `all`: each task writes its part, the parent adds them up.
template <class Crew, class T, class F>
T sum_of_parts(std::size_t n, const F& f) {
  const auto add_up = [&](T* parts) {
    Crew::all(n, [&f, parts](std::size_t i) { parts[i] = f(i); });
    T total{};
    for (std::size_t i = 0; i < n; ++i) total += parts[i];
    return total;
  };
  std::array<T, 16> few;
  if (n <= few.size()) return add_up(few.data());
  std::vector<T> many(n);
  return add_up(many.data());
}

/// splitmix64's step (G. Steele, D. Lea, C. Flood, OOPSLA 2014): a hash of numbers.
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
/// In [0, 1), by a hash.
inline double fraction(std::uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }

}  // namespace tasks
