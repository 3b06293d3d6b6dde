#include <ramie/machine/topology.hpp>

#include <ramie/machine/cpu_count.hpp>

#include <algorithm>
#include <mutex>
#include <set>

namespace ramie::detail {

namespace {
// What the kernel reports where the firmware says nothing: 10 for a node's own memory, 20 for all other. Two packages
// in one node are a little farther from each other than their own parts are.
constexpr unsigned usual_distance = 20;
}  // namespace

std::uint16_t topology::number_of(std::vector<long>& known, long key) {
  const auto number = static_cast<std::uint16_t>(std::find(known.begin(), known.end(), key) - known.begin());
  if (number == known.size()) known.push_back(key);
  return number;
}

void topology::add(int cpu, long core, long cache, long node) {
  if (cpu < 0 || cpu >= cpus_most || at(cpu).known()) return;
  if (places_.size() <= static_cast<std::size_t>(cpu)) places_.resize(static_cast<std::size_t>(cpu) + 1);
  // Unknown groups have negative keys: a core by itself, a cache for the whole node.
  cpu_place& p = places_[static_cast<std::size_t>(cpu)];
  p.node = number_of(nodes_, node);
  p.cache = number_of(caches_, cache >= 0 ? cache : -2 - node);
  p.core = number_of(cores_, core >= 0 ? core : -1 - cpu);
  p.cpu = static_cast<std::uint16_t>(cpu);
  ++cpus_;
}

void topology::set_distance(long from, long to, unsigned value) { distances_.push_back({from, to, value}); }

void topology::finish() {
  const std::size_t n = nodes_.size();
  const auto between = [&](std::size_t from, std::size_t to) {
    for (const distance& d : distances_)
      if (d.from == nodes_[from] && d.to == nodes_[to]) return d.value;
    return usual_distance;
  };
  node_levels_.assign(n * n, static_cast<std::uint8_t>(levels - 1));
  std::set<std::uint8_t> found;
  for (std::size_t from = 0; from < n; ++from) {
    std::set<unsigned> steps;
    for (std::size_t to = 0; to < n; ++to)
      if (to != from) steps.insert(between(from, to));
    for (std::size_t to = 0; to < n; ++to) {
      if (to == from) continue;
      const auto nearer = std::distance(steps.begin(), steps.find(between(from, to)));
      const auto level = std::min<std::size_t>(other_node + static_cast<std::size_t>(nearer), levels - 1);
      found.insert(node_levels_[from * n + to] = static_cast<std::uint8_t>(level));
    }
  }
  // Which of the nearer levels occur: is there a core with several CPUs, a cache with several cores, and so on.
  std::vector<std::uint16_t> core_seen(cores_.size(), cpu_place::nowhere);
  std::vector<std::uint16_t> core_in_cache(caches_.size(), cpu_place::nowhere);
  std::vector<std::uint16_t> cache_in_node(n, cpu_place::nowhere);
  const auto several = [&](std::uint16_t& first, std::uint16_t here, std::uint8_t level) {
    if (first == cpu_place::nowhere) first = here;
    else if (first != here) found.insert(level);
  };
  for (const cpu_place& p : places_) {
    if (!p.known()) continue;
    several(core_seen[p.core], p.cpu, same_core);
    several(core_in_cache[p.cache], p.core, same_cache);
    several(cache_in_node[p.node], p.cache, same_node);
  }
  has_rings_ = found.size() > 1;
}

topology topology::of_machine() {
  static std::mutex lock;
  static std::vector<int> known_cpus;
  static topology known;
  const std::vector<int> cpus = allowed_cpus();
  const std::lock_guard guard{lock};
  if (cpus != known_cpus) {
    known = of_system(cpus);
    known_cpus = cpus;
  }
  return known;
}

}  // namespace ramie::detail
