// Options of a single fiber, set at its start.
#pragma once

#include <ramie/sched/options.hpp>

#include <cstddef>
#include <string>

namespace ramie {

struct fiber_options {
  /// Shown in reports. Empty: none.
  std::string name{};
  /// Bytes of address space for the stack, 16 KiB to 1 GiB, rounded up to a power of two. 0: the runtime's stack size.
  std::size_t stack_size = 0;
  /// The only worker that may run it, from 0; -1: any may. Its forks may run elsewhere.
  int worker = -1;
  ramie::affinity affinity = affinity::automatic;
  /// For a user's scheduling_policy, which defines its meaning.
  int priority = 0;
};

}  // namespace ramie
