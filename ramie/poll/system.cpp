#include <ramie/poll/system.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/config.hpp>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace ramie::net::detail::system {

namespace {
// Out of line: to a compiler errno lies where it lay, but a fiber may be on another thread at its next call.
RAMIE_COLD result failure() noexcept { return -static_cast<result>(errno); }
result checked(ssize_t n) noexcept { return n < 0 ? failure() : n; }

/// write(2) raises SIGPIPE, and has no flag against it before Linux 6.18: blocked meanwhile, taken back if it came.
class without_sigpipe {
 public:
  without_sigpipe() noexcept {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~without_sigpipe() {
    if (raised && !was_pending_) {
      const timespec now{};
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && failure() == -EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;
  bool raised = false;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};
}  // namespace

result socket(int family, int type, int protocol) noexcept {
  return checked(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
}
result socket_pair(int type, int (&both)[2]) noexcept {
  return checked(::socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both));
}
result pipe(int (&both)[2]) noexcept { return checked(::pipe2(both, O_NONBLOCK | O_CLOEXEC)); }
result bind(int fd, const sockaddr* at, socklen_t size) noexcept { return checked(::bind(fd, at, size)); }
result listen(int fd, int backlog) noexcept { return checked(::listen(fd, backlog)); }
result connect(int fd, const sockaddr* to, socklen_t size) noexcept { return checked(::connect(fd, to, size)); }
result accept(int fd, sockaddr_storage& from, socklen_t& size) noexcept {
  size = sizeof from;
  return checked(::accept4(fd, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
}
result shutdown(int fd, int how) noexcept { return checked(::shutdown(fd, how)); }

// The two calls of each request are no points of cancellation of the thread: glibc's bracket is 1 % of an echo server.
// ThreadSanitizer has to see them.
#if RAMIE_TSAN || RAMIE_ASAN || !defined(SYS_recvfrom) || !defined(SYS_sendto)
result receive(int fd, void* to, std::size_t size) noexcept { return checked(::recv(fd, to, size, 0)); }
result send(int fd, const void* from, std::size_t size) noexcept {
  return checked(::send(fd, from, size, MSG_NOSIGNAL));
}
#else
result receive(int fd, void* to, std::size_t size) noexcept {
  return checked(::syscall(SYS_recvfrom, fd, to, size, 0, nullptr, nullptr));
}
result send(int fd, const void* from, std::size_t size) noexcept {
  return checked(::syscall(SYS_sendto, fd, from, size, MSG_NOSIGNAL, nullptr, 0));
}
#endif

result receive_message(int fd, msghdr& m, int flags) noexcept {
  return checked(::recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC));
}
result send_message(int fd, const msghdr& m) noexcept { return checked(::sendmsg(fd, &m, MSG_NOSIGNAL)); }
result read(int fd, void* to, std::size_t size) noexcept { return checked(::read(fd, to, size)); }
result write(int fd, const iovec* parts, int n) noexcept {
  without_sigpipe guard;
  const result r = checked(::writev(fd, parts, n));
  guard.raised = r == -EPIPE;
  return r;
}
result send_file(int to, int from, off_t& at, std::size_t size) noexcept {
  without_sigpipe guard;
  const result r = checked(::sendfile(to, from, &at, size));
  guard.raised = r == -EPIPE;
  return r;
}
result set_option(int fd, int level, int name, int value) noexcept {
  return checked(::setsockopt(fd, level, name, &value, sizeof value));
}
result get_option(int fd, int level, int name) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  const result r = checked(::getsockopt(fd, level, name, &value, &size));
  return r < 0 ? r : value;
}
result local_name(int fd, sockaddr_storage& at, socklen_t& size) noexcept {
  size = sizeof at;
  return checked(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size));
}
result peer_name(int fd, sockaddr_storage& at, socklen_t& size) noexcept {
  size = sizeof at;
  return checked(::getpeername(fd, reinterpret_cast<sockaddr*>(&at), &size));
}
result open_again(int fd) noexcept {
  std::array<char, 40> name;
  std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", fd);
  return checked(::open(name.data(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}
result duplicate(int fd) noexcept { return checked(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }
result set_nonblocking(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ((flags & O_NONBLOCK) == 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)) return failure();
  const int own = ::fcntl(fd, F_GETFD);
  if (own < 0 || ((own & FD_CLOEXEC) == 0 && ::fcntl(fd, F_SETFD, own | FD_CLOEXEC) < 0)) return failure();
  return 0;
}
result replace(int fd, int by) noexcept { return checked(::dup3(by, fd, O_CLOEXEC)); }
result watch() noexcept { return checked(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)); }
result watch_add(int fd, const char* path, std::uint32_t events) noexcept {
  return checked(::inotify_add_watch(fd, path, events));
}
result watch_remove(int fd, int number) noexcept { return checked(::inotify_rm_watch(fd, number)); }
bool is_ready(int fd, short events) noexcept {
  pollfd one{fd, events, 0};
  int n = 0;
  do n = ::poll(&one, 1, 0);
  while (n < 0 && failure() == -EINTR);
  return n != 0;  // after an error: the call itself will tell
}
void close(int fd) noexcept { ::close(fd); }  // also after EINTR: the number is free even then

result new_set() noexcept { return checked(::epoll_create1(EPOLL_CLOEXEC)); }
result new_event() noexcept { return checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
result raise(int event) noexcept {
  const std::uint64_t one = 1;
  return checked(::write(event, &one, sizeof one));
}
result set_add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept {
  epoll_event e{};
  e.events = events;
  e.data.u64 = tag;
  return checked(::epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
}
result set_remove(int set, int fd) noexcept { return checked(::epoll_ctl(set, EPOLL_CTL_DEL, fd, nullptr)); }

// epoll_pwait2, with timeouts in nanoseconds; kernels before 5.11 do not have it. ThreadSanitizer does not know it,
// and delivers a signal only within a call that it knows.
result set_wait(int set, epoll_event* into, int most, std::int64_t timeout_ns) noexcept {
  static ramie::detail::atomic<bool> has_pwait2{RAMIE_TSAN == 0};
  if (timeout_ns > 0 && has_pwait2.load(std::memory_order_relaxed)) {
    const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000), timeout_ns % 1'000'000'000};
    const result n = checked(::syscall(SYS_epoll_pwait2, set, into, most, &timeout, nullptr, std::size_t{8}));
    if (n != -ENOSYS && n != -EPERM) return n;
    has_pwait2.store(false, std::memory_order_relaxed);
  }
  const std::int64_t ms = timeout_ns <= 0 ? timeout_ns : (timeout_ns + 999'999) / 1'000'000;
  return checked(::epoll_wait(set, into, most, static_cast<int>(ms < 0 ? -1 : ms > 1'000'000 ? 1'000'000 : ms)));
}

}  // namespace ramie::net::detail::system
