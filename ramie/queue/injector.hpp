// Work that comes from outside the workers: new tasks and woken stacks, first in first out, both intrusive, so that a
// wake-up needs no memory. One short lock; workers look here once in many dispatches and whenever they run out of work.
//
// The count is a glance: a thread that sees work takes the lock, and that a sleeper sees it is the work of fences
// (idle_set.hpp). So adding orders nothing. Taking releases, and size() acquires, for the report of deadlocks alone:
// one that sees the queue empty must also see that the worker which has emptied it is awake.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/ready_item.hpp>
#include <ramie/task/task.hpp>

#include <cstddef>
#include <mutex>

namespace ramie::detail {

template <class Item>
class intrusive_fifo {
 public:
  void push(Item* item) noexcept {
    item->next = nullptr;
    if (first_ == nullptr) first_ = item;
    else last_->next = item;
    last_ = item;
  }
  Item* pop() noexcept {
    Item* item = first_;
    if (item != nullptr) first_ = item->next;
    return item;
  }
  /// The first item that `wanted` accepts, else null.
  template <class Wanted>
  Item* pop_if(Wanted wanted) noexcept {
    Item* before = nullptr;
    for (Item* item = first_; item != nullptr; before = item, item = item->next) {
      if (!wanted(*item)) continue;
      (before == nullptr ? first_ : before->next) = item->next;
      if (last_ == item) last_ = before;
      return item;
    }
    return nullptr;
  }

 private:
  Item* first_ = nullptr;
  Item* last_ = nullptr;
};

class injector {
 public:
  /// A new task.
  void push_new(task* t) noexcept {
    std::lock_guard guard{lock_};
    tasks_.push(t);
    one_more();
  }
  void push(ready_item ready) noexcept {
    std::lock_guard guard{lock_};
    if (ready.is_resident()) residents_.push(ready.as_resident());
    else stacks_.push(ready.as_stack());
    woken_.store(woken_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    one_more();
  }
  struct item {
    stack* resume = nullptr;
    task* start = nullptr;
    explicit operator bool() const noexcept { return resume != nullptr || start != nullptr; }
  };
  /// The oldest stack or resident, in turn, or the oldest new task; tasks first if `tasks_first`. `wanted(stack)` may
  /// refuse a stack.
  template <class Wanted>
  item pop(bool tasks_first, Wanted wanted) noexcept {
    item found;
    if (size() == 0) return found;
    std::lock_guard guard{lock_};
    if (tasks_first) found.start = tasks_.pop();
    if (!found) found = oldest_woken(wanted);
    if (!found && !tasks_first) found.start = tasks_.pop();
    if (found) one_less();
    return found;
  }
  /// The oldest stack or resident, in turn.
  item pop_woken() noexcept {
    if (woken() == 0) return {};
    std::lock_guard guard{lock_};
    const item found = oldest_woken([](const stack&) { return true; });
    if (found) one_less();
    return found;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  /// Without new tasks: a glance, as above.
  [[nodiscard]] std::size_t woken() const noexcept { return woken_.load(std::memory_order_relaxed); }

 private:
  template <class Wanted>
  item oldest_woken(Wanted wanted) noexcept {
    item found;
    residents_first_ = !residents_first_;
    if (residents_first_) found.start = residents_.pop();
    if (!found) found.resume = stacks_.pop_if(wanted);
    if (!found && !residents_first_) found.start = residents_.pop();
    if (found) woken_.store(woken_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    return found;
  }
  void one_less() noexcept { size_.store(size_.load(std::memory_order_relaxed) - 1, std::memory_order_release); }
  void one_more() noexcept { size_.store(size_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  spin_lock lock_;
  atomic<std::size_t> size_{0};
  atomic<std::size_t> woken_{0};
  intrusive_fifo<task> tasks_;
  intrusive_fifo<stack> stacks_;
  intrusive_fifo<task> residents_;
  bool residents_first_ = false;
};

}  // namespace ramie::detail
