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
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sync/deadline.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <source_location>
#include <utility>

namespace ramie {

/// Works with every lock that has lock() and unlock(). Fibers and plain threads may use the same one. Waits may end
/// without a notification, as with std: use a predicate. A fiber that is asked to stop while it waits locks again and
/// throws `cancelled`; if it was asked before, the wait throws at once. All waits throw resource_error, with the lock
/// held, if there is no stack for other work. It may be destroyed when every waiter was notified or has returned.
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

 private:
  struct node : detail::queued_wait {
    static constexpr std::uint64_t notified = 1;  // no reference looks like that
    detail::atomic<std::uint64_t> what{0};
  };
  void enter(node& n) noexcept;
  /// C2: false if the wait is over.
  static bool arm(node& n, detail::wait& pause) noexcept;
  void leave(node& n) noexcept;
  bool notify_first(detail::claimed_waits& woken) noexcept;

  template <class Lock>
  RAMIE_ALWAYS_INLINE bool wait_before(Lock& lock, const detail::steady_time* deadline,
                                       const std::source_location& where);
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

template <class Lock>
RAMIE_ALWAYS_INLINE bool condition_variable::wait_before(Lock& lock, const detail::steady_time* deadline,
                                                         const std::source_location& where) {
  node n;
  enter(n);
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
