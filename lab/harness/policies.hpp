// Placements that ramie does not have, written as a user would: as policies.
#pragma once

#include <ramie/runtime.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace ramie::lab {

/// Runnables, first in first out. Safe for several threads.
class locked_queue {
 public:
  void push(runnable r) noexcept {
    const std::lock_guard guard{lock_};
    queue_.push(r);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Empty if there is none.
  [[nodiscard]] runnable pop() noexcept {
    if (empty()) return {};
    const std::lock_guard guard{lock_};
    const runnable r = queue_.pop();
    if (r) count_.fetch_sub(1, std::memory_order_relaxed);
    return r;
  }
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  std::mutex lock_;
  runnable_queue queue_;
  std::atomic<std::size_t> count_{0};
};

/// One queue for all workers.
class shared_queue : public scheduling_policy {
 public:
  void put(runnable r, int /*worker*/) noexcept override { all_.push(r); }
  runnable take(int /*worker*/) noexcept override { return all_.pop(); }
  bool has_work(int /*worker*/) const noexcept override { return !all_.empty(); }

 private:
  locked_queue all_;
};

/// New and woken runnables go to the workers in turn. No other worker takes them, not even a spare one: what is behind
/// a stalled worker waits.
class round_robin : public scheduling_policy {
 public:
  explicit round_robin(int workers) : queues_(static_cast<std::size_t>(workers)) {}

  void put(runnable r, int /*worker*/) noexcept override {
    queues_[turn_.fetch_add(1, std::memory_order_relaxed) % queues_.size()].waiting.push(r);
  }
  runnable take(int worker) noexcept override {
    const auto at = static_cast<std::size_t>(worker);
    return at < queues_.size() ? queues_[at].waiting.pop() : runnable{};
  }
  bool has_work(int worker) const noexcept override {
    const auto at = static_cast<std::size_t>(worker);
    return at < queues_.size() && !queues_[at].waiting.empty();
  }

 private:
  struct alignas(64) of_worker {
    locked_queue waiting;
  };
  std::vector<of_worker> queues_;
  std::atomic<std::size_t> turn_{0};
};

}  // namespace ramie::lab
