// futex(2): the two calls that ramie needs, and a way for tests to make them fail.
#pragma once

#include <ramie/base/atomic.hpp>

#include <time.h>

#include <cstdint>

namespace ramie::detail {

/// Sleeps while `word` holds `expected`, until a wake-up, a signal, or `timeout_ns` nanoseconds (negative: forever)
/// have passed. May return early: the caller looks again. Where the system refuses the call altogether, as a sandbox
/// may, it sleeps for at most a millisecond, so that callers, which then poll, do not occupy a processor.
void futex_wait(const atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns = -1) noexcept;
/// If it is refused, so are waits, and no thread needs to be woken.
void futex_wake(const atomic<std::uint32_t>& word, int how_many = 1) noexcept;

/// Each fails like the system call: -1, and errno.
struct futex_calls {
  long (*wait)(const void* word, std::uint32_t expected, const timespec* timeout) noexcept;
  long (*wake)(const void* word, int how_many) noexcept;
};

/// The system's own.
extern const futex_calls kernel_futex_calls;

/// For tests. Null restores the system's own. `replacement` must outlive its use.
void replace_futex_calls(const futex_calls* replacement) noexcept;

}  // namespace ramie::detail
