#include "wire/url.hpp"

#include "wire/text.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>
#include <vector>

namespace ramie::http {

namespace {

std::string_view usual_port(std::string_view scheme) noexcept {
  if (scheme == "http" || scheme == "ws") return "80";
  return scheme == "https" || scheme == "wss" ? "443" : "";
}

[[noreturn]] void refuse(std::string_view text, const char* why) {
  throw invalid_argument{"ramie: http: \"" + std::string{text} + "\" is no URL that is known here: " + why};
}

/// RFC 3986, 3.1.
bool is_scheme(std::string_view s) noexcept {
  const auto is_letter = [](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  return !s.empty() && is_letter(s.front()) && std::all_of(s.begin(), s.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

/// RFC 3986, 5.2.4, of a path that begins with '/'.
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  for (bool is_last = false; !is_last;) {
    path.remove_prefix(1);
    const std::size_t end = path.find('/');
    is_last = end == std::string_view::npos;
    const std::string_view segment = path.substr(0, end);
    if (segment == ".." && !kept.empty()) kept.pop_back();
    if (segment != "." && segment != "..") kept.push_back(segment);
    else if (is_last) kept.emplace_back();  // so that it ends with '/'
    path.remove_prefix(std::min(end, path.size()));
  }
  std::string all;
  for (const std::string_view segment : kept) (all += '/') += segment;
  return all;
}

}  // namespace

std::string url::authority() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == usual_port(scheme) ? name : name + ":" + port;
}

std::string resolved(const url& from, std::string_view reference) {
  reference = reference.substr(0, reference.find('#'));
  const std::size_t question = std::min(reference.find('?'), reference.size());
  const std::string query{reference.substr(question)};
  std::string path{reference.substr(0, question)}, base = from.scheme + ":";
  const std::size_t delimiter = path.find_first_of(":/");
  const bool is_absolute =
      delimiter != std::string::npos && path[delimiter] == ':' && is_scheme(path.substr(0, delimiter));
  if (is_absolute) {
    base = path.substr(0, delimiter + 1);
    path.erase(0, delimiter + 1);
    if (!path.starts_with("//")) return base + path + query;  // of a kind that is not known here
  }
  if (path.starts_with("//")) {
    const std::size_t end = std::min(path.find('/', 2), path.size());
    base += path.substr(0, end);
    path.erase(0, end);
    return base + (path.empty() ? path : without_dots(path)) + query;
  }
  base += "//" + from.authority();
  if (reference.empty()) return base + from.target;
  const std::string from_path = from.target.substr(0, from.target.find('?'));
  if (path.empty()) return base + from_path + query;
  if (!path.starts_with('/')) path.insert(0, from_path, 0, from_path.rfind('/') + 1);
  return base + without_dots(path) + query;
}

std::string address_of(const std::string& host) {
  std::array<char, 16> bytes;
  if (::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1) return {bytes.data(), 4};
  if (::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return {bytes.data(), 16};
  return {};
}

url parse_url(std::string_view text) {
  url u;
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 127)
      refuse(text, "it has a character that has to be encoded");
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) refuse(text, "it has no scheme");
  u.scheme = lowered(text.substr(0, scheme));
  if (usual_port(u.scheme).empty()) refuse(text, "its scheme is none of http, https, ws, wss");
  std::string_view rest = text.substr(scheme + 3);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, end);
  u.target = rest.substr(end);
  if (!u.target.starts_with('/')) u.target.insert(0, "/");
  if (authority.find('@') != std::string_view::npos) refuse(text, "it has a user");
  u.port = usual_port(u.scheme);
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) refuse(text, "a bracket is open");
  if (const std::size_t colon = authority.find(':', bracket); colon != std::string_view::npos) {
    u.port = authority.substr(colon + 1);
    const auto number = parse_number(u.port);
    if (!number || *number == 0 || *number > 65535) refuse(text, "its port is none from 1 to 65535");
    authority = authority.substr(0, colon);
  }
  u.host = bracket != 0 ? authority.substr(1, bracket - 1) : authority;
  if (u.host.empty()) refuse(text, "it has no host");
  return u;
}

net::tcp_stream connect_to(const url& to) {
  std::exception_ptr last;
  for (const net::endpoint& at : net::resolve(to.host, to.port)) {
    try {
      return net::tcp_stream::connect(at);
    } catch (const net::io_error&) {
      last = std::current_exception();
    }
  }
  if (!last) throw net::io_error{"resolve " + to.host, std::make_error_code(std::errc::address_not_available)};
  std::rethrow_exception(last);
}

}  // namespace ramie::http
