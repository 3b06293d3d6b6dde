// Waiting in a loop for another thread.
#pragma once

#include <ramie/machine/fence.hpp>

namespace ramie::detail {

inline constexpr int pauses_most = 64;                  // guesses, as is the next
inline constexpr int rounds_most = pauses_most + 1000;  // some hundred microseconds, if nobody else wants the processor

/// The thread that is waited for does not run. To yield is not enough if this one is of a real-time class: threads of
/// lower priority run only while it sleeps.
RAMIE_COLD inline void give_way(int& round) noexcept {
  if (round < rounds_most) ++round, os_yield();
  else os_sleep(100'000);
}

/// For loops that end when another thread has executed a few dozen instructions: pauses at first, then yields the time
/// slice, because that thread may have been preempted, and at last sleeps for a little while each time. `round` counts;
/// starts at zero. Does not suspend.
RAMIE_ALWAYS_INLINE void pause_a_little(int& round) noexcept {
  if (round < pauses_most) ++round, spin_pause();
  else give_way(round);
}

}  // namespace ramie::detail
