// SOCKS 5 (RFC 1928), with user and password (RFC 1929).
#pragma once

#include <ramie/net.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ramie::http {

struct socks_login {
  std::string user, password;  // at most 255 bytes each; no user: none is offered
};

/// Asks the proxy at the other end of `through` to connect to the host, whose name the proxy resolves. Then `through`
/// leads there. Suspends. Throws io_error (EPROTO, with what the proxy says), `cancelled`, invalid_argument (a name of
/// more than 255 bytes).
void socks_connect(net::any_stream& through, std::string_view host, std::uint16_t port, const socks_login& login);

}  // namespace ramie::http
