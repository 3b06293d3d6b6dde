// What every fiber and actor of the process is doing, as text.
#pragma once

#include <signal.h>

#include <cstddef>

namespace ramie {

/// The limits of a dump.
struct dump_options {
  std::size_t fibers = 1000;    // that are listed; the others are counted
  std::size_t actors = 1000;    // idle ones, the same
  std::size_t frames = 24;      // of each backtrace, 64 at most; 0: no backtraces
  std::size_t bytes = 8 << 20;  // of text
  int seconds = 10;             // after which it is cut short
  bool demangle = false;        // functions by their C++ names; allocates, so not for a `dump` in a signal handler
};

/// Writes to the file descriptor: each runtime's workers and queues; each fiber that has begun, with its name, what it
/// waits for, how long and where, the fiber that spawned it (if it has a name) and the one that joins it, and its
/// backtrace; each actor, with its mailbox's length; how many wait where; and what components show (status.hpp).
/// docs/debugging.md explains how to read it.
///
/// For programs that hang: waits for no lock, allocates nothing, and ends soon. A fiber is held for the few
/// microseconds that it is looked at; the others continue, so the whole is not a snapshot. If another dump is under
/// way, returns false and writes nothing. Does not suspend. Any thread; async-signal-safe.
bool dump(int fd, const dump_options& options = {}) noexcept;

/// From now on that signal makes the process dump to standard error and continue. System calls that it interrupts
/// are resumed, as SA_RESTART has it (a sleep may end early). With it the backtraces of running fibers are shown as
/// well. With `demangle` a thread of a runtime writes it, if there is one that answers. Call it again for other
/// options, or another signal. Throws invalid_argument for a signal that cannot be caught. Any thread; does not
/// suspend.
void dump_on_signal(int signal_number = SIGQUIT, const dump_options& options = {.demangle = true});

}  // namespace ramie
