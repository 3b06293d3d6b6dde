// futex(2), the two calls that ramie needs, and a way for tests to make them fail.
#pragma once

#include <ramie/base/atomic.hpp>

#include <time.h>

#include <cstdint>

namespace ramie::detail {

/// Sleeps while `word` holds `expected`, until woken, a signal, or `timeout_ns` nanoseconds (negative: for ever) have
/// gone by. May return early: the caller looks again. Where the system refuses the call altogether, as a sandbox may,
/// it sleeps for a millisecond at most, so that callers, who look again and again then, do not take a processor for
/// that.
void futex_wait(const atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns = -1) noexcept;
/// If it is refused, so are waits, and nobody needs to be woken.
void futex_wake(const atomic<std::uint32_t>& word, int how_many = 1) noexcept;

/// Each fails like the system call: -1, and errno.
struct futex_calls {
  long (*wait)(const void* word, std::uint32_t expected, const timespec* timeout) noexcept;
  long (*wake)(const void* word, int how_many) noexcept;
};

/// The real ones.
extern const futex_calls kernel_futex_calls;

/// For tests. Null puts the real ones back. `replacement` must outlive its use.
void replace_futex_calls(const futex_calls* replacement) noexcept;

}  // namespace ramie::detail
