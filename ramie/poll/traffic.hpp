// What fibers read and write, for statistics.hpp.
#pragma once

#include <ramie/poll/system.hpp>
#include <ramie/worker/worker.hpp>

#include <cstdint>

namespace ramie::net::detail {

/// Counts what a call returned, unless that is an error. Nothing is counted on plain threads.
inline void count_read(system::result n) noexcept {
  if (ramie::detail::worker* const w = ramie::detail::worker::current(); w != nullptr && n > 0)
    w->bytes_read.add(static_cast<std::uint64_t>(n));
}
inline void count_written(system::result n) noexcept {
  if (ramie::detail::worker* const w = ramie::detail::worker::current(); w != nullptr && n > 0)
    w->bytes_written.add(static_cast<std::uint64_t>(n));
}

}  // namespace ramie::net::detail
