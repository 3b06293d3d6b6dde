// What the pieces of one running algorithm share: how far it has to go, its first failure, and how fast elements are.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/region.hpp>
#include <ramie/task/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>

namespace ramie::detail {

/// The workers of the calling runtime, without spares; 1 on a plain thread.
[[nodiscard]] std::size_t workers_here() noexcept;

/// Lives on the stack of the caller of an algorithm, below which all of its pieces run. A failure ends the algorithm as
/// that of a child ends a scope: pieces not begun are left out, and cancellable waits of the others throw `cancelled`.
class loop_state {
 public:
  explicit loop_state(std::size_t size) noexcept : wanted_{size} {}
  loop_state(const loop_state&) = delete;
  loop_state& operator=(const loop_state&) = delete;
  ~loop_state() {
    if (failed_.load(std::memory_order_relaxed)) remove_stopped(stopped_);
  }

  /// Elements from here on are not wanted any more. The reader of the elements' results has joined all pieces, so that
  /// no order is needed.
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_.load(std::memory_order_relaxed); }
  void cut(std::size_t at) noexcept {
    std::size_t seen = wanted();
    while (at < seen && !wanted_.compare_exchange_weak(seen, at, std::memory_order_relaxed)) {
    }
  }

  /// Elements that took a microsecond when some piece measured last; 0: unknown.
  [[nodiscard]] std::size_t quick() const noexcept { return quick_.load(std::memory_order_relaxed); }
  void set_quick(std::size_t elements) noexcept {
    if (elements != quick()) quick_.store(elements, std::memory_order_relaxed);
  }

  /// The owner, before pieces run elsewhere.
  void begin() noexcept;
  /// Of a piece, with its exception. One of a higher rank takes the place of the first; the others are reported on
  /// standard error, but not `cancelled`.
  void fail(std::exception_ptr failure) noexcept;
  /// The owner, when all pieces have ended: rethrows the failure that is left.
  void end() {
    if (failed_.load(std::memory_order_relaxed)) [[unlikely]]
      std::rethrow_exception(failure_);
  }

 private:
  atomic<std::size_t> wanted_;
  atomic<std::size_t> quick_{0};
  atomic<bool> failed_{false};
  spin_lock lock_;
  std::exception_ptr failure_;  // inside lock_; read by the owner after the join
  failure_rank rank_{};         // of `failure_`; inside lock_
  stopped_scope stopped_;       // once `failed_`
};

/// The number of elements to do until the next look at thieves, stop requests and failures.
class chunk_sizer {
 public:
  /// Of `left` elements, not 0. The first time one, since nothing is known of them; then as many as take `chunk_us`,
  /// as far as the last chunk tells. The first elements may be unusually fast, hence the bounds: 64 times the chunk
  /// before, and a quarter of what is left unless that takes less than a microsecond.
  std::size_t next(std::size_t left, loop_state& loop) noexcept {
    const std::uint64_t now = cycles();
    if (size_ == 0) {
      size_ = 1;
    } else {
      const std::uint64_t took = std::max<std::uint64_t>(now - since_, 1);
      const std::size_t by_time = static_cast<std::size_t>(size_ * cycles_in_us(chunk_us) / took);
      const std::size_t quick = by_time / chunk_us;
      loop.set_quick(quick);
      size_ = std::max<std::size_t>(1, std::min({by_time, 64 * size_, std::max(left / 4, quick)}));
    }
    since_ = now;
    return std::min(size_, left);
  }

 private:
  // A look costs some 20 ns. A thief waits no longer than a chunk, and in vain only at the end of the loop.
  static constexpr std::size_t chunk_us = 10;
  std::uint64_t since_ = 0;
  std::size_t size_ = 0;
};

}  // namespace ramie::detail
