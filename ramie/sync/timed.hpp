// The timed forms of several classes, each made from one member function that waits until a deadline.
#pragma once

#include <ramie/sync/deadline.hpp>
#include <ramie/task/ready_point.hpp>

#include <chrono>
#include <source_location>

namespace ramie::detail {

/// For a class with try_wait(), and wait_before(steady deadline, where), which is false if the deadline came first. It
/// derives from this and makes it a friend.
template <class Self>
class timed_waits {
 public:
  /// Same as `wait`, but no longer than `timeout`, or until `deadline`, of any clock: returns false then. Also throws
  /// std::bad_alloc.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> timeout,
                              std::source_location where = std::source_location::current()) {
    return wait_until(time_after(timeout), where);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> deadline,
                                std::source_location where = std::source_location::current()) {
    Self& self = static_cast<Self&>(*this);
    ready_point();
    return self.try_wait() || attempt_until(deadline, [&](steady_time t) { return self.wait_before(t, where); });
  }
};

/// The same for a lock with try_lock() and lock_before(steady deadline, where).
template <class Self>
class timed_locks {
 public:
  /// Same as `lock`, but no longer than `timeout`, or until `deadline`, of any clock: returns false then. Not
  /// cancelled; a deadline of with_timeout around it does not count. Throws std::bad_alloc.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> timeout,
                                  std::source_location where = std::source_location::current()) {
    return try_lock_until(time_after(timeout), where);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> deadline,
                                    std::source_location where = std::source_location::current()) {
    Self& self = static_cast<Self&>(*this);
    return self.try_lock() || attempt_until(deadline, [&](steady_time t) { return self.lock_before(t, where); });
  }
};

}  // namespace ramie::detail
