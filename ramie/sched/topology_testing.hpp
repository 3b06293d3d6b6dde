// For the tests of topologies.
#pragma once

#include <ramie/sched/topology.hpp>

#include <cstddef>
#include <numeric>
#include <vector>

namespace ramie::detail::testing {

/// How near two CPUs are to each other.
inline int level(const topology& t, int a, int b) { return t.level(t.at(a), t.at(b)); }

/// 0 to n - 1.
inline std::vector<int> cpus_to(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace ramie::detail::testing
