// The system calls of a test program, which it replaces so that they can fail: for the one source of such a program.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/poll/faults.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <optional>

namespace faults = ramie::net::faults;

#define RAMIE_PASS_ON(name, ...)                                    \
  static auto* const next = faults::next_of<decltype(name)>(#name); \
  if (faults::fails(faults::call_id::name)) return -1;              \
  return next(__VA_ARGS__)

extern "C" {
int socket(int a, int b, int c) noexcept { RAMIE_PASS_ON(socket, a, b, c); }
int socketpair(int a, int b, int c, int d[2]) noexcept { RAMIE_PASS_ON(socketpair, a, b, c, d); }
int pipe2(int a[2], int b) noexcept { RAMIE_PASS_ON(pipe2, a, b); }
int bind(int a, const sockaddr* b, socklen_t c) noexcept { RAMIE_PASS_ON(bind, a, b, c); }
int listen(int a, int b) noexcept { RAMIE_PASS_ON(listen, a, b); }
/// An interrupted one goes on: the kernel has begun with it.
int connect(int a, const sockaddr* b, socklen_t c) {
  static auto* const next = faults::next_of<decltype(connect)>("connect");
  if (!faults::fails(faults::call_id::connect)) return next(a, b, c);
  const int code = errno;
  const bool goes_on = code == EINTR && (next(a, b, c) == 0 || errno == EINPROGRESS);
  if (code != EINTR || goes_on) errno = code;
  return -1;
}
int accept4(int a, sockaddr* b, socklen_t* c, int d) { RAMIE_PASS_ON(accept4, a, b, c, d); }
int shutdown(int a, int b) noexcept { RAMIE_PASS_ON(shutdown, a, b); }
ssize_t recv(int a, void* b, size_t c, int d) {
  RAMIE_PASS_ON(recv, a, b, faults::cuts_read(faults::call_id::recv, a) ? std::min<size_t>(c, 1) : c, d);
}
ssize_t send(int a, const void* b, size_t c, int d) {
  RAMIE_PASS_ON(send, a, b, faults::is_short(faults::call_id::send) ? std::min<size_t>(c, 1) : c, d);
}
ssize_t recvmsg(int a, msghdr* b, int c) { RAMIE_PASS_ON(recvmsg, a, b, c); }
ssize_t sendmsg(int a, const msghdr* b, int c) {
  int type = 0;
  socklen_t size = sizeof type;
  msghdr m = *b;
  const iovec* parts = m.msg_iov;
  int n = static_cast<int>(m.msg_iovlen);
  const bool of_bytes =
      faults::is_short(faults::call_id::sendmsg) &&
      faults::next_of<decltype(getsockopt)>("getsockopt")(a, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
      type == SOCK_STREAM;
  const faults::first_byte cut{parts, n, of_bytes};
  m.msg_iov = const_cast<iovec*>(parts);
  m.msg_iovlen = static_cast<size_t>(n);
  RAMIE_PASS_ON(sendmsg, a, &m, c);
}
ssize_t read(int a, void* b, size_t c) {
  RAMIE_PASS_ON(read, a, b, faults::cuts_read(faults::call_id::read, a) ? std::min<size_t>(c, 1) : c);
}
ssize_t writev(int a, const iovec* b, int c) {
  const faults::first_byte cut{b, c, faults::is_short(faults::call_id::writev)};
  RAMIE_PASS_ON(writev, a, b, c);
}
int setsockopt(int a, int b, int c, const void* d, socklen_t e) noexcept { RAMIE_PASS_ON(setsockopt, a, b, c, d, e); }
int getsockopt(int a, int b, int c, void* d, socklen_t* e) noexcept { RAMIE_PASS_ON(getsockopt, a, b, c, d, e); }
int getsockname(int a, sockaddr* b, socklen_t* c) noexcept { RAMIE_PASS_ON(getsockname, a, b, c); }
int getpeername(int a, sockaddr* b, socklen_t* c) noexcept { RAMIE_PASS_ON(getpeername, a, b, c); }
int fcntl(int a, int b, ...) {
  va_list more;
  va_start(more, b);
  void* const c = va_arg(more, void*);
  va_end(more);
  RAMIE_PASS_ON(fcntl, a, b, c);
}
int poll(pollfd* a, nfds_t b, int c) { RAMIE_PASS_ON(poll, a, b, c); }
int close(int a) {
  static auto* const next = faults::next_of<decltype(close)>("close");
  const bool also_fails = faults::fails(faults::call_id::close);
  const int code = errno;
  const int closed = next(a);  // the number is free even then
  if (!also_fails) return closed;
  errno = code;
  return -1;
}
int epoll_create1(int a) noexcept { RAMIE_PASS_ON(epoll_create1, a); }
int epoll_ctl(int a, int b, int c, epoll_event* d) noexcept { RAMIE_PASS_ON(epoll_ctl, a, b, c, d); }
int epoll_wait(int a, epoll_event* b, int c, int d) { RAMIE_PASS_ON(epoll_wait, a, b, c, d); }
int eventfd(unsigned a, int b) noexcept { RAMIE_PASS_ON(eventfd, a, b); }
int inotify_init1(int a) noexcept { RAMIE_PASS_ON(inotify_init1, a); }
int inotify_add_watch(int a, const char* b, uint32_t c) noexcept { RAMIE_PASS_ON(inotify_add_watch, a, b, c); }
int inotify_rm_watch(int a, int b) noexcept { RAMIE_PASS_ON(inotify_rm_watch, a, b); }
int open(const char* a, int b, ...) {
  va_list more;
  va_start(more, b);
  const auto c = va_arg(more, mode_t);
  va_end(more);
  static auto* const next = faults::next_of<decltype(open)>("open");
  if (std::strstr(a, "ramie_faults") != nullptr && faults::fails(faults::call_id::open))
    return -1;  // not those of other floors
  return next(a, b, c);
}
ssize_t preadv2(int a, const iovec* b, int c, off_t d, int e) {
  const faults::first_byte cut{b, c, faults::is_short(faults::call_id::preadv2)};
  RAMIE_PASS_ON(preadv2, a, b, c, d, e);
}
ssize_t pwritev2(int a, const iovec* b, int c, off_t d, int e) {
  const faults::first_byte cut{b, c, faults::is_short(faults::call_id::pwritev2)};
  RAMIE_PASS_ON(pwritev2, a, b, c, d, e);
}
ssize_t preadv(int a, const iovec* b, int c, off_t d) {
  const faults::first_byte cut{b, c, faults::is_short(faults::call_id::preadv)};
  RAMIE_PASS_ON(preadv, a, b, c, d);
}
ssize_t pwritev(int a, const iovec* b, int c, off_t d) {
  const faults::first_byte cut{b, c, faults::is_short(faults::call_id::pwritev)};
  RAMIE_PASS_ON(pwritev, a, b, c, d);
}
int fsync(int a) { RAMIE_PASS_ON(fsync, a); }
int fdatasync(int a) { RAMIE_PASS_ON(fdatasync, a); }
int ftruncate(int a, off_t b) noexcept { RAMIE_PASS_ON(ftruncate, a, b); }
ssize_t copy_file_range(int a, off64_t* b, int c, off64_t* d, size_t e, unsigned f) {
  RAMIE_PASS_ON(copy_file_range, a, b, c, d,
                faults::is_short(faults::call_id::copy_file_range) ? std::min<size_t>(e, 7) : e, f);
}
ssize_t sendfile(int a, int b, off_t* c, size_t d) noexcept {
  RAMIE_PASS_ON(sendfile, a, b, c, faults::is_short(faults::call_id::sendfile) ? std::min<size_t>(d, 7) : d);
}
/// Those to files; the others are for eventfds, which always have room.
ssize_t write(int a, const void* b, size_t c) {
  static auto* const next = faults::next_of<decltype(write)>("write");
  static auto* const look = faults::next_of<decltype(fstat)>("fstat");
  struct stat what{};
  if (faults::now.load(std::memory_order_acquire) == faults::mode::off || look(a, &what) != 0 || !S_ISREG(what.st_mode))
    return next(a, b, c);
  if (faults::fails(faults::call_id::write)) return -1;
  return next(a, b, faults::is_short(faults::call_id::write) ? std::min<size_t>(c, 7) : c);
}
ssize_t pread(int a, void* b, size_t c, off_t d) {
  RAMIE_PASS_ON(pread, a, b, faults::is_short(faults::call_id::pread) ? std::min<size_t>(c, 1) : c, d);
}
ssize_t pwrite(int a, const void* b, size_t c, off_t d) {
  RAMIE_PASS_ON(pwrite, a, b, faults::is_short(faults::call_id::pwrite) ? std::min<size_t>(c, 1) : c, d);
}
int fstat(int a, struct stat* b) noexcept { RAMIE_PASS_ON(fstat, a, b); }
int rename(const char* a, const char* b) noexcept { RAMIE_PASS_ON(rename, a, b); }
int waitid(idtype_t a, id_t b, siginfo_t* c, int d) { RAMIE_PASS_ON(waitid, a, b, c, d); }
/// Each is interrupted once.
pid_t waitpid(pid_t a, int* b, int c) {
  static thread_local bool interrupted = false;
  interrupted = !interrupted && (c & WNOHANG) == 0 && faults::now.load(std::memory_order_acquire) != faults::mode::off;
  if (interrupted) errno = EINTR;
  static auto* const next = faults::next_of<decltype(waitpid)>("waitpid");
  return interrupted ? -1 : next(a, b, c);
}
#if !RAMIE_TSAN && !RAMIE_ASAN
/// Those of rings: the sanitizers have their own.
void* mmap(void* a, size_t b, int c, int d, int e, off_t f) noexcept {
  if ((d & MAP_SHARED) != 0 && (d & MAP_POPULATE) != 0 && faults::fails(faults::call_id::mmap)) return MAP_FAILED;
  return reinterpret_cast<void*>(faults::next_of<long(long, ...)>("syscall")(SYS_mmap, a, b, c, d, e, f));
}
#endif
int getaddrinfo(const char* a, const char* b, const addrinfo* c, addrinfo** d) {
  static auto* const next = faults::next_of<decltype(getaddrinfo)>("getaddrinfo");
  if (!faults::fails(faults::call_id::getaddrinfo)) return next(a, b, c, d);
  return errno < 0 ? errno : EAI_SYSTEM;
}
int sigaction(int a, const struct sigaction* b, struct sigaction* c) noexcept {
  static auto* const next = faults::next_of<int(int, const struct sigaction*, struct sigaction*)>("sigaction");
  if (a == SIGUSR1 && faults::fails(faults::call_id::sigaction)) return -1;
  return next(a, b, c);
}
int posix_spawnp(pid_t* a, const char* b, const posix_spawn_file_actions_t* c, const posix_spawnattr_t* d,
                 char* const e[], char* const f[]) {
  static auto* const next = faults::next_of<decltype(posix_spawnp)>("posix_spawnp");
  if (faults::fails(faults::call_id::posix_spawnp)) return errno;
  return next(a, b, c, d, e, f);
}
// Reads more than it may have been given, as the C library's does.
__attribute__((no_sanitize("address"))) long syscall(long number, ...) noexcept {
  std::array<long, 6> a{};
  va_list more;
  va_start(more, number);
  for (long& one : a) one = va_arg(more, long);
  va_end(more);
  static auto* const next = faults::next_of<long(long, ...)>("syscall");
  std::optional<faults::call_id> c;
  switch (number) {
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2: c = faults::call_id::epoll_pwait2; break;
#endif
#ifdef SYS_pidfd_open
    case SYS_pidfd_open: c = faults::call_id::pidfd_open; break;
#endif
#ifdef SYS_pidfd_send_signal
    case SYS_pidfd_send_signal: c = faults::call_id::pidfd_send_signal; break;
#endif
#ifdef SYS_io_uring_setup
    case SYS_io_uring_setup: c = faults::call_id::io_uring_setup; break;
    case SYS_io_uring_enter: c = faults::call_id::io_uring_enter; break;
#endif
    case SYS_recvfrom:
      c = faults::call_id::recv;
      if (faults::cuts_read(*c, static_cast<int>(a[0]))) a[2] = std::min(a[2], 1L);
      break;
    case SYS_sendto:
      c = faults::call_id::send;
      if (faults::is_short(*c)) a[2] = std::min(a[2], 1L);
      break;
    default: break;
  }
  if (c && faults::fails(*c)) return -1;
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
}  // extern "C"
