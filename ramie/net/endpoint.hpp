// The address of a socket or of its peer.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ramie::net {

/// An address of a socket: IPv4 or IPv6 with a port, or a local (unix) one. A value; copies are cheap.
class endpoint {
 public:
  /// Names nothing: family() is AF_UNSPEC.
  endpoint() noexcept = default;
  /// A numeric address, as "127.0.0.1", "::1", "fe80::1%eth0"; "" and "*" are the IPv6 wildcard, which also accepts
  /// IPv4 (on a machine without IPv6, the wildcard of IPv4 when it is listened at). Does not resolve host names: see
  /// `resolve`. Throws invalid_argument, also if `port` is not 0 to 65535.
  endpoint(std::string_view address, int port);
  /// Address and port in one: "127.0.0.1:80", "[::1]:80", ":80". Throws invalid_argument.
  [[nodiscard]] static endpoint parse(std::string_view text);
  /// A local socket at `path`; a path that begins with '@' is in the abstract name space, without a file. Throws
  /// invalid_argument if it is empty, longer than 107 bytes, or has a zero byte (one with '@' may).
  [[nodiscard]] static endpoint local(std::string_view path);
  /// From the kernel's form. Throws invalid_argument if `size` is larger than any address.
  [[nodiscard]] static endpoint of(const sockaddr* address, socklen_t size);

  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
  /// 0 where there are no ports.
  [[nodiscard]] std::uint16_t port() const noexcept;
  /// The address without the port; the path of a local one. Throws std::bad_alloc.
  [[nodiscard]] std::string address() const;
  /// As `parse` takes it; "unix:PATH" for a local one, "-" for none.
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const noexcept { return size_; }
  friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

namespace detail {
/// A socket for `at`, as system::socket makes it. Where there is no IPv6, `at` is changed from its wildcard to that of
/// IPv4.
std::int64_t socket_to_bind(endpoint& at, int type);
}  // namespace detail

}  // namespace ramie::net
