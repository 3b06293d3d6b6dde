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

#include <cstddef>
#include <source_location>
#include <span>
#include <string_view>
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

/// A stream over a socket: both ends read and write, and each direction can be ended alone.
class socket_stream : public stream {
 public:
  socket_stream(socket_stream&&) noexcept = default;
  socket_stream& operator=(socket_stream&&) noexcept = default;

  /// Closes the write side: the peer sees the end of the stream. Reading still works. Throws io_error. Does not
  /// suspend.
  void shutdown_write();
  [[nodiscard]] endpoint local() const;  // throws io_error
  [[nodiscard]] endpoint peer() const;   // throws io_error

 protected:
  socket_stream() noexcept = default;
  explicit socket_stream(int fd) : stream{detail::handle{fd, detail::endings::last}, kind::socket} {}
  ~socket_stream() = default;
};

struct tcp_options {
  bool no_delay = true;     // small writes leave at once (TCP_NODELAY)
  bool reuse_port = false;  // listeners: several may have the same address (SO_REUSEPORT)
  int backlog = 4096;       // listeners: connections that wait for `accept`; the kernel's limit is net.core.somaxconn
};

/// A TCP connection.
class tcp_stream : public socket_stream {
 public:
  tcp_stream() noexcept = default;
  /// Connects. Suspends. A call that is cancelled closes its socket. Throws io_error that names `to`, `cancelled`.
  [[nodiscard]] static tcp_stream connect(const endpoint& to, const tcp_options& options = {},
                                          std::source_location where = std::source_location::current());
  /// Takes ownership of `fd`, a connected socket, and makes it non-blocking. Throws io_error; then `fd` is the
  /// caller's.
  [[nodiscard]] static tcp_stream adopt(int fd);

 private:
  friend class tcp_listener;
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
