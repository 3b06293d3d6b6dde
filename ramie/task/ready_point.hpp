// Where a call that may wait looks whether its fiber is to stop, although it need not wait: a loop over a channel that
// always has something, or a socket whose peer is faster, would otherwise never hear of a request, a deadline, a failed
// scope, or the end of the runtime. The look is dear, so only one call in 32 to 95 takes it. That number is random: a
// fixed one could be in step with a loop of several calls, of which the one that looks is always in a `shield`. tokio
// has a budget in its place (tokio#2160), which makes a task yield; here the call throws.
#pragma once

#include <ramie/base/config.hpp>

#include <cstdint>

/// Calls until the thread looks again. A fiber takes over what the one before it on the thread has left.
extern "C" __thread std::uint32_t ramie_ready_calls __attribute__((tls_model("initial-exec")));

namespace ramie::detail {

/// Counts a call. True: it is to look. In assembly, see current.hpp: a fiber may have come to another thread.
RAMIE_ALWAYS_INLINE bool is_to_look() noexcept {
#if defined(__x86_64__)
  bool last;
  std::uintptr_t offset;
  asm volatile(
      "movq ramie_ready_calls@gottpoff(%%rip), %1\n\t"
      "subl $1, %%fs:(%1)"
      : "=@cce"(last), "=r"(offset));
  return last;
#else
  void* thread;
  void* offset;
  std::uint32_t left;
  asm volatile(
      "mrs %0, tpidr_el0\n\t"
      "adrp %1, :gottprel:ramie_ready_calls\n\t"
      "ldr %1, [%1, :gottprel_lo12:ramie_ready_calls]\n\t"
      "ldr %w2, [%0, %1]\n\t"
      "sub %w2, %w2, #1\n\t"
      "str %w2, [%0, %1]"
      : "=&r"(thread), "=&r"(offset), "=&r"(left));
  return left == 0;
#endif
}

/// Chooses when to look again. True if the caller is to stop.
bool looks_and_is_to_stop() noexcept;
/// The same; throws `cancelled` then, but not in clean-up.
RAMIE_COLD void stop_if_asked();

/// At the beginning of a call, before it takes anything. Throws `cancelled`. Fibers and, for regions around, plain
/// threads. Does not suspend.
RAMIE_ALWAYS_INLINE void ready_point() {
  if (is_to_look()) [[unlikely]]
    stop_if_asked();
}

}  // namespace ramie::detail
