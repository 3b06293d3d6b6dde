// How many pieces of work are under way, as Go's sync.WaitGroup.
#pragma once

#include <ramie/sync/deadline.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <chrono>
#include <cstddef>
#include <source_location>

namespace ramie {

/// A counter that goes up and down; waiters go on when it is zero. May be used again then. Fibers and plain threads may
/// use all of it alike. A waiter may destroy it as soon as its wait has returned.
class wait_group {
 public:
  constexpr explicit wait_group(std::ptrdiff_t n = 0) noexcept : queue_{static_cast<std::uint64_t>(n)} {}
  wait_group(const wait_group&) = delete;
  wait_group& operator=(const wait_group&) = delete;

  /// Adds `n`, which may be negative, to the counter, and lets all waiters go on if it is zero then. To be called
  /// before the work that it counts starts. Does not suspend. Throws usage_error, and changes nothing, if the counter
  /// would be negative.
  void add(std::ptrdiff_t n = 1);
  /// One piece of work is done: add(-1).
  void done() { add(-1); }

  /// True if the counter is zero.
  [[nodiscard]] bool try_wait() const noexcept { return queue_.is(0); }

  /// Suspends until the counter is zero. Throws `cancelled`, resource_error.
  RAMIE_ALWAYS_INLINE void wait(std::source_location where = std::source_location::current()) {
    if (try_wait()) return;
    if (const std::uint64_t left = queue_.lock(); left == 0) queue_.unlock(0);
    else queue_.unlock_and_wait(left, {"wait_group", where});
  }

  /// As `wait`, but no longer than `timeout`: false if the counter was not zero by then.
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

 private:
  bool wait_before(detail::steady_time deadline, const std::source_location& where);

  detail::wait_queue queue_;  // the number: the counter
};

}  // namespace ramie
