// The workers of one scheduler, by number. Regular ones first, then spares; a number is not reused before the end.
#pragma once

#include <ramie/base/atomic.hpp>

#include <cstddef>
#include <memory>

namespace ramie::detail {

struct worker;

/// Read by any thread, changed by one at a time.
class worker_roster {
 public:
  /// Room for this many workers. Throws std::bad_alloc. Once, before the first.
  void reserve(std::size_t most) { workers_ = std::make_unique<atomic<worker*>[]>(most); }

  [[nodiscard]] std::size_t size() const noexcept { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] worker& operator[](std::size_t i) const noexcept {
    return *workers_[i].load(std::memory_order_acquire);
  }
  void add(worker& w) noexcept {
    const std::size_t n = count_.load(std::memory_order_relaxed);
    workers_[n].store(&w, std::memory_order_release);
    count_.store(n + 1, std::memory_order_release);
  }
  /// From now on there are only `n`. Other threads may still use those that were there.
  void shrink(std::size_t n) noexcept { count_.store(n, std::memory_order_release); }

 private:
  friend struct debug_access;
  std::unique_ptr<atomic<worker*>[]> workers_;
  atomic<std::size_t> count_{0};
};

}  // namespace ramie::detail
