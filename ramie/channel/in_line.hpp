// The steps that senders and receivers share: handing an element over, and waiting for a counterpart.
#pragma once

#include <ramie/channel/core.hpp>
#include <ramie/sync/deadline.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/ready_point.hpp>

#include <chrono>
#include <type_traits>

namespace ramie::detail {

/// Moves an element from or to the claimed counterpart. If that throws: C6.
template <class Move>
RAMIE_ALWAYS_INLINE void hand_over(operation& counterpart, Move move, std::true_type /* cannot throw */) noexcept {
  move();
  counterpart.result = operation::outcome::done;
}
template <class Move>
void hand_over(operation& counterpart, Move move, std::false_type) {
  try {
    move();
    counterpart.result = operation::outcome::done;
  } catch (...) {
    // The lock may be held while the counterpart resumes: it takes the lock again itself.
    counterpart.result = operation::outcome::retry;
    counterpart.claimed.go_on();
    throw;
  }
}

/// Waits in `line` as `mine`; `guard` is released meanwhile, and for good. Returns ok, closed or timeout, or `empty`:
/// begin again. What was cancelled may be done by again() (task/clean_up.hpp). Throws `cancelled`, and what suspending
/// throws.
template <class Suspend, class Again>
RAMIE_ALWAYS_INLINE channel_status wait_in_line(channel_core& core, waiting_line& line, operation& mine,
                                                channel_guard& guard, wait& pause, Suspend suspend, Again again) {
  mine.waiter = pause.ref();
  if (RAMIE_PLANT(channel_unlocked_early)) guard.unlock();
  line.add(mine);
  if (!RAMIE_PLANT(channel_unlocked_early)) guard.unlock_for_nothing();
  wake_reason why;
  try {
    why = suspend(pause);
  } catch (...) {
    core.leave(line, mine);
    throw;
  }
  if (why != wake_reason::event) [[unlikely]] {
    core.leave(line, mine);  // C5
    if (why == wake_reason::timeout) return channel_status::timeout;
    return begin_again(again);
  }
  switch (mine.result) {
    case operation::outcome::done: return channel_status::ok;
    case operation::outcome::closed: return channel_status::closed;
    default: return channel_status::empty;
  }
}

/// Calls `attempt(steady deadline)` until it returns anything but `timeout`, or `deadline` has come by its own clock,
/// which may be set meanwhile.
template <class Clock, class Duration, class Attempt>
channel_status status_until(std::chrono::time_point<Clock, Duration> deadline, Attempt attempt) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return attempt(saturated(deadline));
  } else {
    for (;;) {
      const auto left = time_left(deadline);
      const channel_status status = attempt(left == left.zero() ? steady_time{} : time_after(left));
      if (status != channel_status::timeout || time_left(deadline) == left.zero()) return status;
    }
  }
}

}  // namespace ramie::detail
