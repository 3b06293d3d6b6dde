// A count that goes down to zero once, as std::latch.
#pragma once

#include <ramie/sync/deadline.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <chrono>
#include <cstddef>
#include <limits>
#include <source_location>

namespace ramie {

/// Fibers and plain threads may use all of it alike. A waiter may destroy it as soon as its wait has returned.
class latch {
 public:
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return std::numeric_limits<std::int32_t>::max(); }

  /// Opens after `expected` count-downs; is open at once if that is 0.
  constexpr explicit latch(std::ptrdiff_t expected) noexcept : queue_{static_cast<std::uint64_t>(expected)} {}
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  /// Takes `n` off the count, and lets all waiters go on if it is zero then. Does not suspend. Throws usage_error, and
  /// changes nothing, if the count is less than `n`.
  void count_down(std::ptrdiff_t n = 1);

  /// True if the count is zero.
  [[nodiscard]] bool try_wait() const noexcept { return queue_.is(0); }

  /// Suspends until the count is zero. Throws `cancelled`, resource_error.
  RAMIE_ALWAYS_INLINE void wait(std::source_location where = std::source_location::current()) {
    if (try_wait()) return;
    if (const std::uint64_t left = queue_.lock(); left == 0) queue_.unlock(0);
    else queue_.unlock_and_wait(left, {"latch", where});
  }

  /// As `wait`, but no longer than `timeout`: false if the count was not zero by then.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> timeout,
                              std::source_location where = std::source_location::current()) {
    return try_wait() || wait_before(detail::time_after(timeout), where);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> deadline,
                                std::source_location where = std::source_location::current()) {
    return try_wait() || detail::attempt_until(deadline, [&](detail::steady_time t) { return wait_before(t, where); });
  }

  /// count_down(n), then `wait`.
  RAMIE_ALWAYS_INLINE void arrive_and_wait(std::ptrdiff_t n = 1,
                                           std::source_location where = std::source_location::current()) {
    count_down(n);
    wait(where);
  }

 private:
  bool wait_before(detail::steady_time deadline, const std::source_location& where);

  detail::wait_queue queue_;  // the number: what is left of the count
};

}  // namespace ramie
