// Which proxy a client asks for a URL.
#pragma once

#include "client/socks.hpp"
#include "wire/url.hpp"

#include <ramie/http/client.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::http {

struct proxy {
  url at;                     // its scheme is http, https or socks5
  std::string authorization;  // the value of proxy-authorization; empty: none
  socks_login login;

  [[nodiscard]] bool is_socks() const noexcept { return at.scheme == "socks5"; }
};

class proxy_rules {
 public:
  /// Throws invalid_argument, without naming a password.
  explicit proxy_rules(const proxy_options& o);
  /// Null: directly. Valid as long as these rules.
  [[nodiscard]] const proxy* find(const url& to) const noexcept;

 private:
  struct exception {
    std::string host, port;  // of a host and all below it; no port: all
    std::string network;     // 4 or 16 bytes, if it is an address or a network
    unsigned bits = 0;       // of it
  };
  [[nodiscard]] static bool fits(const exception& e, const url& to, std::string_view address) noexcept;

  std::optional<proxy> for_http_, for_https_;
  std::vector<exception> direct_;
  bool never_ = false;  // "*"
};

}  // namespace ramie::http
