// Threads that live as long as the process, for what the kernel ties to a thread: children that are to end with their
// parent (PR_SET_PDEATHSIG means the thread that started them), and signals that all other threads block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// A thread each: to start a program may take long.
enum class duty : std::uint8_t { starts_children, takes_signals };

/// Runs f(context) on the thread of that duty, and returns when it has returned. The first call starts the thread, and
/// the first one in a child of fork(2) another. It has the limits (capabilities, filters of system calls, niceness) of
/// the thread that made that first call, and the processors of the process's first thread; signals are blocked there as
/// block_signals does. `f` does not throw; calls run one after the other. Throws resource_error, std::bad_alloc. Any
/// thread; blocks.
void on_lasting_thread(duty d, void (*f)(void* context), void* context);

/// How many there are in this process. Any thread.
[[nodiscard]] std::size_t lasting_threads() noexcept;

template <class F>
void on_lasting_thread(duty d, F& f) {
  on_lasting_thread(d, [](void* context) { (*static_cast<F*>(context))(); }, &f);
}

}  // namespace ramie::detail
