// What a client keeps of servers' cookies (RFC 6265, with what browsers have added since: names that begin with
// "__Host-" or "__Secure-", and no "http" that touches a secure cookie).
#pragma once

#include "wire/url.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace ramie::http {

/// Any thread. Nothing suspends.
class cookie_jar {
 public:
  /// The value of one set-cookie of a response from there. What is broken or not allowed is ignored, as the RFC wants
  /// it.
  void take(const url& from, std::string_view set_cookie, std::int64_t now_s);
  /// The value of the header cookie for a request; "": none.
  [[nodiscard]] std::string header_for(const url& to, std::int64_t now_s);
  [[nodiscard]] std::size_t size() const;

 private:
  struct cookie {
    std::string value;
    std::int64_t expires_s = 0;
    std::uint64_t made = 0, used = 0;  // by `clock_`
    bool host_only = false, secure = false;
  };
  using key = std::tuple<std::string, std::string, std::string>;  // domain, path, name
  struct parsed;

  void make_room(const std::string& domain, std::int64_t now_s);

  mutable std::mutex lock_;
  std::map<key, cookie> all_;
  std::uint64_t clock_ = 0;
};

/// RFC 6265, 5.1.1: what servers send as a date; nullopt if it is none. Seconds since 1970.
[[nodiscard]] std::optional<std::int64_t> parse_cookie_date(std::string_view text) noexcept;

}  // namespace ramie::http
