// Counts the nodes of a random tree of which nobody knows where it is deep: Unbalanced Tree Search (S. Olivier and
// others, LCPC 2006), its binomial trees. A node's descendants follow from a hash of it; splitmix64's is used instead
// of SHA-1, so a node is cheaper than there.
#pragma once

#include "crew.hpp"

#include <map>

namespace tasks {

// 0.95 children on average, so that a subtree has 20 nodes on average, and some have thousands.
inline constexpr std::size_t uts_children = 8;
inline constexpr double uts_chance = 0.95 / uts_children;

template <class Crew>
std::int64_t count_nodes(std::uint64_t node, std::size_t children) {
  return 1 + Crew::template sum<std::int64_t>(children, [node](std::size_t i) {
           const std::uint64_t child = mixed(node + i);
           return count_nodes<Crew>(child, fraction(mixed(child)) < uts_chance ? uts_children : 0);
         });
}

/// `size`: children of the root. A unit: a node.
template <class Crew, class Time>
result uts(std::int64_t size, const Time& time) {
  static std::map<std::int64_t, std::int64_t> known;
  const auto count = [size]<class C>(C) { return count_nodes<C>(mixed(42), static_cast<std::size_t>(size)); };
  if (!known.contains(size)) known[size] = count(plain{});
  std::int64_t nodes = 0;
  const double seconds = time([&] { nodes = count(Crew{}); });
  return {seconds, nodes, nodes == known[size]};
}

}  // namespace tasks
