// Nodes of memory, each in as many parts as it has packages: who shares a node's memory across packages shares no
// cache. For what reads a machine's topology.
#pragma once

#include <ramie/sched/topology.hpp>

#include <map>

namespace ramie::detail {

class node_parts {
 public:
  /// The number of the part of `node` in `package`, for topology::add; -1: not known. Throws std::bad_alloc.
  long of(long node, long package) {
    const long part = node < 0 && package < 0 ? 0 : (node + 1) * (1L << 20) + ((package + 1) & 0xfffff);
    node_of_[part] = node;
    return part;
  }
  /// Tells `t` how far all parts are from each other. `distance(from, to)`, of two nodes: 0 if it is not known.
  template <class Distance>
  void connect(topology& t, Distance distance) const {
    constexpr unsigned same_node = 11;  // 10 would be one's own part
    for (const auto& [from_part, from] : node_of_)
      for (const auto& [to_part, to] : node_of_) {
        if (from_part == to_part) continue;
        const unsigned value = from == to && from >= 0 ? same_node : distance(from, to);
        if (value != 0) t.set_distance(from_part, to_part, value);
      }
  }

 private:
  std::map<long, long> node_of_;  // by part
};

}  // namespace ramie::detail
