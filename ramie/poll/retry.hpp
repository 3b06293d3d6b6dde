// One system call that may have to wait: tried, and tried again after each EAGAIN.
#pragma once

#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/task/ready_point.hpp>

#include <poll.h>

#include <cerrno>
#include <source_location>

namespace ramie::net::detail {

/// Lets others run now and then: a fiber whose calls never wait, since its peer is faster, would keep its worker.
/// Suspends. A point of cancellation (task/ready_point.hpp).
void give_way();

/// Calls `attempt(fd)` until it returns something else than EAGAIN and EINTR, and returns that. For reading: waits
/// before the first call if the direction is known to be drained, to save a futile call. `drained(result)`: is there no
/// more for now? Then the next call waits first. During a use.
template <class Attempt, class Drained>
system::result retry_reading(descriptor& d, const char* what, const std::source_location& where, Attempt attempt,
                             Drained drained) {
  for (;;) {
    give_way();
    await_ready(d, direction::in, what, where);
    const system::result n = attempt(d.fd);
    if (n == -EAGAIN) {
      found_nothing(d, direction::in);
      continue;
    }
    if (!drained(n)) set_ready(d, direction::in);
    if (n != -EINTR) return n;
  }
}

/// For writing: tries first, for there is room more often than not. `wait()`: has an edge come? Then `ready` is set
/// again at the end: the edge may have told of more room than was needed, or the attempt throws, and the next wait may
/// be another fiber's.
template <class Attempt, class Wait>
system::result retry_writing_after(descriptor& d, Attempt attempt, Wait wait) {
  taken_edge edge{d, direction::out, false};
  for (;;) {
    give_way();
    const system::result n = attempt(d.fd);
    if (n == -EAGAIN) {
      found_nothing(d, direction::out);
      if (wait()) edge.set(!RAMIE_PLANT(room_is_kept));
    } else if (n != -EINTR) {
      return n;
    }
  }
}

template <class Attempt>
system::result retry_writing(descriptor& d, const char* what, const std::source_location& where, Attempt attempt) {
  return retry_writing_after(d, attempt, [&] {
    await_ready(d, direction::out, what, where);
    return true;
  });
}

/// Waits until a call would not block, and leaves `ready` set. Looks, unless it waits for TCP, and is woken by an edge:
/// a server that waits before each read makes no system call more than one that does not.
inline void wait_until_ready(descriptor& d, direction way, const char* what, const std::source_location& where) {
  const auto is_certain = [&](bool by_edge) {
    return by_edge && way == direction::in && !d.short_reads.load(std::memory_order_relaxed);
  };
  ramie::detail::ready_point();
  while (!is_certain(await_ready(d, way, what, where)) &&
         !system::is_ready(d.fd, way == direction::in ? POLLIN | POLLRDHUP : POLLOUT)) {
    found_nothing(d, way);
    give_way();
  }
  set_ready(d, way);
}

}  // namespace ramie::net::detail
