// A policy: three levels of priority, of which none can be starved by those above it.
#pragma once

#include <ramie/runtime.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>

namespace priorities {

enum level : int { background = 0, normal = 1, urgent = 2 };  // other numbers count as the nearest of these

/// Higher levels run first, each level in the order of arrival. But a level with waiting work is passed over at most
/// `patience` times, then it has a turn. So the k-th of a level, whatever arrives above it, runs after at most k *
/// (patience + 2) others.
class levels : public ramie::scheduling_policy {
 public:
  static constexpr int patience = 8;
  static constexpr std::size_t count = 3;

  void put(ramie::runnable r, int /*worker*/) noexcept override {
    const auto at = static_cast<std::size_t>(std::clamp(r.priority(), int{background}, int{urgent}));
    const std::lock_guard guard{lock_};
    queues_[at].push(r);
  }

  ramie::runnable take(int /*worker*/) noexcept override {
    const std::lock_guard guard{lock_};
    const std::size_t chosen = choose();
    if (chosen == count) return {};
    passed_over_[chosen] = 0;
    for (std::size_t below = 0; below < chosen; ++below)
      if (!queues_[below].empty()) ++passed_over_[below];
    return queues_[chosen].pop();
  }

  bool has_work(int /*worker*/) const noexcept override {
    const std::lock_guard guard{lock_};
    return !std::all_of(queues_.begin(), queues_.end(), [](const auto& q) { return q.empty(); });
  }

 private:
  /// The lowest level that was passed over too often, else the highest that is not empty; `count`: all are empty.
  std::size_t choose() const noexcept {
    std::size_t chosen = count;
    for (std::size_t at = 0; at < count; ++at) {
      if (queues_[at].empty()) continue;
      if (passed_over_[at] >= patience) return at;
      chosen = at;
    }
    return chosen;
  }

  mutable std::mutex lock_;  // several workers may come at once; each holds it for some nanoseconds
  std::array<ramie::runnable_queue, count> queues_;
  std::array<int, count> passed_over_{};  // since the level's last turn, while it was not empty
};

}  // namespace priorities
