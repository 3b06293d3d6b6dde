#include <ramie/net/endpoint.hpp>

#include <ramie/base/error.hpp>
#include <ramie/poll/system.hpp>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace ramie::net {

namespace {

std::string quoted(std::string_view text) { return "\"" + std::string{text} + "\""; }

[[noreturn]] void refuse_address(std::string_view address) {
  throw invalid_argument{"ramie: endpoint: " + quoted(address) +
                         " is not a numeric IPv4 or IPv6 address; use ramie::net::resolve for host names"};
}

template <class Address>
const Address& as(const sockaddr_storage& s) noexcept {
  return reinterpret_cast<const Address&>(s);
}
template <class Address>
Address& as(sockaddr_storage& s) noexcept {
  return reinterpret_cast<Address&>(s);
}

std::uint16_t to_port(std::string_view digits, std::string_view all) {
  std::uint16_t port = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (code != std::errc{} || end != digits.data() + digits.size())
    throw invalid_argument{"ramie: endpoint: the port of " + quoted(all) + " is not a number from 0 to 65535"};
  return port;
}

}  // namespace

endpoint::endpoint(std::string_view address, int port) {
  detail::check_no_zero("endpoint: the address", address);
  if (port < 0 || port > 65535)
    throw invalid_argument{"ramie: endpoint: port " + std::to_string(port) + "; it must be 0 to 65535"};
  const std::string text{address == "*" || address.empty() ? std::string_view{"::"} : address};
  if (auto& v4 = as<sockaddr_in>(storage_); ::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    size_ = sizeof v4;
    return;
  }
  auto& v6 = as<sockaddr_in6>(storage_);
  const std::size_t zone = text.find('%');
  if (::inet_pton(AF_INET6, text.substr(0, zone).c_str(), &v6.sin6_addr) != 1) refuse_address(address);
  if (zone != std::string::npos) {
    v6.sin6_scope_id = ::if_nametoindex(text.c_str() + zone + 1);
    if (v6.sin6_scope_id == 0) refuse_address(address);
  }
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  size_ = sizeof v6;
}

endpoint endpoint::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    throw invalid_argument{"ramie: endpoint: " + quoted(text) + " has no port; expected a form like \"127.0.0.1:80\""};
  std::string_view host = text.substr(0, colon);
  const std::uint16_t port = to_port(text.substr(colon + 1), text);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    throw invalid_argument{"ramie: endpoint: " + quoted(text) +
                           ": an IPv6 address with a port is written \"[::1]:80\""};
  return {host, port};
}

endpoint endpoint::local(std::string_view path) {
  endpoint e;
  auto& un = as<sockaddr_un>(e.storage_);
  if (path.empty() || path.size() >= sizeof un.sun_path)
    throw invalid_argument{"ramie: endpoint: the path of a local socket has " + std::to_string(path.size()) +
                           " bytes; it must be 1 to " + std::to_string(sizeof un.sun_path - 1)};
  if (path.front() != '@') detail::check_no_zero("endpoint: the path of a local socket", path);
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  const bool abstract = path.front() == '@';
  if (abstract) un.sun_path[0] = '\0';
  e.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (abstract ? 0 : 1));
  return e;
}

endpoint endpoint::of(const sockaddr* address, socklen_t size) {
  endpoint e;
  if (size > sizeof e.storage_)
    throw invalid_argument{"ramie: endpoint: an address of " + std::to_string(size) + " bytes; at most " +
                           std::to_string(sizeof e.storage_) + " are possible"};
  std::memcpy(&e.storage_, address, size);
  e.size_ = size;
  return e;
}

std::uint16_t endpoint::port() const noexcept {
  if (family() == AF_INET) return ntohs(as<sockaddr_in>(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(as<sockaddr_in6>(storage_).sin6_port);
  return 0;
}

std::string endpoint::address() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &as<sockaddr_in>(storage_).sin_addr, text, sizeof text);
    return text;
  }
  if (family() == AF_INET6) {
    const auto& v6 = as<sockaddr_in6>(storage_);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    char zone[IF_NAMESIZE] = "";
    if (v6.sin6_scope_id == 0 || ::if_indextoname(v6.sin6_scope_id, zone) == nullptr) return text;
    return std::string{text} + "%" + zone;
  }
  constexpr std::size_t head = offsetof(sockaddr_un, sun_path);
  if (family() != AF_UNIX || size_ <= head) return {};
  const char* path = as<sockaddr_un>(storage_).sun_path;
  if (path[0] != '\0') return {path, ::strnlen(path, size_ - head)};
  return "@" + std::string{path + 1, size_ - head - 1};
}

std::string endpoint::to_string() const {
  switch (family()) {
    case AF_INET: return address() + ":" + std::to_string(port());
    case AF_INET6: return "[" + address() + "]:" + std::to_string(port());
    case AF_UNIX: return "unix:" + address();
    default: return "-";
  }
}

std::int64_t detail::socket_to_bind(endpoint& at, int type) {
  const system::result fd = system::socket(at.family(), type, 0);
  if (fd != -EAFNOSUPPORT || at.family() != AF_INET6 || !(at == endpoint{"::", at.port()})) return fd;
  at = endpoint{"0.0.0.0", at.port()};
  return system::socket(AF_INET, type, 0);
}

bool operator==(const endpoint& a, const endpoint& b) noexcept {
  return a.size_ == b.size_ && std::memcmp(&a.storage_, &b.storage_, a.size_) == 0;
}

}  // namespace ramie::net
