// Something has happened, or not yet.
#pragma once

#include <ramie/sync/timed.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <chrono>
#include <cstdint>
#include <source_location>

namespace ramie {

/// How an event is taken back: by `reset` alone, or by each waiter that it releases.
enum class event_reset : std::uint8_t { manual, automatic };

/// Set or not. With event_reset::manual, `set` releases all waiters, and it stays set until `reset`; with
/// event_reset::automatic, `set` releases one waiter, which resets it. Fibers and plain threads may use all of it
/// alike. The last waiter may destroy it as soon as its wait has returned.
class event : public detail::timed_waits<event> {
 public:
  constexpr explicit event(event_reset how = event_reset::manual, bool is_set = false) noexcept
      : queue_{is_set ? std::uint64_t{1} : 0}, how_{how} {}
  event(const event&) = delete;
  event& operator=(const event&) = delete;

  /// Sets it. Manual: wakes all waiters. Automatic: wakes the waiter that has waited longest; it is then not set.
  /// Without a waiter it stays set until one comes. Does not suspend.
  void set() noexcept;

  /// Resets it. Does not suspend.
  void reset() noexcept;

  /// Does not reset it. Does not suspend.
  [[nodiscard]] bool is_set() const noexcept { return queue_.is(1); }

  /// True if it is set; an automatic one is reset by that. Does not suspend.
  [[nodiscard]] bool try_wait() noexcept {
    if (how_ == event_reset::manual) return is_set();
    const std::uint64_t value = queue_.lock();
    queue_.unlock(0);
    return value != 0;
  }

  /// Suspends until it is set. Throws `cancelled`, resource_error.
  RAMIE_ALWAYS_INLINE void wait(std::source_location where = std::source_location::current()) {
    detail::ready_point();
    if (how_ == event_reset::manual && is_set()) return;
    if (queue_.lock() != 0) queue_.unlock(how_ == event_reset::manual ? 1 : 0);
    else queue_.unlock_and_wait(0, {"event", where}, [this, where] { wait(where); });
  }

 private:
  friend timed_waits;
  friend struct detail::waitable_access;
  bool wait_before(detail::steady_time deadline, const std::source_location& where);

  detail::wait_queue queue_;  // the number: 1 if set
  const event_reset how_;
};

}  // namespace ramie
