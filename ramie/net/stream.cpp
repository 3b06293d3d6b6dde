#include <ramie/net/stream.hpp>

#include <ramie/poll/retry.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/poll/traffic.hpp>
#include <ramie/task/io_wait.hpp>

#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ramie::net {

namespace {

using namespace detail;

constexpr const char* reading = ramie::detail::io_reason.read;
constexpr const char* writing = ramie::detail::io_reason.write;

system::result read_now(int fd, bool socket, std::span<std::byte> into) noexcept {
  return socket ? system::receive(fd, into.data(), into.size()) : system::read(fd, into.data(), into.size());
}

system::result read_once(descriptor& d, bool socket, std::span<std::byte> into, const std::source_location& where) {
  const system::result got = retry_reading(
      d, reading, where, [&](int fd) { return read_now(fd, socket, into); },
      [&](system::result n) { return is_drained_by(d, n, into.size()); });
  count_read(got);
  return got;
}

/// N2: is a try worth its call? What is in no set is tried whatever its flag says.
bool may_have_input(descriptor& d) noexcept {
  return take_ready(d, direction::in) || d.registered.load(std::memory_order_relaxed) == nullptr;
}

/// What goes to the kernel in one call.
class batch {
 public:
  /// Of `pieces`, without the first `skip` bytes of the first one.
  batch(std::span<const iovec> pieces, std::size_t skip) noexcept {
    for (const iovec& piece : pieces) {
      if (n_ == parts_.size()) break;
      if (const std::size_t left = std::exchange(skip, 0); left < piece.iov_len)
        parts_[n_++] = {static_cast<char*>(piece.iov_base) + left, piece.iov_len - left};
    }
  }
  [[nodiscard]] bool empty() const noexcept { return n_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t all = 0;
    for (std::size_t i = 0; i < n_; ++i) all += parts_[i].iov_len;
    return all;
  }
  // Not empty.
  system::result read_from(int fd, bool socket) noexcept {
    if (!socket) return system::read(fd, parts_[0].iov_base, parts_[0].iov_len);
    if (n_ == 1) return system::receive(fd, parts_[0].iov_base, parts_[0].iov_len);
    msghdr message{};
    message.msg_iov = parts_.data();
    message.msg_iovlen = n_;
    return system::receive_message(fd, message, 0);
  }
  system::result write_to(int fd, bool socket) noexcept {
    if (!socket) return system::write(fd, parts_.data(), static_cast<int>(n_));
    if (n_ == 1) return system::send(fd, parts_[0].iov_base, parts_[0].iov_len);
    msghdr message{};
    message.msg_iov = parts_.data();
    message.msg_iovlen = n_;
    return system::send_message(fd, message);
  }

 private:
  std::array<iovec, 16> parts_;  // few: they are on a fiber's stack
  std::size_t n_ = 0;
};

using name_getter = system::result(int, sockaddr_storage&, socklen_t&) noexcept;

endpoint name_of(const handle& h, const char* what, name_getter* get) {
  const use during{h.get(), what};
  sockaddr_storage at{};
  socklen_t size = 0;
  system::check(what, get(during.fd(), at, size));
  return endpoint::of(reinterpret_cast<const sockaddr*>(&at), size);
}

}  // namespace

// ---- all streams ---------------------------------------------------------------------------------------------------

std::size_t stream::read_some(std::span<std::byte> into, std::source_location where) {
  const use during{handle_.get(), reading};
  if (into.empty()) return 0;
  const system::result n = read_once(*handle_, kind_ == kind::socket, into, where);
  system::check(reading, n);
  return static_cast<std::size_t>(n);
}

std::size_t stream::read_pieces(std::span<const iovec> into, std::source_location where) {
  const use during{handle_.get(), reading};
  batch some{into, 0};
  if (some.empty()) return 0;
  const system::result n = retry_reading(
      *handle_, reading, where, [&](int fd) { return some.read_from(fd, kind_ == kind::socket); },
      [&](system::result got) { return is_drained_by(*handle_, got, some.size()); });
  system::check(reading, n);
  count_read(n);
  return static_cast<std::size_t>(n);
}

std::size_t stream::read_some(std::span<std::byte> into, std::error_code& failure, std::source_location where) {
  failure.clear();
  try {
    return read_some(into, where);
  } catch (const io_error& e) {
    failure = e.code();
    return 0;
  }
}

bool stream::read_exactly(std::span<std::byte> into, std::size_t* read, std::source_location where) {
  std::size_t ignored = 0;
  std::size_t& done = read == nullptr ? ignored : *read;
  done = 0;
  while (done < into.size()) {
    const std::size_t n = read_some(into.subspan(done), where);
    if (n == 0) {
      if (done == 0) return false;
      throw io_error{"read after " + std::to_string(done) + " of " + std::to_string(into.size()) + " bytes",
                     io_errc::unexpected_end};
    }
    done += n;
  }
  return true;
}

void stream::write_all(std::span<const std::byte> from, std::size_t* written, std::source_location where) {
  const iovec piece{const_cast<std::byte*>(from.data()), from.size()};
  write_all(std::span{&piece, 1}, written, where);
}

void stream::write_all(std::span<const iovec> pieces, std::size_t* written, std::source_location where) {
  std::size_t ignored = 0;
  std::size_t& done = written == nullptr ? ignored : *written;
  done = 0;
  const use during{handle_.get(), writing};
  std::size_t skip = 0;  // of the first piece
  while (!pieces.empty()) {
    if (pieces.front().iov_len == skip) {
      pieces = pieces.subspan(1);
      skip = 0;
      continue;
    }
    batch some{pieces, skip};
    const system::result sent =
        retry_writing(*handle_, writing, where, [&](int fd) { return some.write_to(fd, kind_ == kind::socket); });
    system::check(writing, sent);
    count_written(sent);
    done += static_cast<std::size_t>(sent);
    for (std::size_t left = static_cast<std::size_t>(sent); left != 0;) {
      const std::size_t rest = pieces.front().iov_len - skip;
      if (left < rest) {
        skip += left;
        break;
      }
      left -= rest;
      skip = 0;
      pieces = pieces.subspan(1);
    }
  }
}

std::optional<std::size_t> stream::try_read(std::span<std::byte> into) {
  const use during{handle_.get(), reading};
  if (into.empty()) return 0;
  descriptor& d = *handle_;
  if (!may_have_input(d)) return std::nullopt;
  const bool socket = kind_ == kind::socket;
  system::result n = -EINTR;
  while (n == -EINTR) n = read_now(d.fd, socket, into);
  if (n == -EAGAIN) {
    found_nothing(d, direction::in);
    return std::nullopt;
  }
  if (!is_drained_by(d, n, into.size())) set_ready(d, direction::in);
  system::check(reading, n);
  count_read(n);
  return static_cast<std::size_t>(n);
}

std::size_t stream::write_some(std::span<const iovec> pieces, std::source_location where) {
  const use during{handle_.get(), writing};
  batch some{pieces, 0};
  if (some.empty()) return 0;
  const system::result n =
      retry_writing(*handle_, writing, where, [&](int fd) { return some.write_to(fd, kind_ == kind::socket); });
  system::check(writing, n);
  count_written(n);
  return static_cast<std::size_t>(n);
}

std::size_t stream::try_write(std::span<const iovec> pieces) {
  const use during{handle_.get(), writing};
  batch some{pieces, 0};
  if (some.empty()) return 0;
  system::result n = -EINTR;
  while (n == -EINTR) n = some.write_to(during.fd(), kind_ == kind::socket);
  if (n == -EAGAIN) {
    found_nothing(*handle_, direction::out);
    return 0;
  }
  system::check(writing, n);
  count_written(n);
  return static_cast<std::size_t>(n);
}

void stream::await_input(std::source_location where) {
  const use during{handle_.get(), reading};
  give_way();
  await_ready(*handle_, direction::in, reading, where);
  set_ready(*handle_, direction::in);
}

void stream::wait_readable(std::source_location where) {
  const use during{handle_.get(), reading};
  wait_until_ready(*handle_, direction::in, reading, where);
}

void stream::wait_writable(std::source_location where) {
  const use during{handle_.get(), writing};
  wait_until_ready(*handle_, direction::out, writing, where);
}

bool stream::is_open() const noexcept { return handle_.get() != nullptr && !is_closing(*handle_); }

// ---- sockets -------------------------------------------------------------------------------------------------------

namespace {
void shut_down(const handle& h, int how) {
  const use during{h.get(), "shutdown"};
  const system::result code = system::shutdown(during.fd(), how);
  if (code != -ENOTCONN) system::check("shutdown", code);  // the peer closed first
}
}  // namespace

void socket_stream::shutdown_write() { shut_down(handle_, SHUT_WR); }
void socket_stream::shutdown_read() { shut_down(handle_, SHUT_RD); }

std::size_t socket_stream::peek(std::span<std::byte> into, std::source_location where) {
  const use during{handle_.get(), reading};
  if (into.empty()) return 0;
  iovec piece{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const system::result n = retry_reading(
      *handle_, reading, where, [&](int fd) { return system::receive_message(fd, message, MSG_PEEK); },
      [](system::result) { return false; });
  system::check(reading, n);
  return static_cast<std::size_t>(n);
}

peer_state socket_stream::peer_is() const noexcept {
  if (handle_.get() == nullptr) return peer_state::is_gone;
  const possible_use during{*handle_};
  if (!during) return peer_state::is_gone;
  if (!system::is_ready(handle_.fd(), POLLRDHUP)) return peer_state::sends;
  return system::is_ready(handle_.fd(), 0) ? peer_state::is_gone : peer_state::ended;  // POLLERR and POLLHUP unasked
}

void tcp_stream::reset() noexcept {
  if (handle_.get() == nullptr) return;
  if (const possible_use during{*handle_}; during) {
    const linger at_once{1, 0};
    ::setsockopt(handle_.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  close();
}

endpoint socket_stream::local() const { return name_of(handle_, "getsockname", &system::local_name); }
endpoint socket_stream::peer() const { return name_of(handle_, "getpeername", &system::peer_name); }

tcp_stream tcp_stream::adopt(int fd) {
  system::check("adopt", system::set_nonblocking(fd));
  tcp_stream made{fd};
  // It may be any socket, after all.
  if (system::get_option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP)
    made.handle_.get()->short_reads.store(false, std::memory_order_relaxed);
  return made;
}

unix_stream unix_stream::adopt(int fd) {
  system::check("adopt", system::set_nonblocking(fd));
  return unix_stream{fd};
}

std::pair<unix_stream, unix_stream> unix_stream::pair() {
  int both[2];
  system::check("socketpair", system::socket_pair(SOCK_STREAM, both));
  handle second;
  try {
    second = handle::owning(both[1], endings::last);
  } catch (...) {
    system::close(both[0]);
    throw;
  }
  unix_stream a, b;
  b.handle_ = std::move(second);
  a.handle_ = handle::owning(both[0], endings::last);
  return {std::move(a), std::move(b)};
}

unix_stream::credentials unix_stream::peer_credentials() const {
  const use during{handle_.get(), "getsockopt"};
  ucred found{};
  socklen_t size = sizeof found;
  if (::getsockopt(during.fd(), SOL_SOCKET, SO_PEERCRED, &found, &size) != 0)
    system::fail("getsockopt(SO_PEERCRED)", -errno);
  return {found.pid, found.uid, found.gid};
}

namespace {
constexpr std::size_t descriptors_most = 253;  // SCM_MAX_FD of the kernel

/// Room for the control message that carries descriptors.
struct control_buffer {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(descriptors_most * sizeof(int))> bytes{};
};
}  // namespace

void unix_stream::send_descriptors(std::span<const int> fds, std::span<const std::byte> with,
                                   std::source_location where) {
  if (fds.size() > descriptors_most)
    throw invalid_argument{"ramie: send_descriptors: " + std::to_string(fds.size()) + " descriptors; at most " +
                           std::to_string(descriptors_most) + " go with one message"};
  if (with.empty())
    throw invalid_argument{"ramie: send_descriptors: at least one byte must be sent with the descriptors"};
  std::size_t first = 0;
  {
    const use during{handle_.get(), writing};
    control_buffer control;
    iovec piece{const_cast<std::byte*>(with.data()), with.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.bytes.data();
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
    }
    const system::result n =
        retry_writing(*handle_, writing, where, [&](int fd) { return system::send_message(fd, message); });
    system::check(writing, n);
    count_written(n);
    first = static_cast<std::size_t>(n);
  }
  write_all(with.subspan(first), nullptr, where);
}

std::pair<std::size_t, std::size_t> unix_stream::receive_descriptors(std::span<int> fds, std::span<std::byte> with,
                                                                     std::source_location where) {
  const use during{handle_.get(), reading};
  control_buffer control;
  iovec piece{with.data(), with.size()};
  msghdr message{};
  const system::result n = retry_reading(
      *handle_, reading, where,
      [&](int fd) {
        message = {};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control.bytes.data();
        message.msg_controllen = control.bytes.size();
        return system::receive_message(fd, message, 0);
      },
      [](system::result) { return false; });  // descriptors end a read early
  system::check(reading, n);
  count_read(n);
  std::size_t got = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      if (got < fds.size()) fds[got++] = fd;
      else system::close(fd);
    }
  }
  return {static_cast<std::size_t>(n), got};
}

}  // namespace ramie::net
