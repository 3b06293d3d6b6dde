// futex(2), the two calls that ramie needs.
#pragma once

#include <ramie/base/atomic.hpp>

#include <cstdint>

namespace ramie::detail {

/// Sleeps while `word` holds `expected`, until woken, a signal, or `timeout_ns` nanoseconds (negative: for ever) have
/// gone by. May return early: the caller looks again.
void futex_wait(const atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns = -1) noexcept;
void futex_wake(const atomic<std::uint32_t>& word, int how_many = 1) noexcept;

}  // namespace ramie::detail
