// Which system call of a test program fails, and how: for testing.hpp, which has the calls.
#pragma once

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace ramie::net::faults {

// clang-format off
enum class call_id : std::uint8_t {
  socket, socketpair, pipe2, bind, listen, connect, accept4, shutdown, recv, send, recvmsg, sendmsg, read, writev,
  setsockopt, getsockopt, getsockname, getpeername, fcntl, poll, close, epoll_create1, epoll_ctl, epoll_wait,
  epoll_pwait2, eventfd, inotify_init1, inotify_add_watch, inotify_rm_watch, open, preadv2, pwritev2, preadv,
  pwritev, fsync, fdatasync, ftruncate, copy_file_range, sendfile, pread, pwrite, fstat, rename, waitid, pidfd_open,
  pidfd_send_signal, io_uring_setup, io_uring_enter, sigaction, posix_spawnp, write, mmap, getaddrinfo, count
};
// clang-format on
inline constexpr auto calls = static_cast<std::size_t>(call_id::count);

enum class mode : int { off, count, one_fails, all_short, storm };
inline std::atomic<mode> now{mode::off};
inline std::array<std::atomic<int>, calls> made{};  // in this run
inline std::atomic<call_id> victim{};
inline std::atomic<int> victim_code{0}, victim_number{0};

inline constexpr std::array moving{call_id::recv,     call_id::send,           call_id::sendmsg,  call_id::read,
                                   call_id::writev,   call_id::preadv2,        call_id::pwritev2, call_id::preadv,
                                   call_id::pwritev,  call_id::pread,          call_id::pwrite,   call_id::write,
                                   call_id::sendfile, call_id::copy_file_range};
/// Those and these may be interrupted by a signal (signal(7)).
inline constexpr std::array waiting{call_id::accept4,      call_id::recvmsg,        call_id::poll,  call_id::epoll_wait,
                                    call_id::epoll_pwait2, call_id::open,           call_id::fsync, call_id::fdatasync,
                                    call_id::ftruncate,    call_id::io_uring_enter, call_id::waitid};

template <std::size_t n>
bool is_in(const std::array<call_id, n>& some, call_id c) noexcept {
  return std::ranges::find(some, c) != some.end();
}

/// True if the call fails instead, with errno set.
inline bool fails(call_id c) noexcept {
  const mode m = now.load(std::memory_order_acquire);
  if (m == mode::off) return false;
  const int n = made[static_cast<std::size_t>(c)].fetch_add(1, std::memory_order_relaxed);
  const bool chosen = m == mode::one_fails && c == victim && n == victim_number;
  const bool interrupted = m == mode::storm && n % 3 != 2 && (is_in(moving, c) || is_in(waiting, c));
  if (chosen || interrupted) errno = chosen ? victim_code.load() : EINTR;
  return chosen || interrupted;
}

inline bool is_short(call_id c) noexcept {
  return now.load(std::memory_order_acquire) == mode::all_short && is_in(moving, c);
}

template <class F>
F* next_of(const char* name) noexcept {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

/// A short read of TCP says that it is drained (descriptor.hpp, N2), so only local sockets and pipes are cut.
inline bool cuts_read(call_id c, int fd) noexcept {
  if (!is_short(c)) return false;
  int domain = 0;
  socklen_t size = sizeof domain;
  struct stat what{};
  if (next_of<decltype(getsockopt)>("getsockopt")(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0)
    return domain == AF_UNIX;
  return next_of<decltype(fstat)>("fstat")(fd, &what) == 0 && S_ISFIFO(what.st_mode);
}

/// Of several pieces, the first byte.
struct first_byte {
  first_byte(const iovec*& parts, int& n, bool wanted) noexcept {
    if (!wanted) return;
    while (n > 1 && parts->iov_len == 0) ++parts, --n;
    piece = {parts->iov_base, std::min<std::size_t>(parts->iov_len, 1)};
    parts = &piece;
    n = 1;
  }
  iovec piece{};
};

}  // namespace ramie::net::faults
