#include "client/cookies.hpp"

#include "wire/text.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

namespace ramie::http {

namespace {

// At least what RFC 6265, 6.1 wants.
constexpr std::size_t bytes_most = 4096, of_domain_most = 50, all_most = 3000;
constexpr std::int64_t forever = std::numeric_limits<std::int64_t>::max();

/// 5.1.3.
bool is_in_domain(const std::string& host, std::string_view domain) {
  if (host == domain) return true;
  return host.size() > domain.size() && host.ends_with(domain) && host[host.size() - domain.size() - 1] == '.' &&
         address_of(host).empty();
}

std::string_view path_of(const url& u) noexcept { return std::string_view{u.target}.substr(0, u.target.find('?')); }

/// 5.1.4.
std::string usual_path(const url& u) {
  const std::string_view path = path_of(u);
  const std::size_t last = path.rfind('/');
  return last == 0 || last == std::string_view::npos ? "/" : std::string{path.substr(0, last)};
}
bool is_in_path(std::string_view asked, std::string_view path) noexcept {
  return asked.starts_with(path) && (asked.size() == path.size() || path.ends_with('/') || asked[path.size()] == '/');
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// "12:34:56", with what is not a digit behind it.
std::optional<std::int64_t> time_of_day(std::string_view t) noexcept {
  std::array<int, 3> parts{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (i > 0) {
      if (at >= t.size() || t[at] != ':') return std::nullopt;
      ++at;
    }
    const std::size_t begin = at;
    while (at < t.size() && is_digit(t[at]) && at - begin < 2) parts[i] = parts[i] * 10 + (t[at++] - '0');
    if (at == begin) return std::nullopt;
  }
  if (at < t.size() && is_digit(t[at])) return std::nullopt;
  if (parts[0] > 23 || parts[1] > 59 || parts[2] > 59) return std::nullopt;
  return parts[0] * 3600 + parts[1] * 60 + parts[2];
}

/// The number that a token begins with, of so many digits.
std::optional<int> number_of(std::string_view t, std::size_t fewest, std::size_t most) noexcept {
  std::size_t n = 0;
  int value = 0;
  for (; n < t.size() && is_digit(t[n]) && n <= most; ++n) value = value * 10 + (t[n] - '0');
  if (n < fewest || n > most) return std::nullopt;
  return value;
}

std::optional<unsigned> month_of(std::string_view t) noexcept {
  constexpr std::string_view all = "janfebmaraprmayjunjulaugsepoctnovdec";
  if (t.size() < 3) return std::nullopt;
  for (std::size_t m = 0; m < 12; ++m)
    if (same_name(t.substr(0, 3), all.substr(m * 3, 3))) return static_cast<unsigned>(m + 1);
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_cookie_date(std::string_view text) noexcept {
  const auto is_delimiter = [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u == 9 || (u >= 0x20 && u <= 0x2f) || (u >= 0x3b && u <= 0x40) || (u >= 0x5b && u <= 0x60) ||
           (u >= 0x7b && u <= 0x7e);
  };
  std::optional<std::int64_t> time;
  std::optional<int> day, year;
  std::optional<unsigned> month;
  while (!text.empty()) {
    const auto begin = std::ranges::find_if_not(text, is_delimiter);
    const auto end = std::find_if(begin, text.end(), is_delimiter);
    const std::string_view token{begin, end};
    text = {end, text.end()};
    if (token.empty()) break;
    if (!time && (time = time_of_day(token))) continue;
    if (!day && (day = number_of(token, 1, 2))) continue;
    if (!month && (month = month_of(token))) continue;
    if (!year) year = number_of(token, 2, 4);
  }
  if (!time || !day || !month || !year) return std::nullopt;
  if (*year >= 70 && *year <= 99) *year += 1900;
  else if (*year <= 69) *year += 2000;
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{*month},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (*year < 1601 || !date.ok()) return std::nullopt;
  return std::chrono::sys_days{date}.time_since_epoch().count() * std::int64_t{86400} + *time;
}

/// One set-cookie, as 5.2 reads it.
struct cookie_jar::parsed {
  std::string name, value, domain, path;
  std::optional<std::int64_t> expires_s, max_age_s;
  bool secure = false;

  static std::optional<parsed> of(std::string_view text) {
    parsed p;
    std::size_t end = std::min(text.find(';'), text.size());
    const std::string_view pair = text.substr(0, end);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    p.name = trimmed(pair.substr(0, equals));
    p.value = trimmed(pair.substr(equals + 1));
    if (p.name.empty() || p.name.size() + p.value.size() > bytes_most) return std::nullopt;
    while (end < text.size()) {
      text.remove_prefix(end + 1);
      end = std::min(text.find(';'), text.size());
      p.attribute(text.substr(0, end));
    }
    return p;
  }

 private:
  void attribute(std::string_view text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string_view what = trimmed(text.substr(0, equals));
    std::string_view with = trimmed(text.substr(std::min(equals + 1, text.size())));
    if (same_name(what, "secure")) secure = true;
    if (same_name(what, "expires")) {
      if (const auto date = parse_cookie_date(with)) expires_s = date;
    } else if (same_name(what, "max-age")) {
      const bool past = with.starts_with('-');
      if (past) with.remove_prefix(1);
      if (const bool digits = !with.empty() && std::ranges::all_of(with, is_digit); digits)
        max_age_s = past ? 0
                         : static_cast<std::int64_t>(
                               std::min<std::uint64_t>(parse_number(with).value_or(UINT64_MAX), INT32_MAX));
    } else if (same_name(what, "domain")) {
      if (with.starts_with('.')) with.remove_prefix(1);
      domain = lowered(with);
    } else if (same_name(what, "path")) {
      path = with.starts_with('/') ? with : std::string_view{};
    }
  }
};

void cookie_jar::take(const url& from, std::string_view set_cookie, std::int64_t now_s) {
  const auto p = parsed::of(set_cookie);
  if (!p) return;
  const std::string host = lowered(from.host);
  cookie c;
  std::string domain = p->domain;
  // A name of one label would be for all hosts below it: "com". Larger public suffixes are not known here.
  if (domain.find('.') == std::string::npos && domain == host) domain.clear();
  c.host_only = domain.empty();
  if (c.host_only) domain = host;
  else if (domain.find('.') == std::string::npos || !is_in_domain(host, domain)) return;
  const std::string path = p->path.empty() ? usual_path(from) : p->path;
  const bool is_secure = from.scheme == "https";
  if (p->secure && !is_secure) return;
  if (p->name.starts_with("__Secure-") && !p->secure) return;
  if (p->name.starts_with("__Host-") && (!p->secure || !c.host_only || p->path != "/")) return;
  c.value = p->value;
  c.secure = p->secure;
  c.expires_s = p->max_age_s ? now_s + *p->max_age_s : p->expires_s.value_or(forever);

  const std::lock_guard locked{lock_};
  if (!is_secure)
    for (const auto& [k, other] : all_)
      if (other.secure && std::get<2>(k) == p->name && is_in_path(path, std::get<1>(k)) &&
          (is_in_domain(std::get<0>(k), domain) || is_in_domain(domain, std::get<0>(k))))
        return;
  const key at{domain, path, p->name};
  const auto old = all_.find(at);
  c.made = c.used = ++clock_;
  if (old != all_.end()) c.made = old->second.made;
  if (c.expires_s <= now_s) {
    if (old != all_.end()) all_.erase(old);
    return;
  }
  if (old == all_.end()) make_room(domain, now_s);
  all_[at] = std::move(c);
}

/// 5.3: what has expired goes first, then of a domain that has many, then of all, what was not used for the longest
/// time.
void cookie_jar::make_room(const std::string& domain, std::int64_t now_s) {
  const auto of_domain = [&](const auto& one) { return std::get<0>(one.first) == domain; };
  const auto drop_oldest = [&](auto which) {
    auto oldest = all_.end();
    for (auto i = all_.begin(); i != all_.end(); ++i)
      if (which(*i) && (oldest == all_.end() || i->second.used < oldest->second.used)) oldest = i;
    if (oldest != all_.end()) all_.erase(oldest);
  };
  std::erase_if(all_, [&](const auto& one) { return one.second.expires_s <= now_s; });
  if (static_cast<std::size_t>(std::ranges::count_if(all_, of_domain)) >= of_domain_most) drop_oldest(of_domain);
  else if (all_.size() >= all_most) drop_oldest([](const auto&) { return true; });
}

/// 5.4.
std::string cookie_jar::header_for(const url& to, std::int64_t now_s) {
  const std::string host = lowered(to.host);
  const std::lock_guard locked{lock_};
  std::vector<std::pair<const key*, cookie*>> found;
  for (auto& [k, c] : all_) {
    const auto& [domain, path, name] = k;
    const bool is_for = c.host_only ? host == domain : is_in_domain(host, domain);
    if (is_for && is_in_path(path_of(to), path) && (!c.secure || to.scheme == "https") && c.expires_s > now_s)
      found.emplace_back(&k, &c);
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    const std::size_t x = std::get<1>(*a.first).size(), y = std::get<1>(*b.first).size();
    return x != y ? x > y : a.second->made < b.second->made;
  });
  std::string all;
  for (const auto& [k, c] : found) {
    c->used = ++clock_;
    if (!all.empty()) all += "; ";
    all += std::get<2>(*k) + "=" + c->value;
  }
  return all;
}

std::size_t cookie_jar::size() const {
  const std::lock_guard locked{lock_};
  return all_.size();
}

}  // namespace ramie::http
