// The small grammar of HTTP.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ramie::http {

[[nodiscard]] constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
[[nodiscard]] inline std::string lowered(std::string_view s) {
  std::string all{s};
  std::transform(all.begin(), all.end(), all.begin(), lower);
  return all;
}
[[nodiscard]] inline bool same_name(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}
/// RFC 9110, 5.6.2.
[[nodiscard]] bool is_token(std::string_view s) noexcept;
/// RFC 9110, 5.5: no control character but tab, and no space at either end.
[[nodiscard]] bool is_field_value(std::string_view s) noexcept;
/// Of a head: lines end with CRLF, nothing else does, none begins with a space (folding), and there is no NUL.
[[nodiscard]] bool has_whole_lines(std::string_view head) noexcept;
/// RFC 3986, 3.2: a name or an address without a user, and a port if there is a ':'. It may be empty.
[[nodiscard]] bool is_authority(std::string_view s) noexcept;
[[nodiscard]] std::string_view trimmed(std::string_view s) noexcept;
/// Calls f(item) for each item of a list with commas, until f returns true; returns whether one did.
template <class F>
bool any_item(std::string_view list, F f, char separator = ',') {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(separator), list.size());
    if (const std::string_view item = trimmed(list.substr(0, end)); !item.empty() && f(item)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}
/// Digits only, no sign.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view s) noexcept;
/// "%41+" as "A+", or with `plus_is_space` as "A "; nullopt if it is broken.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view s, bool plus_is_space = false);
[[nodiscard]] std::string_view reason_of(int status) noexcept;
/// "Sun, 06 Nov 1994 08:49:37 GMT"
[[nodiscard]] std::string date_of(std::int64_t since_1970_s);
/// Seconds since 1970, of any of the three forms (RFC 9110, 5.6.7); nullopt if it is none of them.
[[nodiscard]] std::optional<std::int64_t> parse_date(std::string_view s) noexcept;
/// Of now; made once a second in each thread. Valid until the calling fiber suspends.
[[nodiscard]] std::string_view date_now();
/// By the end of the name, as ".html".
[[nodiscard]] std::string_view type_of_file(std::string_view path) noexcept;

/// The value of a parameter behind a header's ';': of `boundary` in "form-data; boundary=x".
[[nodiscard]] std::optional<std::string> parameter_of(std::string_view value, std::string_view name);

}  // namespace ramie::http
