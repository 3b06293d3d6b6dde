// The processor's own clock: some nanoseconds to read, the same on all of its cores.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/config.hpp>

#include <cstdint>

namespace ramie::detail {

RAMIE_ALWAYS_INLINE std::uint64_t cycles() noexcept {
#if RAMIE_INTERLEAVE
  return interleave::cycles();
#elif defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

}  // namespace ramie::detail
