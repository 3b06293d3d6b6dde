// For the tests of topologies.
#pragma once

#include <ramie/machine/topology.hpp>

#include <cstddef>
#include <numeric>
#include <vector>

namespace ramie::detail::testing {

/// How near two CPUs are to each other.
inline int level(const topology& t, int a, int b) { return t.level(t.at(a), t.at(b)); }

/// A made-up machine: each number is how many there are in each of the level before it; CPUs are numbered in this
/// order.
struct made_up {
  long nodes = 1, caches = 1, cores = 1, threads = 1;

  operator topology() const {
    topology t;
    const long in_cache = cores * threads, in_node = caches * in_cache;
    for (long cpu = 0; cpu < nodes * in_node; ++cpu)
      t.add(static_cast<int>(cpu), cpu / threads, cpu / in_cache, cpu / in_node);
    t.finish();
    return t;
  }
};

/// 0 to n - 1.
inline std::vector<int> cpus_to(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace ramie::detail::testing
