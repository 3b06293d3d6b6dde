#include "client/socks.hpp"

#include "wire/url.hpp"

#include <array>
#include <cerrno>
#include <system_error>

namespace ramie::http {

namespace {

constexpr unsigned char version = 5, no_login = 0, by_password = 2;

[[noreturn]] void refuse(const std::string& why) {
  throw net::io_error{"SOCKS proxy: " + why, std::error_code{EPROTO, std::system_category()}};
}

template <std::size_t N>
std::array<unsigned char, N> read_exactly(net::any_stream& from) {
  std::array<unsigned char, N> all;
  for (std::size_t at = 0; at < N;) {
    const std::size_t n = from.read_some(std::as_writable_bytes(std::span{all}.subspan(at)));
    if (n == 0) throw net::io_error{"SOCKS proxy", net::io_errc::unexpected_end};
    at += n;
  }
  return all;
}

void add(std::string& to, unsigned char c) { to += static_cast<char>(c); }
void add_with_length(std::string& to, std::string_view text) {
  add(to, static_cast<unsigned char>(text.size()));
  to += text;
}

/// RFC 1928, 6.
const char* meaning_of(unsigned char reply) noexcept {
  switch (reply) {
    case 1: return "a failure of its own";
    case 2: return "its rules do not allow that";
    case 3: return "the network cannot be reached";
    case 4: return "the host cannot be reached";
    case 5: return "the host refuses the connection";
    case 6: return "the connection took too long";
    case 7: return "it knows no such command";
    case 8: return "it knows no such kind of address";
    default: return "a reply that RFC 1928 does not know";
  }
}

void log_in(net::any_stream& through, const socks_login& login) {
  std::string hello;
  add(hello, version);
  add(hello, login.user.empty() ? 1 : 2);
  add(hello, no_login);
  if (!login.user.empty()) add(hello, by_password);
  through.write_all(hello);
  const auto [spoken, method] = read_exactly<2>(through);
  if (spoken != version) refuse("it does not speak version 5");
  if (method == no_login) return;
  if (method != by_password || login.user.empty())
    refuse(login.user.empty() ? "it wants a user and a password" : "it takes none of the ways to log in");
  std::string secret;
  add(secret, 1);  // of RFC 1929
  add_with_length(secret, login.user);
  add_with_length(secret, login.password);
  through.write_all(secret);
  if (read_exactly<2>(through)[1] != 0) refuse("it does not accept the user and password");
}

}  // namespace

void socks_connect(net::any_stream& through, std::string_view host, std::uint16_t port, const socks_login& login) {
  if (host.size() > 255) throw invalid_argument{"ramie: http: client: the host's name is too long for a SOCKS proxy"};
  log_in(through, login);
  std::string wanted;
  add(wanted, version);
  add(wanted, 1);  // connect
  add(wanted, 0);
  if (const std::string address = address_of(std::string{host}); !address.empty()) {
    add(wanted, address.size() == 4 ? 1 : 4);
    wanted += address;
  } else {
    add(wanted, 3);
    add_with_length(wanted, host);
  }
  add(wanted, static_cast<unsigned char>(port >> 8));
  add(wanted, static_cast<unsigned char>(port & 0xff));
  through.write_all(wanted);
  const auto [spoken, reply, reserved, kind] = read_exactly<4>(through);
  if (spoken != version || reserved != 0) refuse("its reply is broken");
  if (reply != 0) refuse(meaning_of(reply));
  // The address that it connected from is of no use here.
  std::size_t left = 2;
  if (kind == 1) left += 4;
  else if (kind == 4) left += 16;
  else if (kind == 3) left += read_exactly<1>(through)[0];
  else refuse("its reply is broken");
  for (; left > 0; --left) static_cast<void>(read_exactly<1>(through));
}

}  // namespace ramie::http
