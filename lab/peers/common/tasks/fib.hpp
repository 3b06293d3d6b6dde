// Fibonacci numbers by their definition: nothing but what a task costs.
#pragma once

#include "crew.hpp"

namespace tasks {

template <class Crew>
std::int64_t fibonacci(std::int64_t n) {
  if (n < 2) return n;
  std::int64_t a = 0;
  std::int64_t b = 0;
  Crew::both([&a, n] { a = fibonacci<Crew>(n - 1); }, [&b, n] { b = fibonacci<Crew>(n - 2); });
  return a + b;
}

/// A unit: a call.
template <class Crew, class Time>
result fib(std::int64_t n, const Time& time) {
  std::int64_t expected = 0;
  std::int64_t next = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t sum = expected + next;
    expected = next;
    next = sum;
  }
  std::int64_t found = 0;
  const double seconds = time([&] { found = fibonacci<Crew>(n); });
  return {seconds, 2 * next - 1, found == expected};
}

}  // namespace tasks
