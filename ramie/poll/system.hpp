// The system calls of this floor. Each returns what the kernel does, or minus the errno: a fiber may resume on another
// thread after any wait, and the address of `errno` must not outlive that. It is read in a function that is not
// inlined.
#pragma once

#include <ramie/poll/io_error.hpp>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ramie::net::detail::system {

using result = std::int64_t;

[[noreturn]] void fail(const std::string& what, result code);  // throws an io_error
inline void check(const char* what, result code) {
  if (code < 0) fail(what, code);
}

result socket(int family, int type, int protocol) noexcept;  // non-blocking, close-on-exec
result socket_pair(int type, int (&both)[2]) noexcept;       // likewise
result pipe(int (&both)[2]) noexcept;                        // likewise
result bind(int fd, const sockaddr* at, socklen_t size) noexcept;
result listen(int fd, int backlog) noexcept;
result connect(int fd, const sockaddr* to, socklen_t size) noexcept;
result accept(int fd, sockaddr_storage& from, socklen_t& size) noexcept;  // non-blocking, close-on-exec
result shutdown(int fd, int how) noexcept;
result receive(int fd, void* to, std::size_t size) noexcept;
result send(int fd, const void* from, std::size_t size) noexcept;  // no SIGPIPE
result receive_message(int fd, msghdr& m, int flags) noexcept;
result send_message(int fd, const msghdr& m) noexcept;  // no SIGPIPE
result read(int fd, void* to, std::size_t size) noexcept;
result write(int fd, const iovec* parts, int n) noexcept;                  // no SIGPIPE
result send_file(int to, int from, off_t& at, std::size_t size) noexcept;  // moves `at`; no SIGPIPE
result set_option(int fd, int level, int name, int value) noexcept;
result get_option(int fd, int level, int name) noexcept;  // an int
result local_name(int fd, sockaddr_storage& at, socklen_t& size) noexcept;
result peer_name(int fd, sockaddr_storage& at, socklen_t& size) noexcept;
result open_again(int fd) noexcept;       // to read; non-blocking, close-on-exec
result duplicate(int fd) noexcept;        // close-on-exec
result set_nonblocking(int fd) noexcept;  // and close-on-exec
result watch() noexcept;                  // an inotify object; non-blocking, close-on-exec
result watch_add(int fd, const char* path, std::uint32_t events) noexcept;
result watch_remove(int fd, int number) noexcept;
result replace(int fd, int by) noexcept;       // the number `fd` becomes one more of the file `by`; close-on-exec
bool is_ready(int fd, short events) noexcept;  // poll(2)'s, at once
void close(int fd) noexcept;

// Epoll sets. `tag` comes back with a file's events.
result new_set() noexcept;    // close-on-exec
result new_event() noexcept;  // non-blocking, close-on-exec; each raise is an edge to read
result raise(int event) noexcept;
result set_add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept;
result set_remove(int set, int fd) noexcept;
result set_wait(int set, epoll_event* into, int most,
                std::int64_t timeout_ns) noexcept;  // how many; negative: no limit

}  // namespace ramie::net::detail::system

namespace ramie::net::detail {

/// A descriptor until it has another owner; negative: none.
class raw_fd {
 public:
  explicit raw_fd(int fd = -1) noexcept : fd_{fd} {}
  raw_fd(raw_fd&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  raw_fd& operator=(raw_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~raw_fd() {
    if (fd_ >= 0) system::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace ramie::net::detail
