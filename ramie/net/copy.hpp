// From one stream to another.
#pragma once

#include <ramie/fiber/cancellation.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ramie::net {

/// Copies until `from` ends, through a buffer of 16 KiB, and returns how many bytes. With `idle`, throws timeout_error
/// when neither side has moved for that long, or for twice as long at most. Ends of a stream are not passed on: call
/// to.shutdown_write(). If it is cancelled, up to 16 KiB may have been read and not
/// written. Suspends. Throws what the streams throw (io_error, `cancelled`), std::bad_alloc.
template <class From, class To>
std::uint64_t copy(From& from, To& to, std::chrono::nanoseconds idle = std::chrono::nanoseconds::max()) {
  constexpr std::size_t size = 16 * 1024;
  const std::unique_ptr<std::byte[]> bytes{new std::byte[size]};
  const auto within = [idle](auto step) {
    if (idle == std::chrono::nanoseconds::max()) return step();
    return with_timeout(idle, step);
  };
  std::uint64_t copied = 0;
  for (;;) {
    const std::size_t n = within([&] { return from.read_some(std::span{bytes.get(), size}); });
    if (n == 0) return copied;
    for (std::size_t done = 0; done < n;) {
      const std::span<const std::byte> rest{bytes.get() + done, n - done};
      std::size_t moved = 0;
      try {
        within([&] {
          if constexpr (requires { to.write_all(rest, &moved); }) to.write_all(rest, &moved);
          else to.write_all(rest);
        });
        moved = rest.size();
      } catch (const timeout_error&) {
        // Some have been taken, and others wait: it moves. (A TLS stream takes all before it waits for its peer.)
        if (idle == std::chrono::nanoseconds::max() || moved == 0 || moved == rest.size()) throw;
      }
      done += moved;
    }
    copied += n;
  }
}

}  // namespace ramie::net
