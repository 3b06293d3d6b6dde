// Waiting for a condition that a lock guards, with any lock, as std::condition_variable_any.
//
//  C1 A waiter links its node, not armed yet, and only then unlocks the user's lock: a notification from then on finds
//     the node. The user's unlock may do anything, also suspend, so the wait is armed after it.
//  C2 Then it arms and puts the reference into its node by compare-and-swap. If a notification came first, it withdraws
//     the wait instead, without touching the condition variable, which may be gone since the notification.
//  C3 A notifier unlinks the first node under the internal lock, and exchanges "notified" for the node's content. If
//     that was a reference, it claims the wait; if the claim fails (a timeout, a cancellation), it tries the next node:
//     a notification is not lost.
//  C4 However the wait ends, the user's lock is taken again before anything is returned or thrown.
//  C5 A wait that was cancelled, and begins again (task/clean_up.hpp), stays linked meanwhile. If it still is, under the
//     internal lock, its node's content becomes "not armed"; otherwise it was notified.
//  C6 A waiter with a stop token has a callback that notifies its node, under the internal lock, if it still is linked.
//     It registers the callback once the node is linked: if the token was stopped before, that calls it. The callback is
//     gone before the node is.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sync/deadline.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <source_location>
#include <stop_token>
#include <utility>

namespace ramie {

/// Works with every lock that has lock() and unlock(). Fibers and plain threads may use the same one. Waits may end
/// without a notification, as with std: use a predicate. A fiber that is asked to stop while it waits locks again and
/// throws `cancelled`; if it was asked before, the wait throws at once. All waits throw resource_error, with the lock
/// held, if there is no stack for other work. It may be destroyed when every waiter was notified or has returned; one
/// with a stop token must have returned.
class condition_variable {
 public:
  constexpr condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  /// Wakes the waiter that has waited longest. Does not suspend. Any fiber or thread, with the lock or without.
  void notify_one() noexcept;
  void notify_all() noexcept;

  /// Unlocks, suspends until notified, locks again.
  template <class Lock>
  void wait(Lock& lock, std::source_location where = std::source_location::current()) {
    wait_before(lock, nullptr, where);
  }
  /// Until `condition()`, which is called with the lock held.
  template <class Lock, class Predicate>
    requires std::is_invocable_r_v<bool, Predicate&>
  void wait(Lock& lock, Predicate condition, std::source_location where = std::source_location::current()) {
    detail::ready_point();
    while (!condition()) wait_before(lock, nullptr, where);
  }
  /// Until `condition()`, or `stop` is requested: the last result of `condition()`. A fiber's function can have a token
  /// of its own (spawn), and one of all that ends its waits (with_stop_token); any std::stop_source will do.
  template <class Lock, class Predicate>
    requires std::is_invocable_r_v<bool, Predicate&>
  bool wait(Lock& lock, std::stop_token stop, Predicate condition,
            std::source_location where = std::source_location::current()) {
    detail::ready_point();
    while (!stop.stop_requested()) {
      if (condition()) return true;
      wait_or_stop(lock, stop, nullptr, where);
    }
    return condition();
  }

  /// No longer than until `deadline`.
  template <class Lock, class Clock, class Duration>
  std::cv_status wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> deadline,
                            std::source_location where = std::source_location::current()) {
    const bool notified =
        detail::attempt_until(deadline, [&](detail::steady_time t) { return wait_before(lock, &t, where); });
    return notified ? std::cv_status::no_timeout : std::cv_status::timeout;
  }
  /// Returns the last result of `condition()`.
  template <class Lock, class Clock, class Duration, class Predicate>
    requires std::is_invocable_r_v<bool, Predicate&>
  bool wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> deadline, Predicate condition,
                  std::source_location where = std::source_location::current()) {
    detail::ready_point();
    while (!condition())
      if (wait_until(lock, deadline, where) == std::cv_status::timeout) return condition();
    return true;
  }
  /// The same, or until `stop` is requested.
  template <class Lock, class Clock, class Duration, class Predicate>
    requires std::is_invocable_r_v<bool, Predicate&>
  bool wait_until(Lock& lock, std::stop_token stop, std::chrono::time_point<Clock, Duration> deadline,
                  Predicate condition, std::source_location where = std::source_location::current()) {
    detail::ready_point();
    while (!stop.stop_requested()) {
      if (condition()) return true;
      if (!detail::attempt_until(deadline, [&](detail::steady_time t) { return wait_or_stop(lock, stop, &t, where); }))
        break;
    }
    return condition();
  }

  /// No longer than `timeout`.
  template <class Lock, class Rep, class Period>
  std::cv_status wait_for(Lock& lock, std::chrono::duration<Rep, Period> timeout,
                          std::source_location where = std::source_location::current()) {
    return wait_until(lock, detail::time_after(timeout), where);
  }
  template <class Lock, class Rep, class Period, class Predicate>
    requires std::is_invocable_r_v<bool, Predicate&>
  bool wait_for(Lock& lock, std::chrono::duration<Rep, Period> timeout, Predicate condition,
                std::source_location where = std::source_location::current()) {
    return wait_until(lock, detail::time_after(timeout), std::move(condition), where);
  }
  template <class Lock, class Rep, class Period, class Predicate>
    requires std::is_invocable_r_v<bool, Predicate&>
  bool wait_for(Lock& lock, std::stop_token stop, std::chrono::duration<Rep, Period> timeout, Predicate condition,
                std::source_location where = std::source_location::current()) {
    return wait_until(lock, std::move(stop), detail::time_after(timeout), std::move(condition), where);
  }

 private:
  struct node : detail::queued_wait {
    static constexpr std::uint64_t notified = 1;  // no reference looks like that
    detail::atomic<std::uint64_t> what{0};
  };
  void enter(node& n) noexcept;
  /// C2: false if the wait is over.
  static bool arm(node& n, detail::wait& pause) noexcept;
  void leave(node& n) noexcept;
  /// C6.
  void notify_this(node& n) noexcept;
  bool notify_first(detail::claimed_waits& woken) noexcept;

  /// Keeps the result of meanwhile(node) as long as the node.
  template <class Lock, class Meanwhile>
  RAMIE_ALWAYS_INLINE bool wait_before(Lock& lock, const detail::steady_time* deadline,
                                       const std::source_location& where, Meanwhile meanwhile);
  template <class Lock>
  RAMIE_ALWAYS_INLINE bool wait_before(Lock& lock, const detail::steady_time* deadline,
                                       const std::source_location& where) {
    return wait_before(lock, deadline, where, [](node&) RAMIE_LAMBDA_INLINE { return 0; });
  }
  /// Not part of its caller: the end of the callback asks on which thread it is, which may be another one than before.
  template <class Lock>
  RAMIE_NOINLINE bool wait_or_stop(Lock& lock, const std::stop_token& stop, const detail::steady_time* deadline,
                                   const std::source_location& where) {
    return wait_before(lock, deadline, where, [&](node& n) {
      const auto notify = [this, &n] { notify_this(n); };
      return std::stop_callback<decltype(notify)>{stop, notify};
    });
  }
  /// Until the wait is over. The node may still be linked.
  RAMIE_ALWAYS_INLINE detail::wake_reason await(node& n, const detail::steady_time* deadline,
                                                const std::source_location& where);
  /// After a wait that was cancelled: waits again if the caller is in clean-up (task/clean_up.hpp). Otherwise, and if
  /// that is cancelled as well, returns `cancelled`.
  RAMIE_COLD detail::wake_reason await_in_clean_up(node& n, const detail::steady_time* deadline,
                                                   const std::source_location& where);
  /// C5. False: it was notified.
  bool renew(node& n) noexcept;

  detail::word_lock guard_;
  detail::wait_list<node> list_;
};

using condition_variable_any = condition_variable;

RAMIE_ALWAYS_INLINE detail::wake_reason condition_variable::await(node& n, const detail::steady_time* deadline,
                                                                  const std::source_location& where) {
  const detail::wait_site site{"condition_variable", where};
  detail::wait pause{detail::wait::kind::cancellable, site};
  if (!arm(n, pause)) return detail::wake_reason::event;
  detail::wake_reason why;
  try {
    why = deadline == nullptr ? pause.suspend() : pause.suspend_until(*deadline);
  } catch (...) {
    leave(n);
    throw;
  }
  return why;
}

template <class Lock, class Meanwhile>
RAMIE_ALWAYS_INLINE bool condition_variable::wait_before(Lock& lock, const detail::steady_time* deadline,
                                                         const std::source_location& where, Meanwhile meanwhile) {
  node n;
  enter(n);
  [[maybe_unused]] const auto during = meanwhile(n);
  try {
    lock.unlock();
  } catch (...) {
    leave(n);
    throw;
  }
  struct relocking {  // C4
    Lock& lock;
    ~relocking() noexcept(false) { lock.lock(); }
  };
  detail::wake_reason why = detail::wake_reason::event;
  {
    const relocking at_end{lock};
    why = await(n, deadline, where);
    if (why == detail::wake_reason::cancelled) why = await_in_clean_up(n, deadline, where);
    if (why != detail::wake_reason::event) leave(n);
  }
  if (why == detail::wake_reason::cancelled) throw cancelled{};
  return why == detail::wake_reason::event;
}

}  // namespace ramie
