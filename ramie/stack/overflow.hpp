// Reports that a fiber has overflowed its stack.
#pragma once

#include <ramie/stack/stack.hpp>

#include <cstddef>

namespace ramie::detail {

/// Writes what is on a stack (see stack::occupant), as `fiber "name"`, into `buffer`, terminated. Set by the floor that
/// knows tasks; must be async-signal-safe. An empty text means that there is nothing to say.
using occupant_namer = void (*)(const stack& s, char* buffer, std::size_t size) noexcept;
/// Writes the calls that led to an overflow to standard error; `machine_context` as a signal handler has it. Must be
/// async-signal-safe.
using overflow_tracer = void (*)(const stack& s, const void* machine_context) noexcept;
/// Any thread. Null for none.
void set_occupant_namer(occupant_namer namer) noexcept;
void set_overflow_tracer(overflow_tracer tracer) noexcept;

/// Installs the SIGSEGV and SIGBUS handler once per process; it chains to what was installed before. Later calls do
/// nothing. Throws resource_error if the system refuses. Any thread.
void install_overflow_handler();

/// Gives the calling thread an alternate signal stack, unless it has one, and removes it again; both on the same
/// thread. A fiber's stack is full when the handler must run.
class alternate_signal_stack {
 public:
  alternate_signal_stack();  // throws resource_error
  ~alternate_signal_stack();
  alternate_signal_stack(const alternate_signal_stack&) = delete;
  alternate_signal_stack& operator=(const alternate_signal_stack&) = delete;

 private:
  void* memory_ = nullptr;  // null if the thread had one
};

}  // namespace ramie::detail
