// The processor's cycle counter: some nanoseconds to read, the same on all cores.
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

/// Cycles in a number of nanoseconds; assumes 2.5 GHz where the counter does not report its frequency.
inline std::uint64_t cycles_in_ns(std::uint64_t ns) noexcept {
#if defined(__x86_64__)
  return ns * 5 / 2;
#else
  std::uint64_t frequency;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
  return frequency * ns / 1'000'000'000;
#endif
}
inline std::uint64_t cycles_in_us(std::uint64_t us) noexcept { return cycles_in_ns(us * 1000); }

}  // namespace ramie::detail
