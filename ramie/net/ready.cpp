#include <ramie/net/ready.hpp>

#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/io_error.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/task/io_wait.hpp>
#include <ramie/task/ready_point.hpp>

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

namespace ramie::net {

namespace {

using namespace detail;

/// Waits on a duplicate: the number may be in the set already, by another wait, and its owner may close it.
void wait_for(int fd, direction way, short events, const char* what, const std::source_location& where) {
  ramie::detail::ready_point();
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) system::fail(what, -errno);
  const handle h = handle::owning(copy, endings::pass);
  const use during{h.get(), what};
  while (!system::is_ready(copy, events)) await_ready(*h, way, what, where);
}

}  // namespace

void wait_readable(int fd, std::source_location where) {
  wait_for(fd, direction::in, POLLIN | POLLRDHUP, ramie::detail::io_reason.readable, where);
}
void wait_writable(int fd, std::source_location where) {
  wait_for(fd, direction::out, POLLOUT, ramie::detail::io_reason.writable, where);
}

}  // namespace ramie::net
