// What every skynet and sum has in common.
#pragma once

#include <cstdint>

namespace peer {

constexpr std::int64_t fan_out = 10;

constexpr std::int64_t skynet_nodes(std::int64_t leaves) {
  std::int64_t nodes = 1;
  for (; leaves > 1; leaves /= fan_out) nodes += leaves;
  return nodes;
}

constexpr std::int64_t skynet_sum(std::int64_t leaves) { return leaves * (leaves - 1) / 2; }

constexpr std::int64_t middle_of(std::int64_t low, std::int64_t high) { return low + (high - low) / 2; }

}  // namespace peer
