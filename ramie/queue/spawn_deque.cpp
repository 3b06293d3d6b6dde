#include <ramie/queue/spawn_deque.hpp>

#include <ramie/base/atomic.hpp>

#include <algorithm>

namespace ramie::detail {

task* spawn_deque::pop_slowly(std::int64_t b) noexcept {
  // P4. Thieves were first, or one is between T3 and T5, or the deque is empty.
  if (RAMIE_PLANT(spawn_deque_empty_early) && bottom_.load(std::memory_order_relaxed) == b + 1) return nullptr;
  std::lock_guard guard{thieves_};
  if (top_.load(std::memory_order_relaxed) <= b) {
    bottom_.store(b, std::memory_order_relaxed);
    return slots_[static_cast<std::size_t>(b & (size_ - 1))].load(std::memory_order_relaxed);
  }
  bottom_.store(b + 1, std::memory_order_relaxed);
  return nullptr;
}

task* spawn_deque::pop_oldest(bool (*test)(const task& t)) noexcept {
  std::lock_guard guard{thieves_};
  const std::int64_t t = top_.load(std::memory_order_relaxed);
  if (t >= bottom_.load(std::memory_order_relaxed)) return nullptr;
  task* oldest = slots_[static_cast<std::size_t>(t & (size_ - 1))].load(std::memory_order_relaxed);
  if (test != nullptr && !test(*oldest)) return nullptr;
  top_.store(t + 1, std::memory_order_relaxed);
  return oldest;
}

std::size_t spawn_deque::steal(task** out) noexcept {
  if (size() == 0 || !thieves_.try_lock()) return 0;
  const std::int64_t t = top_.load(std::memory_order_relaxed);
  const std::int64_t there = bottom_.load(std::memory_order_relaxed) - t;
  std::int64_t n = std::min((there + 1) / 2, steal_most);
  if (n > 0) {
    top_.store(t + n, std::memory_order_relaxed);
    if (!RAMIE_PLANT(spawn_deque_no_fence)) heavy_fence();
    n = std::clamp<std::int64_t>(bottom_.load(std::memory_order_acquire) - t, 0, n);
    top_.store(t + n, std::memory_order_release);
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = slots_[static_cast<std::size_t>((t + i) & (size_ - 1))].load(std::memory_order_relaxed);
  }
  thieves_.unlock();
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

void spawn_deque::grow() {
  std::lock_guard guard{thieves_};
  const std::int64_t t = top_.load(std::memory_order_relaxed);
  const std::int64_t b = bottom_.load(std::memory_order_relaxed);
  const std::int64_t larger = size_ * 2;
  auto slots = std::make_unique<atomic<task*>[]>(static_cast<std::size_t>(larger));
  for (std::int64_t i = t; i < b; ++i)
    slots[static_cast<std::size_t>(i & (larger - 1))].store(
        slots_[static_cast<std::size_t>(i & (size_ - 1))].load(std::memory_order_relaxed), std::memory_order_relaxed);
  slots_ = std::move(slots);
  size_ = larger;
}

}  // namespace ramie::detail
