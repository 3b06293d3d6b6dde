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
  /// IPv4. Does not resolve host names: see `resolve`. Throws invalid_argument.
  endpoint(std::string_view address, std::uint16_t port);
  /// Address and port in one: "127.0.0.1:80", "[::1]:80", ":80". Throws invalid_argument.
  [[nodiscard]] static endpoint parse(std::string_view text);
  /// A local socket at `path`; a path that begins with '@' is in the abstract name space, without a file. Throws
  /// invalid_argument if it is empty, or longer than 107 bytes.
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

}  // namespace ramie::net
