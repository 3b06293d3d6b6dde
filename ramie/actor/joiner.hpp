// Those that wait for the end of an actor.
#pragma once

#include <ramie/task/wait_list.hpp>

namespace ramie::detail {

/// One waiter for an actor's end.
struct joiner : wait_node {
  bool incarnation = false;  // a restart counts as well
};

/// As wait_list, in one word: the first one's `previous` is the last.
class joiner_list {
 public:
  [[nodiscard]] joiner* front() const noexcept { return first_; }
  [[nodiscard]] static joiner* after(const joiner& n) noexcept { return static_cast<joiner*>(n.next); }
  void push_back(joiner& n) noexcept;
  /// Does nothing if `n` is not in the list.
  void remove(joiner& n) noexcept;

 private:
  joiner* first_ = nullptr;
};

}  // namespace ramie::detail
