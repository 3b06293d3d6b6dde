// Waiting for descriptors that other libraries own: a database's socket, an event loop's epoll set.
#pragma once

#include <source_location>

namespace ramie::net {

/// Waits until `fd` is readable, or writable, or has an error or hang-up: until poll(2) would return. The library that
/// owns it may close it when no wait is under way. Costs two more system calls than a wait on ramie's own sockets.
/// Suspends. Throws io_error (EBADF if `fd` is not open), `cancelled`. Regular files are always ready.
void wait_readable(int fd, std::source_location where = std::source_location::current());
void wait_writable(int fd, std::source_location where = std::source_location::current());

}  // namespace ramie::net
