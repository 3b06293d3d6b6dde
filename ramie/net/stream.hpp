// Streams of bytes: what TCP, local sockets and pipes have in common, and the sockets among them.
//
// All calls that wait suspend the calling fiber, or block a plain thread. They are cancelled as every wait is, by
// `with_timeout`, `request_stop` and the like, but only between two system calls. So no byte is lost or sent twice:
// what was read is returned first, and a write that is cut short reports its progress (`written`). One fiber may read
// while another writes. `close` may be called from anywhere at any time.
#pragma once

#include <ramie/net/endpoint.hpp>
#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/io_error.hpp>

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace ramie::net {

/// The calls of all streams. Movable; a moved-from or default-made one is closed.
class stream {
 public:
  stream(stream&&) noexcept = default;
  stream& operator=(stream&&) noexcept = default;

  /// Reads at least one byte and at most `into.size()`; 0 at the end of the stream, or if `into` is empty. Suspends.
  /// Throws io_error, `cancelled`.
  std::size_t read_some(std::span<std::byte> into, std::source_location where = std::source_location::current());
  /// The same; failures of the kernel and `closed` are stored in `failure` (cleared otherwise), and 0 is returned.
  std::size_t read_some(std::span<std::byte> into, std::error_code& failure,
                        std::source_location where = std::source_location::current());
  /// As read_some, into several pieces in order, with one system call: the first 16 that have room. A pipe fills the
  /// first piece that has room, and no other.
  std::size_t read_pieces(std::span<const iovec> into, std::source_location where = std::source_location::current());
  /// Fills all of `into`. Suspends. False if the stream ended before the first byte; throws io_error with
  /// io_errc::unexpected_end if it ended after that, `cancelled`. `read`, if given, is how many bytes of it were read,
  /// also when this throws.
  [[nodiscard]] bool read_exactly(std::span<std::byte> into, std::size_t* read = nullptr,
                                  std::source_location where = std::source_location::current());

  /// Writes all of it. Suspends while the send buffer is full. Throws io_error (EPIPE if the peer has closed its read
  /// side; there is no SIGPIPE), `cancelled`. `written`, if given, is how much the kernel took, also when this throws.
  void write_all(std::span<const std::byte> from, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current());
  void write_all(std::string_view text, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current()) {
    write_all(std::as_bytes(std::span{text}), written, where);
  }
  /// Same as above for several pieces in order, with as few system calls as possible.
  void write_all(std::span<const iovec> pieces, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current());

  /// Writes at least one byte of it, as many as there is room for (of the first 16 pieces that are not empty), and
  /// returns how many; 0 if there are none. Suspends while the send buffer is full. Throws as write_all does.
  std::size_t write_some(std::span<const iovec> pieces, std::source_location where = std::source_location::current());
  std::size_t write_some(std::span<const std::byte> from,
                         std::source_location where = std::source_location::current()) {
    const iovec piece{const_cast<std::byte*>(from.data()), from.size()};
    return write_some(std::span{&piece, 1}, where);
  }
  std::size_t write_some(std::string_view text, std::source_location where = std::source_location::current()) {
    return write_some(std::as_bytes(std::span{text}), where);
  }

  /// What is there now: as read_some, but nullopt where that would wait. Does not suspend. Throws io_error.
  [[nodiscard]] std::optional<std::size_t> try_read(std::span<std::byte> into);
  /// As many bytes as there is room for now (of the first 16 pieces that are not empty), perhaps 0. Does not suspend.
  /// Throws io_error.
  std::size_t try_write(std::span<const iovec> pieces);
  std::size_t try_write(std::span<const std::byte> from) {
    const iovec piece{const_cast<std::byte*>(from.data()), from.size()};
    return try_write(std::span{&piece, 1});
  }
  std::size_t try_write(std::string_view text) { return try_write(std::as_bytes(std::span{text})); }
  /// Suspends until `try_read` is worth a call, which may still find nothing. Makes no system call itself, once the
  /// stream has waited for something. Throws as wait_readable does.
  void await_input(std::source_location where = std::source_location::current());

  /// Suspends until a read (or write) would not block or would fail; if several read (or write), another one may have
  /// been faster. Reads nothing: a server with many idle connections needs no buffers for them. Throws io_error,
  /// `cancelled`.
  void wait_readable(std::source_location where = std::source_location::current());
  void wait_writable(std::source_location where = std::source_location::current());

  /// Ends all calls under way, also of other fibers and threads, with io_errc::closed; later calls throw that, too. The
  /// descriptor is closed when the last call has ended. Does not suspend. Any thread.
  void close() noexcept { handle_.close(); }
  [[nodiscard]] bool is_open() const noexcept;

  /// The descriptor, for system calls that are not here; -1 once it is closed. The stream still owns it.
  [[nodiscard]] int native_handle() const noexcept { return handle_.fd(); }
  /// Releases ownership of the descriptor, which stays non-blocking. No call may be under way.
  [[nodiscard]] int release() noexcept { return handle_.release(); }

 protected:
  enum class kind : bool { socket, file };
  stream() noexcept = default;
  stream(detail::handle h, kind k) noexcept : handle_{std::move(h)}, kind_{k} {}
  ~stream() = default;

  friend struct detail::socket_access;
  friend class file;
  detail::handle handle_;
  kind kind_ = kind::socket;
};

enum class peer_state : unsigned char {
  sends,   ///< as far as is known
  ended,   ///< it has closed its write side, or itself: what it sent before may be unread, and it may still read
  is_gone  ///< nothing goes either way: reset, failed, both sides shut down, or closed here
};

/// A stream over a socket: both ends read and write, and each direction can be ended alone.
class socket_stream : public stream {
 public:
  socket_stream(socket_stream&&) noexcept = default;
  socket_stream& operator=(socket_stream&&) noexcept = default;

  /// Closes the write side: the peer sees the end of the stream. Reading still works. Throws io_error. Does not
  /// suspend.
  void shutdown_write();
  /// From now on reads do not wait, those under way neither: they return what has come, and then the end of the stream.
  /// A peer of TCP is not told; one of a local socket gets EPIPE when it writes. Throws io_error. Does not suspend.
  void shutdown_read();
  /// As read_some, but leaves the bytes where they are: the next read gets them, too.
  std::size_t peek(std::span<std::byte> into, std::source_location where = std::source_location::current());
  /// Without a read, so while another fiber does something else for the peer. Two system calls at most. Any thread;
  /// does not suspend.
  [[nodiscard]] peer_state peer_is() const noexcept;
  [[nodiscard]] endpoint local() const;  // throws io_error
  [[nodiscard]] endpoint peer() const;   // throws io_error

 protected:
  socket_stream() noexcept = default;
  explicit socket_stream(int fd) : stream{detail::handle{fd, detail::endings::last}, kind::socket} {}
  ~socket_stream() = default;
};

/// When a connection on which nothing comes is given up: calls then fail with ETIMEDOUT. Each time from 1 to 32,767 s.
struct keep_alive_times {
  std::chrono::seconds after{60};  // so long after the last bytes the peer is asked (TCP_KEEPIDLE)
  std::chrono::seconds every{10};  // and again, if it does not answer (TCP_KEEPINTVL)
  int tries = 6;                   // 1 to 127 (TCP_KEEPCNT)
};

struct tcp_options {
  bool no_delay = true;     // small writes leave at once (TCP_NODELAY)
  bool reuse_port = false;  // listeners: several may have the same address (SO_REUSEPORT)
  int backlog = 4096;       // listeners: connections that wait for `accept`; the kernel's limit is net.core.somaxconn
  // A listener's are those of the connections that it takes, too.
  std::optional<keep_alive_times> keep_alive{};  // none: the peer is not asked (SO_KEEPALIVE)
  /// How long the peer may leave what was sent unacknowledged; 0: some 15 minutes, by the kernel (TCP_USER_TIMEOUT).
  std::chrono::milliseconds unacknowledged_most{0};
  int receive_buffer = 0, send_buffer = 0;  // bytes; 0: as the kernel finds right (SO_RCVBUF, SO_SNDBUF)
};

namespace detail {
/// All but `reuse_port` and `backlog`, before it listens at, or connects to, `at`; none if that is not IPv4 or IPv6.
/// Throws invalid_argument, io_error.
void set_options(int fd, const endpoint& at, const tcp_options& options);
}  // namespace detail

/// A TCP connection.
class tcp_stream : public socket_stream {
 public:
  tcp_stream() noexcept = default;
  /// Connects. Suspends. A call that is cancelled closes its socket. Throws io_error that names `to`, invalid_argument
  /// (options), `cancelled`.
  [[nodiscard]] static tcp_stream connect(const endpoint& to, const tcp_options& options = {},
                                          std::source_location where = std::source_location::current());
  /// Connects to one of several addresses of a server: they are tried in this order, but families take turns, the next
  /// one when another one fails, or after 250 ms; the first connection wins (RFC 8305). Suspends. Throws io_error that
  /// names the first, with the code of the last failure; invalid_argument if there is none; `cancelled`.
  [[nodiscard]] static tcp_stream connect(std::span<const endpoint> to, const tcp_options& options = {},
                                          std::source_location where = std::source_location::current());
  /// The same for all addresses of `host` (a name, or a numeric address), at the port of `service` (a name, or a
  /// number): `resolve`, which may throw, too. (A template, so that an address in braces is an endpoint.)
  template <class Host>
    requires std::is_convertible_v<const Host&, std::string_view>
  [[nodiscard]] static tcp_stream connect(const Host& host, std::string_view service, const tcp_options& options = {},
                                          std::source_location where = std::source_location::current()) {
    return connect_by_name(host, service, options, where);
  }
  /// Takes ownership of `fd`, a connected socket, and makes it non-blocking. Throws io_error; then `fd` is the
  /// caller's.
  [[nodiscard]] static tcp_stream adopt(int fd);

  /// Same as `close`, but the peer gets a reset: what it has not read may be lost, and its calls fail with ECONNRESET.
  /// The port is free at once. (What a `close` leaves to be sent, the kernel sends. There is no SO_LINGER to wait for
  /// that, as it would hold up the worker: shut the write side down, and read until the end.)
  void reset() noexcept;

 private:
  friend class tcp_listener;
  [[nodiscard]] static tcp_stream connect_by_name(std::string_view host, std::string_view service,
                                                  const tcp_options& options, const std::source_location& where);
  explicit tcp_stream(int fd) : socket_stream{fd} {}
};

/// A connection over a local socket.
class unix_stream : public socket_stream {
 public:
  unix_stream() noexcept = default;
  /// Same as tcp_stream::connect.
  [[nodiscard]] static unix_stream connect(const endpoint& to,
                                           std::source_location where = std::source_location::current());
  /// Same as tcp_stream::adopt.
  [[nodiscard]] static unix_stream adopt(int fd);
  /// Two connected streams. Throws io_error.
  [[nodiscard]] static std::pair<unix_stream, unix_stream> pair();

  /// The process at the other end, as it was when it connected. Throws io_error.
  struct credentials {
    int pid;
    unsigned uid, gid;
  };
  [[nodiscard]] credentials peer_credentials() const;

  /// Sends `fds` along with one or more bytes; the receiver gets duplicates. Suspends. Throws io_error,
  /// invalid_argument (more than 253 descriptors, or no byte), `cancelled`.
  void send_descriptors(std::span<const int> fds, std::span<const std::byte> with,
                        std::source_location where = std::source_location::current());
  /// Reads some bytes and up to `fds.size()` descriptors that came with them; they are close-on-exec and the caller's.
  /// Any more are closed. Returns how many bytes and descriptors. Suspends. Throws io_error, `cancelled`.
  [[nodiscard]] std::pair<std::size_t, std::size_t> receive_descriptors(
      std::span<int> fds, std::span<std::byte> with, std::source_location where = std::source_location::current());

 private:
  friend class unix_listener;
  explicit unix_stream(int fd) : socket_stream{fd} {}
};

}  // namespace ramie::net
