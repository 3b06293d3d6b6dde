// The values that belong to one fiber, or plain thread (ramie/fiber/fiber_local.hpp): a list of nodes, newest
// first.
//
//  T1 Stolen fork jobs use the table of the fiber that forked them, so several threads may use it at a time.
//     A node is added at the head by compare-and-swap (release); a reader of the head (acquire) sees it whole. If two
//     make a value for the same key at once, the second sees the first's node when its compare-and-swap fails, and drops
//     its own.
//  T2 Nothing is removed before the end, so a value that was found stays.
//  T3 At the end, when no fork job is left, nodes are removed from the head one by one: values are destroyed in reverse
//     order of creation, while the older ones can still be used. A destructor may create new ones.
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
  /// How many values destructors may create; those after that are not destroyed. Only to have a bound.
  static constexpr int made_at_end_most = 1000;

  constexpr local_table() noexcept = default;
  local_table(const local_table&) = delete;
  local_table& operator=(const local_table&) = delete;
  ~local_table() { destroy_all(); }

  /// Null if there is none with that key.
  [[nodiscard]] local_node* find(std::uint64_t key) const noexcept {
    local_node* n = first_.load(std::memory_order_acquire);
    while (n != nullptr && n->key != key) n = n->next;
    return n;
  }
  /// Adds `made` to the table, or deletes it and returns the one that was there first.
  local_node& add(local_node* made) noexcept;

  [[nodiscard]] bool empty() const noexcept { return first_.load(std::memory_order_relaxed) == nullptr; }
  /// T3.
  void destroy_all() noexcept;

 private:
  atomic<local_node*> first_{nullptr};
};

}  // namespace ramie::detail
