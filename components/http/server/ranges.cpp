#include "server/ranges.hpp"

#include "wire/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace ramie::http {

namespace {

constexpr std::size_t ranges_most = 16;  // a guess

enum class meaning : unsigned char { part, nothing, broken };

/// Of "0-99", "100-", "-5".
meaning one_of(std::string_view text, std::uint64_t size, byte_range& into) noexcept {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return meaning::broken;
  const std::optional<std::uint64_t> first = parse_number(text.substr(0, dash)),
                                     last = parse_number(text.substr(dash + 1));
  const bool open_end = dash + 1 == text.size();
  if (dash == 0) {
    if (!last) return meaning::broken;
    if (*last == 0 || size == 0) return meaning::nothing;
    into.size = std::min(*last, size);
    into.first = size - into.size;
    return meaning::part;
  }
  if (!first || (!last && !open_end) || (last && *last < *first)) return meaning::broken;
  if (*first >= size) return meaning::nothing;
  into.first = *first;
  into.size = last && *last - *first < size - *first ? *last - *first + 1 : size - *first;
  return meaning::part;
}

/// Takes the place of the first of those that it overlaps or touches.
void add(byte_range r, std::vector<byte_range>& parts) {
  auto place = parts.end();
  for (auto at = parts.begin(); at != parts.end();) {
    const std::uint64_t end = at->first + at->size;
    if (end < r.first || r.first + r.size < at->first) {
      ++at;
      continue;
    }
    const std::uint64_t first = std::min(at->first, r.first);
    r = {first, std::max(end, r.first + r.size) - first};
    if (place == parts.end()) {
      place = at++;
    } else {
      at = parts.erase(at);  // behind `place`
    }
  }
  if (place == parts.end()) parts.push_back(r);
  else *place = r;
}

}  // namespace

wanted_ranges ranges_of(std::string_view text, std::uint64_t size) {
  if (text.size() < 6 || !same_name(text.substr(0, 6), "bytes=")) return {};
  wanted_ranges all{wanted_ranges::kind::nothing, {}};
  std::size_t count = 0;
  const bool broken = any_item(text.substr(6), [&](std::string_view item) {
    byte_range r;
    const meaning m = one_of(item, size, r);
    if (m == meaning::part) add(r, all.parts);
    return m == meaning::broken || ++count > ranges_most;
  });
  if (broken || count == 0) return {};
  // One that grew may reach another that stands before it, which was looked at too early.
  for (std::vector<byte_range> before; before.size() != all.parts.size();) {
    before = std::exchange(all.parts, {});
    for (const byte_range& r : before) add(r, all.parts);
  }
  if (!all.parts.empty()) all.what = wanted_ranges::kind::parts;
  return all;
}

}  // namespace ramie::http
