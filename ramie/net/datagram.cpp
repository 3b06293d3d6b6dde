#include <ramie/net/datagram.hpp>

#include <ramie/base/error.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/poll/retry.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/poll/traffic.hpp>
#include <ramie/task/io_wait.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>

namespace ramie::net {

namespace {

using namespace detail;

constexpr const char* receiving = ramie::detail::io_reason.receive;
constexpr const char* sending = ramie::detail::io_reason.send;

int bound(int type, endpoint at) {
  const std::string what = "bind to " + at.to_string();
  const system::result fd = socket_to_bind(at, type);
  if (fd < 0) system::fail(what, fd);
  if (const system::result code = system::bind(static_cast<int>(fd), at.data(), at.size()); code < 0) {
    system::close(static_cast<int>(fd));
    system::fail(what, code);
  }
  return static_cast<int>(fd);
}

/// The kernel does not tell when another sender's messages have left the mailbox of a local socket, unless this one is
/// connected to it. So it is also tried again after a while.
template <class Attempt>
system::result retry_unannounced(descriptor& d, Attempt attempt, const std::source_location& where) {
  std::chrono::milliseconds pause{1};
  return retry_writing_after(d, attempt, [&] {
    try {
      with_timeout(pause, [&] { await_ready(d, direction::out, sending, where); });
      return true;
    } catch (const timeout_error&) {
      pause = std::min(2 * pause, std::chrono::milliseconds{50});
      return false;
    }
  });
}

template <class Socket, class Make>
std::pair<Socket, Socket> pair_of(int type, Make make) {
  int both[2];
  if (const system::result code = system::socket_pair(type, both); code < 0) system::fail("socketpair", code);
  // Both are owned before anything else can fail.
  handle second;
  try {
    second = handle::owning(both[1], endings::pass);
  } catch (...) {
    system::close(both[0]);
    throw;
  }
  Socket first = make(both[0]);
  return {std::move(first), make(second.release())};
}

}  // namespace

message_socket::message_socket(int fd) : handle_{handle::owning(fd, endings::pass)} {}
message_socket::message_socket(int type, const endpoint& at) : message_socket{bound(type, at)} {}

message_socket::message_socket(int fd, const char* what, int type, bool is_local) {
  const system::result domain = system::get_option(fd, SOL_SOCKET, SO_DOMAIN);
  const bool fits = system::get_option(fd, SOL_SOCKET, SO_TYPE) == type &&
                    (is_local ? domain == AF_UNIX : domain == AF_INET || domain == AF_INET6);
  if (!fits)
    throw invalid_argument{"ramie: " + std::string{what} + ": adopt: descriptor " + std::to_string(fd) +
                           " is not such a socket"};
  system::check("adopt", system::set_nonblocking(fd));
  handle_ = handle{fd, endings::pass};
}

system::result detail::receive_datagram(int fd, std::span<std::byte> into, endpoint& from, bool& truncated) {
  sockaddr_storage sender;
  iovec piece{into.data(), into.size()};
  msghdr message{};
  message.msg_name = &sender;
  message.msg_namelen = sizeof sender;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const system::result n = system::receive_message(fd, message, MSG_TRUNC);
  if (n < 0) return n;
  from = endpoint::of(reinterpret_cast<const sockaddr*>(&sender), message.msg_namelen);
  truncated = (message.msg_flags & MSG_TRUNC) != 0;
  return n;
}

message_socket::received message_socket::receive_from(std::span<std::byte> into, std::source_location where) {
  const use during{handle_.get(), receiving};
  received got{};
  const system::result n = retry_reading(
      *handle_, receiving, where, [&](int fd) { return receive_datagram(fd, into, got.from, got.truncated); },
      [](system::result) { return false; });
  if (n < 0) system::fail(receiving, n);
  count_read(n);
  got.size = static_cast<std::size_t>(n);
  return got;
}

void message_socket::send_message(const endpoint* to, std::span<const std::byte> bytes,
                                  const std::source_location& where) {
  const use during{handle_.get(), sending};
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (to != nullptr) {
    message.msg_name = const_cast<sockaddr*>(to->data());
    message.msg_namelen = to->size();
  }
  const auto attempt = [&](int fd) { return system::send_message(fd, message); };
  const system::result n = to != nullptr && to->family() == AF_UNIX ? retry_unannounced(*handle_, attempt, where)
                                                                    : retry_writing(*handle_, sending, where, attempt);
  if (n < 0) system::fail(to == nullptr ? std::string{sending} : "send to " + to->to_string(), n);
  count_written(n);
}

void message_socket::send_to(const endpoint& to, std::span<const std::byte> message, std::source_location where) {
  send_message(&to, message, where);
}
void message_socket::send(std::span<const std::byte> message, std::source_location where) {
  send_message(nullptr, message, where);
}

void message_socket::connect(const endpoint& to) {
  const use during{handle_.get(), "connect"};
  if (const system::result code = system::connect(during.fd(), to.data(), to.size()); code < 0)
    system::fail("connect to " + to.to_string(), code);
}

endpoint message_socket::local() const {
  const use during{handle_.get(), "getsockname"};
  sockaddr_storage at{};
  socklen_t size = 0;
  if (const system::result code = system::local_name(during.fd(), at, size); code < 0)
    system::fail("getsockname", code);
  return endpoint::of(reinterpret_cast<const sockaddr*>(&at), size);
}

std::pair<unix_datagram, unix_datagram> unix_datagram::pair() {
  return pair_of<unix_datagram>(SOCK_DGRAM, [](int fd) { return unix_datagram{fd}; });
}
std::pair<unix_seqpacket, unix_seqpacket> unix_seqpacket::pair() {
  return pair_of<unix_seqpacket>(SOCK_SEQPACKET, [](int fd) { return unix_seqpacket{fd}; });
}

}  // namespace ramie::net
