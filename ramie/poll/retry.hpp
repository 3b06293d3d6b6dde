// One system call that may have to wait: tried, and tried again after each EAGAIN.
#pragma once

#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/system.hpp>

#include <poll.h>

#include <cerrno>
#include <source_location>

namespace ramie::net::detail {

/// Calls `attempt(fd)` until it returns something else than EAGAIN and EINTR, and returns that. For reading: waits
/// before the first call if the direction is known to be drained, to save a futile call. `partial(result)`: may there
/// be no more for now? Then the next call waits first. During a use.
template <class Attempt, class Drained>
system::result retry_reading(descriptor& d, const char* what, const std::source_location& where, Attempt attempt,
                             Drained drained) {
  for (;;) {
    await_ready(d, direction::in, what, where);
    const system::result n = attempt(d.fd);
    if (n == -EAGAIN) continue;
    if (!drained(n)) set_ready(d, direction::in);
    if (n != -EINTR) return n;
  }
}

/// For writing: tries first, for there is room more often than not.
template <class Attempt>
system::result retry_writing(descriptor& d, const char* what, const std::source_location& where, Attempt attempt) {
  for (;;) {
    const system::result n = attempt(d.fd);
    if (n == -EAGAIN) await_ready(d, direction::out, what, where);
    else if (n != -EINTR) return n;
  }
}

/// Waits until a call would not block, and leaves `ready` set. `ready` alone may be a guess.
inline void wait_until_ready(descriptor& d, direction way, const char* what, const std::source_location& where) {
  do {
    await_ready(d, way, what, where);
  } while (!system::is_ready(d.fd, way == direction::in ? POLLIN | POLLRDHUP : POLLOUT));
  set_ready(d, way);
}

}  // namespace ramie::net::detail
