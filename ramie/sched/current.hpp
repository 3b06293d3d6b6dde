// The worker that runs the calling code, or null on a plain thread.
//
// A fiber may go on on another thread after any suspension, so the compiler must never keep the address of a
// thread-local across one, which it would do with a plain `thread_local` access. Hence the accessor is one volatile
// piece of assembly that reads the variable afresh each time; its two instructions become one move after linking into
// an executable.
#pragma once

#include <ramie/base/config.hpp>

namespace ramie::detail {
struct fork_deque;
}

// The initial-exec model keeps the access free of calls; it fits libraries loaded at program start.
extern "C" __thread ramie::detail::fork_deque* ramie_current_forks __attribute__((tls_model("initial-exec")));

namespace ramie::detail {

/// The fork deque of the calling worker (a `worker` is one), or null on a plain thread.
RAMIE_ALWAYS_INLINE fork_deque* current_forks() noexcept {
  fork_deque* forks;
#if defined(__x86_64__)
  asm volatile(
      "movq ramie_current_forks@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(forks));
#else
  void* offset;
  asm volatile(
      "mrs %0, tpidr_el0\n\t"
      "adrp %1, :gottprel:ramie_current_forks\n\t"
      "ldr %1, [%1, :gottprel_lo12:ramie_current_forks]\n\t"
      "ldr %0, [%0, %1]"
      : "=&r"(forks), "=&r"(offset));
#endif
  return forks;
}

}  // namespace ramie::detail
