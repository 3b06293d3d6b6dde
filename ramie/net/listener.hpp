// Sockets that take connections.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/net/stream.hpp>

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace ramie::net {

/// What listeners of both kinds do.
class listener {
 public:
  listener(listener&& other) noexcept : handle_{std::move(other.handle_)} {}
  listener& operator=(listener&& other) noexcept {
    if (this == &other) return *this;
    close();
    handle_ = std::move(other.handle_);
    return *this;
  }

  /// Stops listening and ends all calls of `accept` under way. Another one may listen at the address although fibers
  /// have not returned from `accept` yet, unless a thread is within the system call. Does not suspend. Any thread.
  void close() noexcept;
  [[nodiscard]] endpoint local() const;  // throws io_error
  [[nodiscard]] int native_handle() const noexcept { return handle_.fd(); }
  /// How often `accept` waited for lack of descriptors or memory. Any thread.
  [[nodiscard]] std::uint64_t pauses() const noexcept { return pauses_.load(std::memory_order_relaxed); }

 protected:
  listener(endpoint at, const tcp_options& options);
  /// Of a socket that listens; `what`: the class. Throws as `adopt` does.
  listener(int fd, const char* what, bool is_local);
  ~listener() { close(); }
  detail::handle accept_one(const std::source_location& where);
  /// One try, during a use, without waiting. False if there is no connection; in a shortage true, and `into` is empty.
  bool accept_now(int own, detail::handle& into);

  friend struct detail::socket_access;
  detail::handle handle_;
  detail::atomic<std::uint64_t> pauses_{0};
};

/// Takes TCP connections. Several fibers may `accept` at a time.
class tcp_listener : public listener {
 public:
  /// Listens at once, with SO_REUSEADDR. Port 0 picks a free one, see local(). Throws io_error that names `at`,
  /// invalid_argument (options).
  explicit tcp_listener(const endpoint& at, const tcp_options& options = {})
      : listener{at, options}, no_delay_{options.no_delay} {}
  /// Takes ownership of `fd`, a TCP socket that listens already (see `given_sockets`), and makes it non-blocking, also
  /// for other processes that have it. Of the options only `no_delay` counts. Throws invalid_argument if it is another
  /// descriptor, io_error; then `fd` is the caller's.
  [[nodiscard]] static tcp_listener adopt(int fd, const tcp_options& options = {}) {
    return tcp_listener{fd, options.no_delay};
  }

  /// Waits for a connection. Skips connections that the peer has already closed. If the process is out of descriptors
  /// or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM), it waits (up to 100 ms between attempts) and retries: connections
  /// stay in the backlog meanwhile, and none is lost. Suspends. Throws io_error with io_errc::closed, `cancelled`.
  [[nodiscard]] tcp_stream accept(std::source_location where = std::source_location::current());
  /// The same, but nothing once the listener is closed: for the loop of a server.
  [[nodiscard]] std::optional<tcp_stream> accept_unless_closed(
      std::source_location where = std::source_location::current());

 private:
  friend struct detail::socket_access;
  tcp_listener(int fd, bool no_delay) : listener{fd, "tcp_listener", false}, no_delay_{no_delay} {}
  [[nodiscard]] tcp_stream made_of(detail::handle h) const;
  bool no_delay_;
};

/// Takes connections to a local socket. Removes its socket file when closed, destroyed or assigned to, unless another
/// one is there by then. Replaces a stale one when created, that is, a socket that nobody listens at, but no other
/// file. Of several that are created at once at one name one succeeds, in whatever processes they are: each locks the
/// folder (flock) for an instant. One that cannot be read, or that another program has locked for a second, is not
/// locked.
class unix_listener : public listener {
 public:
  /// Listens at once. Throws io_error that names `at` (EADDRINUSE if something is there), invalid_argument if `at` is
  /// not the address of a local socket.
  explicit unix_listener(const endpoint& at, int backlog = 4096);
  /// Same as tcp_listener::adopt, of a local socket. Its file stays when it ends.
  [[nodiscard]] static unix_listener adopt(int fd) { return unix_listener{fd}; }
  unix_listener(unix_listener&& other) noexcept;
  unix_listener& operator=(unix_listener&& other) noexcept;
  ~unix_listener() { remove_file(); }

  /// Also removes the file, once: another listener may have the name from then on. Does not suspend. Any thread.
  void close() noexcept;
  /// From now on the file is not this one's to remove: another process has the socket, and goes on. Any thread.
  void leave_file() noexcept;

  /// Same as tcp_listener::accept.
  [[nodiscard]] unix_stream accept(std::source_location where = std::source_location::current());
  /// Same as tcp_listener::accept_unless_closed.
  [[nodiscard]] std::optional<unix_stream> accept_unless_closed(
      std::source_location where = std::source_location::current());

 private:
  friend struct detail::socket_access;
  class name_lock;
  explicit unix_listener(int fd) : listener{fd, "unix_listener", true} {}
  unix_listener(const endpoint& at, int backlog, const name_lock& held);
  [[nodiscard]] static unix_stream made_of(detail::handle h);
  void remove_file() noexcept;
  endpoint at_;
  std::uint64_t device_ = 0, inode_ = 0;  // of the file
  ramie::detail::os_mutex files_;
  bool has_file_ = false;  // files_
};

/// A socket that this process was started with.
struct given_socket {
  int fd;
  std::string name;  // "unknown" if it has none
};
/// The sockets that a supervisor such as systemd has made for this process, in its order, for `adopt`: what LISTEN_PID,
/// LISTEN_FDS and LISTEN_FDNAMES say (sd_listen_fds(3)), if they are meant for this process. Takes these variables out
/// of the environment, so a second call finds nothing, and children get neither them nor the sockets. To be called
/// before other threads use the environment. Throws invalid_argument if they are not as they should be, io_error if
/// a descriptor is not open.
[[nodiscard]] std::vector<given_socket> given_sockets();

}  // namespace ramie::net
