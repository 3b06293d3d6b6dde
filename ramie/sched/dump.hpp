// What every fiber and actor of the process is doing, as text.
#pragma once

#include <signal.h>

#include <cstddef>

namespace ramie {

/// How much of it.
struct dump_options {
  std::size_t fibers = 1000;    // that are listed; the others are counted
  std::size_t actors = 1000;    // idle ones, the same
  std::size_t frames = 24;      // of each backtrace, 64 at most; 0: no backtraces
  std::size_t bytes = 8 << 20;  // of text
  int seconds = 10;             // after which it is cut short
};

/// Writes to the file descriptor what is going on: each runtime's workers and queues; each fiber that has begun, with
/// its name, what it waits for, since when and where, who spawned it (if it has a name) and who joins it, and its
/// backtrace; each actor, with its mailbox's length; and how many wait where. docs/debugging.md tells how to read it.
///
/// For programs that hang: takes no lock that anybody may hold, allocates nothing, and ends soon. A fiber that is being
/// looked at, a few microseconds, is not woken meanwhile; the others go on, so the whole is no snapshot. False if a
/// dump is under way already, then nothing is written. Does not suspend. Any thread; async-signal-safe.
bool dump(int fd, const dump_options& options = {}) noexcept;

/// From now on that signal makes the process dump to standard error and go on. Code that it interrupts in a system call
/// goes on too, as SA_RESTART has it (a sleep may end early). With it the backtraces of running fibers are shown as
/// well. Again: other options, or another signal. Throws invalid_argument for a signal that cannot be caught. Any
/// thread; does not suspend.
void dump_on_signal(int signal_number = SIGQUIT, const dump_options& options = {});

}  // namespace ramie
