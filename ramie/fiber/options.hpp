// Options of a single fiber, set at its start.
#pragma once

#include <ramie/sched/options.hpp>

#include <cstddef>
#include <string>

namespace ramie {

/// For `spawn` and scope::spawn.
struct fiber_options {
  /// Shown in reports. Empty: none.
  std::string name{};
  /// Bytes of address space for the stack, 16 KiB to 1 GiB, rounded up to a power of two. 0: the runtime's stack size.
  std::size_t stack_size = 0;
  /// Pins the fiber to this worker (0-based); -1: no pin. Functions that it passes to fork_join may still run
  /// elsewhere.
  int worker = -1;
  /// Whether it has a home; see docs/scheduler.md.
  ramie::affinity affinity = affinity::automatic;
  /// For a user's scheduling_policy, which defines its meaning.
  int priority = 0;
};

}  // namespace ramie
