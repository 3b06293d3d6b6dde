// What the simulator's programs share: small runtimes, and pauses that move the next step about.
#pragma once

#include "simulator.hpp"

#include <ramie/machine/spin_lock.hpp>
#include <ramie/runtime/runtime.hpp>

namespace ramie::interleave {

/// `n` workers and no spares; a deadlock is the simulator's to report.
inline runtime_options workers(int n) {
  return {.workers = n, .stack_size = 64 * 1024, .name = "sim", .spare_workers = 0, .report_deadlocks = false};
}

/// A program for the main fiber of a runtime.
template <class F>
auto in_runtime(F program, int n = 2) {
  return [program, n] {
    runtime rt{workers(n)};
    rt.run([&] { program(); });
  };
}

/// So that the next step meets the others at any point.
inline void wait_a_little() {
  if (pick(2) == 0) detail::os_sleep(1000 * pick(20));
}

}  // namespace ramie::interleave
