// Which CPUs are near to each other: which share a core, a cache, a memory. Thieves look for work nearby first
// (victims.hpp), and a sleeper nearby is woken rather than one far away.
//
// Linux reports it in /sys. What is unknown separates no CPUs: a machine that reports nothing is one large group.
//
// Unproven: tested with made-up machines and made-up trees of /sys, never run on a machine with several caches or
// nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ramie::detail {

/// A CPU and the groups it is in, by their numbers. Groups of two topologies are unrelated.
struct cpu_place {
  static constexpr std::uint16_t nowhere = 0xffff;
  std::uint16_t cpu = nowhere;
  std::uint16_t core = nowhere;   // its SMT siblings; or small cores that share a cache below the last level
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

  /// As Linux reports on `cpus`, in root + "/sys/devices/system". What is missing or makes no sense is ignored.
  /// Throws std::bad_alloc.
  [[nodiscard]] static topology of_system(const std::vector<int>& cpus, const std::string& root = "");
  /// The same for the CPUs that this process may use now, read once and again if they change. Throws std::bad_alloc.
  /// Any thread.
  [[nodiscard]] static topology of_machine();

  /// Adds a CPU with the groups it is in, under numbers of any kind; -1: not known. Once for each CPU.
  void add(int cpu, long core, long cache, long node);
  /// From a CPU of `from` to memory of `to`, in the kernel's units: 10 is the own node. Numbers as for `add`.
  void set_distance(long from, long to, unsigned distance);
  /// After the last of both, before the rest.
  void finish();

  /// The place of a CPU by the system's number; unknown if it was not added.
  [[nodiscard]] cpu_place at(int cpu) const noexcept {
    return cpu >= 0 && static_cast<std::size_t>(cpu) < places_.size() ? places_[static_cast<std::size_t>(cpu)]
                                                                      : cpu_place{};
  }
  /// The distance; unknown places are farthest. Any thread.
  [[nodiscard]] std::uint8_t level(cpu_place from, cpu_place to) const noexcept {
    if (!from.known() || !to.known()) return levels - 1;
    if (from.core == to.core) return same_core;
    if (from.cache == to.cache) return same_cache;
    if (from.node == to.node) return same_node;
    return node_levels_[from.node * nodes_.size() + to.node];
  }
  [[nodiscard]] std::size_t cpus() const noexcept { return cpus_; }
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }
  /// Are some CPUs nearer to each other than others? If not, distances need not be compared.
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
