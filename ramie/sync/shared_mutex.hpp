// One writer or many readers, as std::shared_mutex and std::shared_timed_mutex.
//
//  R1 The number is the count of readers, a bit for a writer, and a bit that says that there are waiters. A caller that
//     may have the lock takes it by one compare-and-swap while there are no waiters, and gives it back in the same way.
//  R2 All other callers queue up, so readers that keep coming do not keep a writer out.
//  R3 A caller that leaves hands the lock to the first in the queue if that one may have it, and, if it is a reader, to
//     the readers behind it, up to the next writer.
//  R4 A writer that gives up may have kept the readers behind it from joining the present readers: it admits them.
// So every wait is bounded by the callers that came before. The rest as in wait_queue.hpp.
#pragma once

#include <ramie/sync/timed.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <chrono>
#include <source_location>

namespace ramie {

/// Works with std::unique_lock, std::shared_lock. Fibers and plain threads may use the same one. Waiting for it is not
/// cancelled, as with `mutex`. Not recursive: a writer that locks it again waits forever, and so may a reader, if a
/// writer waits. It may be destroyed as soon as it is free, even if an unlock that made it so has not returned.
class shared_mutex {
 public:
  constexpr shared_mutex() noexcept = default;
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  /// Suspends until the caller holds it alone.
  void lock(std::source_location where = std::source_location::current()) {
    if (!queue_.try_change(0, writer)) [[unlikely]]
      lock_slowly(writer, nullptr, where);
  }
  /// False if it is not free. Does not suspend.
  [[nodiscard]] bool try_lock() noexcept;
  /// Throws usage_error if it is not held alone.
  void unlock() {
    if (!queue_.try_change(writer, 0)) [[unlikely]]
      unlock_slowly(writer);
  }

  /// Suspends until no writer holds it.
  void lock_shared(std::source_location where = std::source_location::current()) {
    if (!enter_shared()) [[unlikely]]
      lock_slowly(reader, nullptr, where);
  }
  /// False if a writer holds it or waits for it. Does not suspend.
  [[nodiscard]] bool try_lock_shared() noexcept;
  /// Throws usage_error if no reader holds it.
  void unlock_shared() {
    bool unlocked = false;
    const std::uint64_t value = queue_.peek(unlocked);
    if (!unlocked || value < reader || (value & waiting) != 0 || !queue_.try_change(value, value - reader)) [[unlikely]]
      unlock_slowly(reader);
  }

 protected:
  static constexpr std::uint64_t writer = 1, waiting = 2, reader = 4;

  bool lock_slowly(std::uint64_t how, const detail::steady_time* deadline, const std::source_location& where);
  bool lock_before(detail::steady_time deadline, const std::source_location& where) {
    return lock_slowly(writer, &deadline, where);
  }

 private:
  void unlock_slowly(std::uint64_t how);
  /// R3, R4: gives the lock of the number back, which is `value` but for those admitted and the bit.
  void admit_and_unlock(std::uint64_t value) noexcept;
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool enter_shared() noexcept {
    bool unlocked = false;
    const std::uint64_t value = queue_.peek(unlocked);
    return unlocked && (value & (writer | waiting)) == 0 && queue_.try_change(value, value + reader);
  }

  detail::wait_queue queue_;
};

/// shared_mutex with timed forms: they return false if the lock was not free in time.
class shared_timed_mutex : shared_mutex, public detail::timed_locks<shared_timed_mutex> {
 public:
  using shared_mutex::lock;
  using shared_mutex::lock_shared;
  using shared_mutex::try_lock;
  using shared_mutex::try_lock_shared;
  using shared_mutex::unlock;
  using shared_mutex::unlock_shared;

  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> timeout,
                                         std::source_location where = std::source_location::current()) {
    return try_lock_shared_until(detail::time_after(timeout), where);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> deadline,
                                           std::source_location where = std::source_location::current()) {
    return detail::attempt_until(deadline, [&](detail::steady_time t) { return lock_slowly(reader, &t, where); });
  }

 private:
  friend timed_locks;
};

}  // namespace ramie
