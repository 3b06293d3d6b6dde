#include "client/proxies.hpp"

#include "wire/text.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace ramie::http {

namespace {

std::string base64_of(const std::string& text) {
  std::vector<unsigned char> encoded(text.size() / 3 * 4 + 5);
  const int n = EVP_EncodeBlock(encoded.data(), reinterpret_cast<const unsigned char*>(text.data()),
                                static_cast<int>(text.size()));
  return {encoded.begin(), encoded.begin() + n};
}

std::optional<proxy> parsed(std::string text, const char* which) {
  if (text.empty()) return std::nullopt;
  const auto refuse = [&](const char* why) {
    throw invalid_argument{std::string{"ramie: http: proxy_options: "} + which + ": " + why};
  };
  std::string scheme = "http";
  if (const std::size_t end = text.find("://"); end != std::string::npos) {
    scheme = lowered(std::string_view{text}.substr(0, end));
    text.erase(0, end + 3);
  }
  if (scheme == "socks5h") scheme = "socks5";
  if (scheme != "http" && scheme != "https" && scheme != "socks5")
    refuse("the scheme has to be http, https, socks5 or socks5h: others are not known here");
  const std::size_t end = std::min(text.find('/'), text.size());
  std::string secret;
  if (const std::size_t at = text.substr(0, end).rfind('@'); at != std::string::npos) {
    const auto plain = percent_decoded(std::string_view{text}.substr(0, at));
    if (!plain) refuse("user and password are badly encoded");
    secret = *plain;
    text.erase(0, at + 1);
  }
  proxy p;
  try {
    p.at = parse_url((scheme == "https" ? "https://" : "http://") + text);
  } catch (const invalid_argument&) {
    refuse("that is no URL");
  }
  p.at.scheme = scheme;
  if (p.is_socks()) {
    const std::string host = text.substr(0, text.find('/'));
    const std::size_t bracket = host.find(']');
    if (host.find(':', bracket == std::string::npos ? 0 : bracket) == std::string::npos) p.at.port = "1080";
    const std::size_t colon = std::min(secret.find(':'), secret.size());
    p.login = {secret.substr(0, colon), secret.substr(std::min(colon + 1, secret.size()))};
    if (p.login.user.size() > 255 || p.login.password.size() > 255)
      refuse("SOCKS allows 255 bytes for a user and for a password");
    if (p.login.user.empty() && !secret.empty()) refuse("a password without a user");
    return p;
  }
  if (secret.find(':') == std::string::npos && !secret.empty()) secret += ':';
  if (!secret.empty()) p.authorization = "Basic " + base64_of(secret);
  return p;
}

std::string variable(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      return value;  // NOLINT(concurrency-mt-unsafe): no one sets them
  return {};
}

}  // namespace

proxy_options proxy_options::from_environment() {
  const std::string all = variable({"all_proxy", "ALL_PROXY"});
  proxy_options o{variable({"http_proxy"}), variable({"https_proxy", "HTTPS_PROXY"}), {}, {}};
  if (o.for_http.empty()) o.for_http = all;
  if (o.for_https.empty()) o.for_https = all;
  any_item(variable({"no_proxy", "NO_PROXY"}), [&](std::string_view item) {
    o.direct.emplace_back(item);
    return false;
  });
  o.direct.insert(o.direct.end(), {"localhost", "127.0.0.0/8", "::1"});
  return o;
}

proxy_rules::proxy_rules(const proxy_options& o)
    : for_http_{parsed(o.for_http, "for_http")}, for_https_{parsed(o.for_https, "for_https")} {
  for (const std::string& one : o.direct) {
    const std::string text = lowered(one);
    if (text == "*") never_ = true;
    exception e;
    const std::size_t slash = text.find('/');
    std::string address = text.substr(0, slash);
    const std::size_t bracket = address.find(']');
    if (const std::size_t colon = address.rfind(':');
        colon != std::string::npos && (bracket != std::string::npos ? colon > bracket : address.find(':') == colon)) {
      e.port = address.substr(colon + 1);
      address.resize(colon);
    }
    if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
    e.network = address_of(address);
    e.bits = static_cast<unsigned>(e.network.size() * 8);
    if (slash != std::string::npos) {
      const auto bits = parse_number(std::string_view{text}.substr(slash + 1));
      if (!bits || *bits > e.bits || e.network.empty())
        throw invalid_argument{"ramie: http: proxy_options: direct: \"" + text + "\" is no network"};
      e.bits = static_cast<unsigned>(*bits);
    }
    e.host = address.starts_with("*.") ? address.substr(2) : address.starts_with('.') ? address.substr(1) : address;
    if (!e.host.empty()) direct_.push_back(std::move(e));
  }
}

bool proxy_rules::fits(const exception& e, const url& to, std::string_view address) noexcept {
  if (!e.port.empty() && e.port != to.port) return false;
  if (!e.network.empty()) {
    if (address.size() != e.network.size()) return false;
    for (unsigned i = 0; i < e.bits; ++i)
      if (((address[i / 8] ^ e.network[i / 8]) >> (7 - i % 8) & 1) != 0) return false;
    return true;
  }
  const std::string_view host = to.host;
  if (host.size() < e.host.size() || !same_name(host.substr(host.size() - e.host.size()), e.host)) return false;
  return host.size() == e.host.size() || host[host.size() - e.host.size() - 1] == '.';
}

const proxy* proxy_rules::find(const url& to) const noexcept {
  const std::optional<proxy>& p = to.scheme == "https" ? for_https_ : for_http_;
  if (!p || never_) return nullptr;
  const std::string address = address_of(to.host);
  for (const exception& e : direct_)
    if (fits(e, to, address)) return nullptr;
  return &*p;
}

}  // namespace ramie::http
