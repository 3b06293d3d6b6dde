// Waiting in a loop for another thread.
#pragma once

#include <ramie/machine/fence.hpp>

namespace ramie::detail {

/// For loops that end when another thread has executed a few dozen instructions: pauses at first, and yields the time
/// slice from the 64th time on (a guess), because that thread may have been preempted. `round` counts; starts at
/// zero. Does not suspend.
RAMIE_ALWAYS_INLINE void pause_a_little(int& round) noexcept {
  if (round < 64) ++round, spin_pause();
  else os_yield();
}

}  // namespace ramie::detail
