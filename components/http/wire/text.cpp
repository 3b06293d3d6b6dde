#include "wire/text.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <utility>

namespace ramie::http {

bool is_token(std::string_view s) noexcept {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
  });
}

bool is_field_value(std::string_view s) noexcept {
  bool broken = trimmed(s).size() != s.size();
  for (const char c : s)  // without an early end, so that it is done many bytes at a time
    broken |= (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 127;
  return !broken;
}

bool has_whole_lines(std::string_view head) noexcept {
  // A few passes that the compiler and the C library do many bytes at a time.
  if (head.find('\0') != std::string_view::npos) return false;
  std::ptrdiff_t ends = 0;
  for (std::size_t i = head.find('\n'); i != std::string_view::npos; i = head.find('\n', i + 1), ++ends) {
    if (i == 0 || head[i - 1] != '\r') return false;
    if (i + 1 < head.size() && (head[i + 1] == ' ' || head[i + 1] == '\t')) return false;
  }
  return std::count(head.begin(), head.end(), '\r') == ends;  // one that is alone
}

bool is_authority(std::string_view s) noexcept {
  const auto is_alphanumeric = [](char c) { return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z'); };
  const auto is_hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f'); };
  std::size_t end = 0;
  if (s.starts_with('[')) {
    end = s.find(']');
    if (end == std::string_view::npos || end == 1) return false;
    for (const char c : s.substr(1, end - 1))
      if (!is_hexadecimal(c) && c != ':' && c != '.') return false;
    ++end;
  } else {
    // No ',': it is possible in a name, but in none that is resolved, and a list is what others make of it.
    for (; end < s.size() && s[end] != ':'; ++end) {
      if (is_alphanumeric(s[end]) || std::string_view{"-._~!$&'()*+;="}.find(s[end]) != std::string_view::npos)
        continue;
      if (s[end] != '%' || end + 2 >= s.size() || !is_hexadecimal(s[end + 1]) || !is_hexadecimal(s[end + 2]))
        return false;
    }
  }
  s.remove_prefix(end);
  if (s.empty()) return true;
  if (s.front() != ':') return false;
  return s.size() == 1 || parse_number(s.substr(1)).value_or(UINT64_MAX) <= 65535;
}

std::string_view trimmed(std::string_view s) noexcept {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::optional<std::uint64_t> parse_number(std::string_view s) noexcept {
  std::uint64_t n = 0;
  if (s.empty() || s.front() < '0' || s.front() > '9') return std::nullopt;
  const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (code != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return n;
}

std::optional<std::string> percent_decoded(std::string_view s, bool plus_is_space) {
  std::string plain;
  plain.reserve(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '+' && plus_is_space) {
      plain += ' ';
    } else if (s[i] != '%') {
      plain += s[i];
    } else {
      unsigned value = 0;
      if (i + 2 >= s.size()) return std::nullopt;
      const auto [end, code] = std::from_chars(&s[i + 1], &s[i + 1] + 2, value, 16);
      if (code != std::errc{} || end != &s[i + 1] + 2) return std::nullopt;
      plain += static_cast<char>(value);
      i += 2;
    }
  }
  return plain;
}

std::string_view reason_of(int status) noexcept {
  static constexpr std::pair<int, std::string_view> all[] = {{100, "Continue"},
                                                             {101, "Switching Protocols"},
                                                             {200, "OK"},
                                                             {201, "Created"},
                                                             {202, "Accepted"},
                                                             {204, "No Content"},
                                                             {206, "Partial Content"},
                                                             {301, "Moved Permanently"},
                                                             {302, "Found"},
                                                             {303, "See Other"},
                                                             {304, "Not Modified"},
                                                             {307, "Temporary Redirect"},
                                                             {308, "Permanent Redirect"},
                                                             {400, "Bad Request"},
                                                             {401, "Unauthorized"},
                                                             {403, "Forbidden"},
                                                             {404, "Not Found"},
                                                             {405, "Method Not Allowed"},
                                                             {408, "Request Timeout"},
                                                             {409, "Conflict"},
                                                             {411, "Length Required"},
                                                             {412, "Precondition Failed"},
                                                             {413, "Content Too Large"},
                                                             {414, "URI Too Long"},
                                                             {415, "Unsupported Media Type"},
                                                             {416, "Range Not Satisfiable"},
                                                             {417, "Expectation Failed"},
                                                             {421, "Misdirected Request"},
                                                             {422, "Unprocessable Content"},
                                                             {426, "Upgrade Required"},
                                                             {429, "Too Many Requests"},
                                                             {431, "Request Header Fields Too Large"},
                                                             {500, "Internal Server Error"},
                                                             {501, "Not Implemented"},
                                                             {502, "Bad Gateway"},
                                                             {503, "Service Unavailable"},
                                                             {504, "Gateway Timeout"},
                                                             {505, "HTTP Version Not Supported"}};
  for (const auto& [code, text] : all)
    if (code == status) return text;
  return "Status";
}

namespace {

constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";

}  // namespace

std::string date_of(std::int64_t since_1970_s) {
  static constexpr std::string_view days = "SunMonTueWedThuFriSat";
  const auto t = static_cast<std::time_t>(since_1970_s);
  std::tm parts{};
  ::gmtime_r(&t, &parts);
  std::array<char, 64> text{};
  const int n = std::snprintf(text.data(), text.size(), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
                              days.data() + std::ptrdiff_t{3} * parts.tm_wday, parts.tm_mday,
                              months.data() + std::ptrdiff_t{3} * parts.tm_mon, parts.tm_year + 1900, parts.tm_hour,
                              parts.tm_min, parts.tm_sec);
  return {text.data(), static_cast<std::size_t>(n)};
}

std::optional<std::int64_t> parse_date(std::string_view s) noexcept {
  // The words and numbers of all three, in the order of the first: day month year hour minute second.
  std::array<std::string_view, 8> parts;
  std::size_t count = 0;
  while (!s.empty()) {
    const std::size_t begin = s.find_first_not_of(" ,-:");
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(s.find_first_of(" ,-:", begin), s.size());
    if (count == parts.size()) return std::nullopt;
    parts[count++] = s.substr(begin, end - begin);
    s.remove_prefix(end);
  }
  const bool ends_with_zone =
      count == 8 && parts[7] == "GMT";  // "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 ..."
  if (count == 7) {                     // "Sun Nov  6 08:49:37 1994"
    std::swap(parts[1], parts[2]);
    const std::string_view year = parts[6];
    for (std::size_t i = 6; i > 3; --i) parts[i] = parts[i - 1];
    parts[3] = year;
  } else if (!ends_with_zone) {
    return std::nullopt;
  }
  const std::size_t month = months.find(parts[2]);
  const auto day = parse_number(parts[1]), year = parse_number(parts[3]), hour = parse_number(parts[4]),
             minute = parse_number(parts[5]), second = parse_number(parts[6]);
  if (parts[2].size() != 3 || month == std::string_view::npos || month % 3 != 0 || !day || !year || !hour || !minute ||
      !second || *day == 0 || *day > 31 || *hour > 23 || *minute > 59 || *second > 60 || *year > 9999)
    return std::nullopt;
  std::tm t{};
  // Two digits: of the last fifty years, or the next fifty; the form was given up long before 2070.
  t.tm_year = static_cast<int>(parts[3].size() == 2 ? (*year < 70 ? *year + 100 : *year) : *year - 1900);
  t.tm_mon = static_cast<int>(month / 3);
  t.tm_mday = static_cast<int>(*day);
  t.tm_hour = static_cast<int>(*hour);
  t.tm_min = static_cast<int>(*minute);
  t.tm_sec = static_cast<int>(*second);
  return ::timegm(&t);
}

// Not inlined: a fiber may run on another thread after its next wait, and the address would be that of the first.
[[gnu::noinline]] std::string_view date_now() {
  thread_local std::int64_t made_at = -1;
  thread_local std::string text;
  std::timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != made_at) {
    text = date_of(now.tv_sec);
    made_at = now.tv_sec;
  }
  return text;
}

std::string_view type_of_file(std::string_view path) noexcept {
  static constexpr std::pair<std::string_view, std::string_view> all[] = {{"html", "text/html; charset=utf-8"},
                                                                          {"htm", "text/html; charset=utf-8"},
                                                                          {"css", "text/css; charset=utf-8"},
                                                                          {"js", "text/javascript; charset=utf-8"},
                                                                          {"mjs", "text/javascript; charset=utf-8"},
                                                                          {"json", "application/json"},
                                                                          {"txt", "text/plain; charset=utf-8"},
                                                                          {"md", "text/plain; charset=utf-8"},
                                                                          {"csv", "text/csv; charset=utf-8"},
                                                                          {"xml", "application/xml"},
                                                                          {"svg", "image/svg+xml"},
                                                                          {"png", "image/png"},
                                                                          {"jpg", "image/jpeg"},
                                                                          {"jpeg", "image/jpeg"},
                                                                          {"gif", "image/gif"},
                                                                          {"webp", "image/webp"},
                                                                          {"ico", "image/x-icon"},
                                                                          {"pdf", "application/pdf"},
                                                                          {"wasm", "application/wasm"},
                                                                          {"woff2", "font/woff2"},
                                                                          {"mp4", "video/mp4"},
                                                                          {"gz", "application/gzip"},
                                                                          {"zip", "application/zip"}};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
    for (const auto& [end, type] : all)
      if (same_name(name.substr(dot + 1), end)) return type;
  return "application/octet-stream";
}

std::optional<std::string> parameter_of(std::string_view value, std::string_view name) {
  std::optional<std::string> found;
  any_item(
      value,
      [&](std::string_view item) {
        const std::size_t is = item.find('=');
        if (is == std::string_view::npos || !same_name(trimmed(item.substr(0, is)), name)) return false;
        std::string_view text = trimmed(item.substr(is + 1));
        if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
        found = std::string{text};
        return true;
      },
      ';');
  return found;
}

}  // namespace ramie::http
