// Which CPUs are near to each other: who shares a core, a cache, a memory. Thieves look for work nearby first
// (victims.hpp), and a sleeper nearby is woken rather than one far away.
//
// Where it is known from: Linux tells in /sys (of_system), hwloc knows more machines (of_hwloc, if built with it), and
// a line of text describes one that is not there (of_text), for tests and experiments. What is not known separates
// nobody: a machine that tells nothing is one large group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::detail {

/// A CPU and the groups it is in, by their numbers. Groups of two topologies have nothing to do with each other.
struct cpu_place {
  static constexpr std::uint16_t nowhere = 0xffff;
  std::uint16_t cpu = nowhere;
  std::uint16_t core = nowhere;   // its SMT siblings; or who shares a cache below the last level, as small cores do
  std::uint16_t cache = nowhere;  // of the last level
  std::uint16_t node = nowhere;   // memory, within one package

  [[nodiscard]] bool known() const noexcept { return cpu != nowhere; }
  friend bool operator==(cpu_place, cpu_place) noexcept = default;
};
static_assert(sizeof(cpu_place) == 8);  // fits an atomic word

class topology {
 public:
  /// How far two CPUs are from each other: the same core, else the same last-level cache, else the same node, else
  /// by the distance of their nodes, nearest first.
  static constexpr std::uint8_t same_core = 0, same_cache = 1, same_node = 2, other_node = 3;
  static constexpr std::size_t levels = 8;  // farther nodes than there are levels share the last one
  static constexpr int cpus_most = 0xffff;

  /// Knows no CPU.
  topology() = default;

  /// As Linux tells of `cpus`, in root + "/sys/devices/system". What is missing or makes no sense is passed over.
  /// Throws std::bad_alloc.
  [[nodiscard]] static topology of_system(const std::vector<int>& cpus, const std::string& root = "");
  /// By hwloc; of_system if ramie was built without, or hwloc fails.
  [[nodiscard]] static topology of_hwloc(const std::vector<int>& cpus);
  /// "2 nodes 8 caches 8 cores 2 threads": so many of each in each of what stands before it; what is left out is one.
  /// CPUs are numbered in this order. Throws invalid_argument, std::bad_alloc.
  [[nodiscard]] static topology of_text(std::string_view description);
  /// Of the CPUs that this process may use now, by hwloc or of_system, read once and again if they change. Throws
  /// std::bad_alloc. Any thread.
  [[nodiscard]] static topology of_machine();

  /// Adds a CPU with the groups it is in, under numbers of any kind; -1: not known. Once for each CPU.
  void add(int cpu, long core, long cache, long node);
  /// From a CPU of `from` to memory of `to`, in the kernel's units: 10 is one's own. Numbers as for `add`.
  void set_distance(long from, long to, unsigned distance);
  /// After the last of both, before the rest.
  void finish();

  /// The place of a CPU by the system's number; unknown if it was not added.
  [[nodiscard]] cpu_place at(int cpu) const noexcept {
    return cpu >= 0 && static_cast<std::size_t>(cpu) < places_.size() ? places_[static_cast<std::size_t>(cpu)]
                                                                      : cpu_place{};
  }
  /// How far; other places than known ones are farthest. Any thread.
  [[nodiscard]] std::uint8_t level(cpu_place from, cpu_place to) const noexcept {
    if (!from.known() || !to.known()) return levels - 1;
    if (from.core == to.core) return same_core;
    if (from.cache == to.cache) return same_cache;
    if (from.node == to.node) return same_node;
    return node_levels_[from.node * nodes_.size() + to.node];
  }
  [[nodiscard]] std::size_t cpus() const noexcept { return cpus_; }
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }
  /// Are some CPUs nearer to each other than others? If not, nobody need look.
  [[nodiscard]] bool has_rings() const noexcept { return has_rings_; }

 private:
  struct distance {
    long from, to;
    unsigned value;
  };
  static std::uint16_t number_of(std::vector<long>& known, long key);

  std::vector<cpu_place> places_;  // by CPU
  std::vector<long> cores_, caches_, nodes_;
  std::vector<distance> distances_;
  std::vector<std::uint8_t> node_levels_;
  std::size_t cpus_ = 0;
  bool has_rings_ = false;
};

}  // namespace ramie::detail
