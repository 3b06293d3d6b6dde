// For the tests of this floor: random ranges, and what an algorithm may be called with.
#pragma once

#include <ramie/fiber/testing.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace ramie::parallel_tests {

using namespace fiber_tests;

/// All that are few, around the sizes at which algorithms change their ways, many.
inline std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all;
  for (std::size_t n = 0; n <= 70; ++n) all.push_back(n);
  all.insert(all.end(), {255, 256, 257, 1000, 1023, 1025, 5000, 20'000});
  all.push_back(static_cast<std::size_t>(scaled(70'001)));
  all.push_back(static_cast<std::size_t>(scaled(300'000)));
  return all;
}

/// From 0 to `kinds` - 1; few kinds make many duplicates.
inline std::vector<int> random_ints(std::size_t n, int kinds) {
  std::mt19937 source{static_cast<unsigned>(n) * 31 + static_cast<unsigned>(kinds)};
  std::uniform_int_distribution<int> any{0, kinds - 1};
  std::vector<int> v(n);
  for (int& x : v) x = any(source);
  return v;
}

/// Calls f with vectors of all sizes: random, with many duplicates, all the same, sorted, reversed.
template <class F>
void for_inputs(F f) {
  for (const std::size_t n : sizes()) {
    for (const int kinds : {1, 3, 1000, 1'000'000'000}) f(random_ints(n, kinds));
    std::vector<int> v = random_ints(n, 1'000'000);
    std::sort(v.begin(), v.end());
    f(v);
    std::reverse(v.begin(), v.end());
    f(v);
  }
}

}  // namespace ramie::parallel_tests
