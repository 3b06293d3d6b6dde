// What a single fiber can be told at its start.
#pragma once

#include <ramie/sched/options.hpp>

#include <cstddef>
#include <string>

namespace ramie {

struct fiber_options {
  /// Shows in reports. Empty: none.
  std::string name{};
  /// Bytes of address space for the stack, 16 KiB to 1 GiB, rounded up to a power of two. 0: the runtime's stack size.
  std::size_t stack_size = 0;
  /// The number of the worker that alone may run it, from 0; -1: any may. What it forks may run elsewhere.
  int worker = -1;
  ramie::affinity affinity = affinity::automatic;
  /// For a scheduling_policy of the user's own; what it means is the policy's to say.
  int priority = 0;
};

}  // namespace ramie
