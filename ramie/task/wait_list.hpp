// The waiters for something, oldest first: nodes on the waiters' own stacks, so nothing is allocated.
#pragma once

#include <ramie/task/wait.hpp>

namespace ramie::detail {

/// A place in a wait_list. Derived classes add what a waker hands over. Guarded by the list's lock.
struct wait_node {
  waiter_ref waiter;
  wait_node* next = nullptr;
  wait_node* previous = nullptr;
  bool linked = false;
};

/// An intrusive doubly linked list. Its owner's lock guards all calls.
template <class Node = wait_node>
class wait_list {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] Node* front() const noexcept { return static_cast<Node*>(first_); }
  [[nodiscard]] static Node* after(const Node& n) noexcept { return static_cast<Node*>(n.next); }

  RAMIE_ALWAYS_INLINE void push_back(Node& n) noexcept {
    n.next = nullptr;
    n.previous = last_;
    (last_ == nullptr ? first_ : last_->next) = &n;
    last_ = &n;
    n.linked = true;
  }
  void push_front(Node& n) noexcept {
    n.previous = nullptr;
    n.next = first_;
    (first_ == nullptr ? last_ : first_->previous) = &n;
    first_ = &n;
    n.linked = true;
  }
  /// Does nothing if `n` is not in a list.
  RAMIE_ALWAYS_INLINE void remove(Node& n) noexcept {
    if (!n.linked) return;
    (n.previous == nullptr ? first_ : n.previous->next) = n.next;
    (n.next == nullptr ? last_ : n.next->previous) = n.previous;
    n.linked = false;
  }
  RAMIE_ALWAYS_INLINE Node* pop_front() noexcept {
    Node* n = front();
    if (n != nullptr) remove(*n);
    return n;
  }

 private:
  wait_node* first_ = nullptr;
  wait_node* last_ = nullptr;
};

}  // namespace ramie::detail
