#include <ramie/net/listener.hpp>

#include <ramie/fiber/this_fiber.hpp>
#include <ramie/poll/retry.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/task/io_wait.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace ramie::net {

namespace {

using namespace detail;
using namespace std::chrono_literals;

constexpr const char* accepting = ramie::detail::io_reason.accept;
constexpr std::chrono::milliseconds pause_least{1}, pause_most{100};

/// Is it for lack of descriptors or memory?
bool is_shortage(system::result code) noexcept {
  return code == -EMFILE || code == -ENFILE || code == -ENOBUFS || code == -ENOMEM;
}

/// Is it a failure of one connection, or of the network behind it (accept(2)), rather than of the listener?
bool concerns_one_connection(system::result code) noexcept {
  switch (-code) {
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case EOPNOTSUPP:
    case ETIMEDOUT: return true;
    default: return false;
  }
}

handle listening(const endpoint& at, const tcp_options& options) {
  const std::string what = "listen at " + at.to_string();
  const auto check = [&](system::result code) {
    if (code < 0) system::fail(what, code);
    return static_cast<int>(code);
  };
  const int fd = check(system::socket(at.family(), SOCK_STREAM, 0));
  handle h = handle::owning(fd, endings::last);
  if (at.family() != AF_UNIX) check(system::set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1));
  if (options.reuse_port) check(system::set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1));
  if (at.family() == AF_INET6) check(system::set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0));
  check(system::bind(fd, at.data(), at.size()));
  check(system::listen(fd, options.backlog));
  return h;
}

/// A local socket's file without a listener was left by a process that was killed.
void remove_stale(const endpoint& at) {
  if (at.address().front() == '@') return;
  const auto fd = static_cast<int>(system::socket(AF_UNIX, SOCK_STREAM, 0));
  if (fd < 0) return;
  if (system::connect(fd, at.data(), at.size()) == -ECONNREFUSED) ::unlink(at.address().c_str());
  system::close(fd);
}

}  // namespace

listener::listener(const endpoint& at, const tcp_options& options) : handle_{listening(at, options)} {}

endpoint listener::local() const {
  const use during{handle_.get(), "getsockname"};
  sockaddr_storage at{};
  socklen_t size = 0;
  system::check("getsockname", system::local_name(during.fd(), at, size));
  return endpoint::of(reinterpret_cast<const sockaddr*>(&at), size);
}

handle listener::accept_one(const std::source_location& where) {
  const use during{handle_.get(), accepting};
  for (std::chrono::milliseconds pause = pause_least;; pause = std::min(2 * pause, pause_most)) {
    sockaddr_storage from;
    socklen_t size = 0;
    // In a shortage the queue counts as drained: otherwise all callers of accept would try, and fail, in turn.
    const system::result fd = retry_reading(
        *handle_, accepting, where, [&](int own) { return system::accept(own, from, size); }, is_shortage);
    if (fd >= 0) return handle::owning(static_cast<int>(fd), endings::last);
    if (is_shortage(fd)) {
      pauses_.fetch_add(1, std::memory_order_relaxed);
      this_fiber::sleep_for(pause, where);
      set_ready(*handle_, direction::in);
    } else if (!concerns_one_connection(fd)) {
      system::fail(accepting, fd);
    }
  }
}

bool listener::accept_now(int own, handle& into) {
  for (;;) {
    sockaddr_storage from;
    socklen_t size = 0;
    const system::result fd = system::accept(own, from, size);
    if (fd == -EAGAIN) return false;
    if (fd >= 0) into = handle::owning(static_cast<int>(fd), endings::last);
    if (fd >= 0 || is_shortage(fd)) return true;
    if (fd != -EINTR && !concerns_one_connection(fd)) system::fail(accepting, fd);
  }
}

tcp_stream tcp_listener::accept(std::source_location where) { return made_of(accept_one(where)); }

tcp_stream tcp_listener::made_of(handle h) const {
  tcp_stream s;
  s.handle_ = std::move(h);
  if (no_delay_) system::set_option(s.native_handle(), IPPROTO_TCP, TCP_NODELAY, 1);
  return s;
}

unix_listener::unix_listener(const endpoint& at, int backlog)
    : listener{(remove_stale(at), at), {.backlog = backlog}}, at_{at}, has_file_{at.address().front() != '@'} {}

unix_listener::unix_listener(unix_listener&& other) noexcept
    : listener{std::move(other)},  // NOLINTBEGIN(bugprone-use-after-move): only that base has been moved
      at_{other.at_},
      has_file_{other.has_file_.exchange(false, std::memory_order_relaxed)} {}  // NOLINTEND(bugprone-use-after-move)

unix_listener& unix_listener::operator=(unix_listener&& other) noexcept {
  if (this == &other) return *this;
  remove_file();
  listener::operator=(std::move(other));
  at_ = other.at_;  // NOLINT(bugprone-use-after-move): only that base has been moved
  has_file_.store(other.has_file_.exchange(false, std::memory_order_relaxed), std::memory_order_relaxed);
  return *this;
}

void unix_listener::close() noexcept {
  remove_file();
  listener::close();
}

void unix_listener::remove_file() noexcept {
  if (!has_file_.exchange(false, std::memory_order_relaxed)) return;
  const auto& local = *reinterpret_cast<const sockaddr_un*>(at_.data());
  ::unlink(local.sun_path);
}

unix_stream unix_listener::accept(std::source_location where) { return made_of(accept_one(where)); }

unix_stream unix_listener::made_of(handle h) {
  unix_stream s;
  s.handle_ = std::move(h);
  return s;
}

}  // namespace ramie::net
