// Where a client connects to.
#pragma once

#include <ramie/net.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ramie::http {

struct url {
  std::string scheme, host, target;  // in lower case; without brackets; with the query, "/" at least
  std::string port;
  [[nodiscard]] std::string authority() const;  // the Host header: without the port that goes without saying
};

/// "SCHEME://HOST[:PORT][/PATH][?QUERY][#IGNORED]". Throws invalid_argument: no such scheme among ws, wss, http, https;
/// a user or password; a character that may not be there.
[[nodiscard]] url parse_url(std::string_view text);

/// What a reference, as in Location, means at `from`: RFC 3986, 5.2, without the fragment. Perhaps no URL.
[[nodiscard]] std::string resolved(const url& from, std::string_view reference);

/// Of an address in text, without brackets: its 4 or 16 bytes; "" if it is none.
[[nodiscard]] std::string address_of(const std::string& host);

/// Tries all addresses of the host, in order. Suspends. Throws io_error of the last one, `cancelled`.
[[nodiscard]] net::tcp_stream connect_to(const url& to);

}  // namespace ramie::http
