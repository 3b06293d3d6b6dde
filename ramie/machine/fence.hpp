// Asymmetric fences: the side that runs often pays a compiler barrier, the side that runs seldom calls membarrier(2).
//
// membarrier(PRIVATE_EXPEDITED) makes every running thread of the process execute a full fence, and a thread that is
// not running has executed one when it was switched out. So "store A; light_fence; load B" on one side and "store B;
// heavy_fence; load A" on the other cannot both miss the other's store. Where the kernel has no membarrier, or
// RAMIE_MEMBARRIER=0 is set, both are full fences. Which kind is decided once, before the first worker starts.
#pragma once

#include <ramie/base/atomic.hpp>

namespace ramie::detail {

/// Decides which kind of fences this process uses. Called by the first runtime; later calls do nothing. Any thread.
void init_fences() noexcept;

/// True when light_fence is only a compiler barrier. Constant after init_fences.
extern bool asymmetric_fences;

RAMIE_ALWAYS_INLINE void full_fence() noexcept {
#if RAMIE_INTERLEAVE
  interleave::full_fence();
#else
  // By hand, because ThreadSanitizer builds reject std::atomic_thread_fence.
#if defined(__x86_64__)
  asm volatile("lock orl $0, -4(%%rsp)" ::: "memory", "cc");
#else
  asm volatile("dmb ish" ::: "memory");
#endif
#endif
}

RAMIE_ALWAYS_INLINE void compiler_fence() noexcept { asm volatile("" ::: "memory"); }

RAMIE_ALWAYS_INLINE void light_fence() noexcept {
  compiler_fence();
  if (!asymmetric_fences) [[unlikely]]
    full_fence();
}

/// Where membarrier fails later on, the slower global membarrier takes its place; where a sandbox forbids that as well,
/// the process ends with a message. Leaves errno as it is. Measured on a guest with two processors, Linux 6: 0.35 us
/// where no other thread of the process runs, 0.5 us where one does; that thread is interrupted.
#if RAMIE_INTERLEAVE
inline void heavy_fence() noexcept { interleave::heavy_fence(); }
#else
void heavy_fence() noexcept;
#endif

RAMIE_ALWAYS_INLINE void spin_pause() noexcept {
#if RAMIE_INTERLEAVE
  interleave::pause();
#elif defined(__x86_64__)
  asm volatile("pause");
#else
  asm volatile("isb");
#endif
}

}  // namespace ramie::detail
