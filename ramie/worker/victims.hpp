// Which victims a thief tries first: workers in rings, nearest first, as far as the machine has any (topology.hpp).
//
// A thief sorts the others again for each search, by the CPU that each was last seen on. Pinned threads stay on theirs.
// Others wander, but the kernel moves a thread that computes only when it has a reason to, and never far without one;
// so each worker notes its CPU when it begins, when it wakes up, before it searches, and once in some thousand
// dispatches. A stale note costs a detour, never work: every ring is searched in every round. Grouping unpinned workers
// once and for all by their numbers would be wrong as soon as two of them change places.
#pragma once

#include <ramie/base/random.hpp>
#include <ramie/machine/topology.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ramie::detail {

class victim_order {
 public:
  /// Room for this many workers. Throws std::bad_alloc.
  void reserve(std::size_t workers) {
    victims_ = std::make_unique<std::uint16_t[]>(workers);
    levels_ = std::make_unique<std::uint8_t[]>(workers);
  }

  /// Sorts workers 0 to n-1, except `self`, which is at `here`; the others are at place_of(i).
  template <class PlaceOf>
  void arrange(const topology& t, cpu_place here, std::uint32_t self, std::uint32_t n, PlaceOf place_of) noexcept {
    ends_ = {};
    for (std::uint32_t i = 0; i < n; ++i)
      if (i != self) ++ends_[levels_[i] = t.level(here, place_of(i))];
    std::array<std::uint16_t, topology::levels> next{};
    for (std::size_t level = 1; level < topology::levels; ++level) {
      next[level] = ends_[level - 1];
      ends_[level] = static_cast<std::uint16_t>(ends_[level] + ends_[level - 1]);
    }
    for (std::uint32_t i = 0; i < n; ++i)
      if (i != self) victims_[next[levels_[i]]++] = static_cast<std::uint16_t>(i);
  }

  /// Calls attempt(number) for each worker, ring by ring, each from a random one on, until it returns something true,
  /// which is returned.
  template <class Attempt>
  auto try_all(random_source& random, Attempt attempt) noexcept -> decltype(attempt(0u)) {
    std::uint32_t begin = 0;
    for (const std::uint32_t end : ends_) {
      if (begin == end) continue;
      const std::uint32_t size = end - begin;
      std::uint32_t at = begin + random.below(size);
      for (std::uint32_t i = 0; i < size; ++i) {
        if (auto result = attempt(std::uint32_t{victims_[at]})) return result;
        if (++at == end) at = begin;
      }
      begin = end;
    }
    return {};
  }

 private:
  std::unique_ptr<std::uint16_t[]> victims_;  // by number, ring after ring
  std::unique_ptr<std::uint8_t[]> levels_;    // while they are sorted
  std::array<std::uint16_t, topology::levels> ends_{};
};

}  // namespace ramie::detail
