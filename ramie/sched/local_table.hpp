// The values that a fiber, or a plain thread, keeps for itself (ramie/fiber/fiber_local.hpp): a list of nodes, newest
// first.
//
//  T1 Fork jobs that other workers took look at the table of the fiber that forked them, so several may use it at a time.
//     A node is added at the head by compare-and-swap (release); who reads the head (acquire) sees it whole. If two
//     make a value for the same key at once, the second sees the first's node when its compare-and-swap fails, and drops
//     its own.
//  T2 Nothing is taken out before the end, so what was found stays.
//  T3 At the end, when no fork job is left, nodes are taken off the head one by one: values are destroyed in the reverse
//     order of their making, while the older ones can still be used. A destructor may make new ones.
#pragma once

#include <ramie/base/atomic.hpp>

#include <cstdint>

namespace ramie::detail {

/// One value. Derived classes hold it.
struct local_node {
  explicit local_node(std::uint64_t k) noexcept : key{k} {}
  local_node(const local_node&) = delete;
  local_node& operator=(const local_node&) = delete;
  virtual ~local_node() = default;
  const std::uint64_t key;
  local_node* next = nullptr;
};

class local_table {
 public:
  /// How many values the destructors of others may make; what comes after is not destroyed. Only to have a bound.
  static constexpr int made_at_end_most = 1000;

  constexpr local_table() noexcept = default;
  local_table(const local_table&) = delete;
  local_table& operator=(const local_table&) = delete;
  ~local_table() { destroy_all(); }

  /// Null if there is none of that key.
  [[nodiscard]] local_node* find(std::uint64_t key) const noexcept {
    local_node* n = first_.load(std::memory_order_acquire);
    while (n != nullptr && n->key != key) n = n->next;
    return n;
  }
  /// Takes `made` into the table, or deletes it and returns the one that was there first.
  local_node& add(local_node* made) noexcept;

  /// T3.
  void destroy_all() noexcept;

 private:
  atomic<local_node*> first_{nullptr};
};

}  // namespace ramie::detail
