// A number of permits, as std::counting_semaphore.
//
// A released permit goes straight to the waiter that has waited longest; no other caller can take it before that one
// runs. So no waiter is passed over, and an acquire that finds a free permit finds no waiter. See wait_queue.hpp.
#pragma once

#include <ramie/sync/deadline.hpp>
#include <ramie/sync/wait_queue.hpp>
#include <ramie/sync/zero_count.hpp>

#include <chrono>
#include <cstddef>
#include <limits>
#include <source_location>

namespace ramie {

namespace detail {
[[noreturn]] void throw_too_many_permits(std::ptrdiff_t n, std::uint64_t free, std::ptrdiff_t most);
}

/// Fibers and plain threads may use all of it alike. It may be destroyed as soon as there is no waiter, even if a
/// `release` that woke the last waiter has not returned.
template <std::ptrdiff_t LeastMax = std::numeric_limits<std::ptrdiff_t>::max()>
class counting_semaphore {
  static_assert(LeastMax >= 0);

 public:
  /// Starts with `permits` free permits, from 0 to max(). Throws invalid_argument for any other number.
  constexpr explicit counting_semaphore(std::ptrdiff_t permits)
      : queue_{detail::checked_count("semaphore", permits, LeastMax)} {}
  counting_semaphore(const counting_semaphore&) = delete;
  counting_semaphore& operator=(const counting_semaphore&) = delete;

  /// The most permits that may be free at a time.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return LeastMax; }

  /// Takes a permit; suspends until there is one. Throws `cancelled` if the fiber is asked to stop, see
  /// docs/guides/structured.md; resource_error if there is no stack for other work. In both cases it has taken no
  /// permit.
  RAMIE_ALWAYS_INLINE void acquire(std::source_location where = std::source_location::current()) {
    detail::ready_point();
    if (take_free()) [[likely]]
      return;
    const std::uint64_t free = queue_.lock();
    if (free > 0) queue_.unlock(free - 1);
    else queue_.unlock_and_wait(0, {"semaphore", where}, [this, where] { acquire(where); });
  }

  /// Takes a permit if one is free. Does not suspend.
  [[nodiscard]] bool try_acquire() noexcept {
    if (take_free()) return true;
    const std::uint64_t free = queue_.lock();
    queue_.unlock(free > 0 ? free - 1 : 0);
    return free > 0;
  }

  /// As `acquire`, but no longer than `timeout`: false if it got none by then.
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> timeout,
                                     std::source_location where = std::source_location::current()) {
    detail::ready_point();
    if (take_free()) return true;
    return acquire_before(detail::time_after(timeout), where);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(std::chrono::time_point<Clock, Duration> deadline,
                                       std::source_location where = std::source_location::current()) {
    detail::ready_point();
    if (take_free()) return true;
    return detail::attempt_until(deadline, [&](detail::steady_time t) { return acquire_before(t, where); });
  }

  /// Gives `n` permits back, or adds new ones. Does not suspend. Any fiber or thread. Throws usage_error, and gives
  /// none, if there would be more than max().
  void release(std::ptrdiff_t n = 1) {
    detail::claimed_waits woken;  // woken when the lock is free
    std::uint64_t free = queue_.lock();
    std::uint64_t rest = static_cast<std::uint64_t>(n);
    if (n < 0 || rest > static_cast<std::uint64_t>(LeastMax) - free) [[unlikely]] {
      queue_.unlock(free);
      detail::throw_too_many_permits(n, free, LeastMax);
    }
    while (rest > 0 && queue_.claim_first(woken)) --rest;
    queue_.unlock(free + rest);
  }

 private:
  friend struct detail::waitable_access;
  RAMIE_ALWAYS_INLINE bool take_free() noexcept {
    bool unlocked = false;
    const std::uint64_t free = queue_.peek(unlocked);
    return unlocked && free > 0 && queue_.try_change(free, free - 1);
  }
  bool acquire_before(detail::steady_time deadline, const std::source_location& where) {
    const std::uint64_t free = queue_.lock();
    if (free == 0)
      return queue_.unlock_and_wait_until(0, {"semaphore", where}, deadline,
                                          [&] { return take_free() || acquire_before(deadline, where); });
    queue_.unlock(free - 1);
    return true;
  }

  detail::wait_queue queue_;  // the number: free permits; none while there are waiters
};

using binary_semaphore = counting_semaphore<1>;

}  // namespace ramie
