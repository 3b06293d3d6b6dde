#include "client/retries.hpp"

#include "wire/text.hpp"

#include <algorithm>

namespace ramie::http {

bool is_idempotent(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" || method == "OPTIONS" ||
         method == "TRACE";
}

bool is_passing(int status) noexcept { return status == 429 || (status >= 502 && status <= 504); }

bool is_passing(const std::error_code& code) noexcept {
  for (const std::errc one :
       {std::errc::connection_refused, std::errc::connection_reset, std::errc::connection_aborted,
        std::errc::broken_pipe, std::errc::timed_out, std::errc::host_unreachable, std::errc::network_unreachable})
    if (code == one) return true;
  return code == net::io_errc::unexpected_end || code == net::io_errc::closed;
}

std::optional<std::chrono::nanoseconds> pause_before(int retry, std::uint64_t random,
                                                     std::optional<std::string_view> retry_after, std::int64_t now_s,
                                                     std::chrono::nanoseconds most) {
  constexpr std::chrono::nanoseconds first = std::chrono::milliseconds{100}, longest = std::chrono::seconds{10};
  std::chrono::nanoseconds pause = std::min(longest, first * (std::int64_t{1} << std::clamp(retry - 1, 0, 10)));
  pause = pause / 2 + std::chrono::nanoseconds{random % static_cast<std::uint64_t>(pause.count() / 2 + 1)};
  if (!retry_after) return pause;
  std::int64_t wanted_s = 0;
  if (const auto seconds = parse_number(*retry_after))
    wanted_s = static_cast<std::int64_t>(std::min<std::uint64_t>(*seconds, UINT32_MAX));
  else if (const auto date = parse_date(*retry_after)) wanted_s = std::max<std::int64_t>(0, *date - now_s);
  else return pause;  // that is neither
  if (std::chrono::seconds{wanted_s} > most) return std::nullopt;
  return std::max<std::chrono::nanoseconds>(pause, std::chrono::seconds{wanted_s});
}

void retry_budget::note_request(const std::string& host) {
  const std::lock_guard locked{lock_};
  const auto at = spent_.find(host);
  if (at != spent_.end() && --at->second <= 0) spent_.erase(at);
}

bool retry_budget::take(const std::string& host) {
  const std::lock_guard locked{lock_};
  // So many hosts that fail get no retries at all.
  if (spent_.size() >= hosts_most && !spent_.contains(host)) return false;
  int& spent = spent_[host];
  if (spent + of_retry > most) return false;
  spent += of_retry;
  return true;
}

}  // namespace ramie::http
