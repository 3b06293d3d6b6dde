// Message sockets: UDP, and local datagram and seqpacket sockets.
#pragma once

#include <ramie/net/endpoint.hpp>
#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/io_error.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <utility>

namespace ramie::net {

namespace detail {
/// One call, which does not wait: the size of the message, or minus the errno. `from` and `truncated` are set with it.
std::int64_t receive_datagram(int fd, std::span<std::byte> into, endpoint& from, bool& truncated);
}  // namespace detail

/// The calls of all message sockets. Movable. One fiber may receive while another sends.
class message_socket {
 public:
  message_socket(message_socket&&) noexcept = default;
  message_socket& operator=(message_socket&&) noexcept = default;

  struct received {
    std::size_t size;  // of the message, even if `into` is shorter
    endpoint from;     // empty for a connected seqpacket socket
    bool truncated;    // the rest of the message is lost
  };
  /// Waits for a message. A connected seqpacket socket gives size 0 at its end. Suspends. Throws io_error, `cancelled`.
  /// An error of an earlier message (ECONNREFUSED) is thrown once.
  [[nodiscard]] received receive_from(std::span<std::byte> into,
                                      std::source_location where = std::source_location::current());
  /// Same as receive_from, without the sender; returns the size.
  [[nodiscard]] std::size_t receive(std::span<std::byte> into,
                                    std::source_location where = std::source_location::current()) {
    return receive_from(into, where).size;
  }
  /// Sends one message, whole. Suspends while there is no room. Throws io_error (EMSGSIZE if it is too long),
  /// `cancelled`.
  void send_to(const endpoint& to, std::span<const std::byte> message,
               std::source_location where = std::source_location::current());
  /// Same as send_to, to the connected peer.
  void send(std::span<const std::byte> message, std::source_location where = std::source_location::current());

  /// From now on `send` goes to `to`, and messages from others are dropped. Throws io_error. Does not suspend.
  void connect(const endpoint& to);
  [[nodiscard]] endpoint local() const;  // throws io_error
  /// Ends all calls under way, also of other fibers and threads, with io_errc::closed; later calls throw that, too.
  /// Does not suspend. Any thread.
  void close() noexcept { handle_.close(); }
  [[nodiscard]] int native_handle() const noexcept { return handle_.fd(); }

 protected:
  message_socket() noexcept = default;
  explicit message_socket(int fd);  // owns it, also if it throws
  message_socket(int type, const endpoint& at);
  /// `fd`, if it is of this type, and local or not. Throws as `adopt` does.
  message_socket(int fd, const char* what, int type, bool is_local);
  ~message_socket() = default;

 private:
  friend struct detail::socket_access;
  void send_message(const endpoint* to, std::span<const std::byte> message, const std::source_location& where);

  detail::handle handle_;
};

/// A UDP socket.
class udp_socket : public message_socket {
 public:
  /// Bound to `at`; port 0 picks a free one. Throws io_error that names `at`.
  explicit udp_socket(const endpoint& at) : message_socket{2 /* SOCK_DGRAM */, at} {}
  /// Takes ownership of `fd`, a UDP socket (see `given_sockets`), and makes it non-blocking, also for other processes
  /// that have it. Throws invalid_argument if it is another descriptor, io_error; then `fd` is the caller's.
  [[nodiscard]] static udp_socket adopt(int fd) { return udp_socket{fd}; }

 private:
  explicit udp_socket(int fd) : message_socket{fd, "udp_socket", 2, false} {}
};

/// A local datagram socket; messages arrive whole.
class unix_datagram : public message_socket {
 public:
  /// Bound to `at`. Its file stays when it ends.
  explicit unix_datagram(const endpoint& at) : message_socket{2 /* SOCK_DGRAM */, at} {}
  /// Same as udp_socket::adopt. Its file stays when it ends.
  [[nodiscard]] static unix_datagram adopt(int fd) { return unix_datagram{fd, "unix_datagram"}; }
  /// Two connected sockets. Throws io_error.
  [[nodiscard]] static std::pair<unix_datagram, unix_datagram> pair();

 private:
  explicit unix_datagram(int fd) : message_socket{fd} {}
  unix_datagram(int fd, const char* what) : message_socket{fd, what, 2, true} {}
};

/// Connected; messages arrive in order and whole.
class unix_seqpacket : public message_socket {
 public:
  /// Same as udp_socket::adopt, of a connected socket.
  [[nodiscard]] static unix_seqpacket adopt(int fd) { return unix_seqpacket{fd, "unix_seqpacket"}; }
  /// Two connected sockets. Throws io_error.
  [[nodiscard]] static std::pair<unix_seqpacket, unix_seqpacket> pair();

 private:
  explicit unix_seqpacket(int fd) : message_socket{fd} {}
  unix_seqpacket(int fd, const char* what) : message_socket{fd, what, 5 /* SOCK_SEQPACKET */, true} {}
};

}  // namespace ramie::net
