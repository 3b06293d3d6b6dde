// When a client sends a request again that failed, and after how long.
#pragma once

#include <ramie/http/client.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace ramie::http {

/// RFC 9110, 9.2.2: to do it twice is to do it once.
[[nodiscard]] bool is_idempotent(std::string_view method) noexcept;
/// Statuses that may be others a moment later: 429, 502, 503, 504.
[[nodiscard]] bool is_passing(int status) noexcept;
/// Failures to connect that may pass. Not that a certificate is refused, or a name is not known.
[[nodiscard]] bool is_passing(const std::error_code& code) noexcept;

/// Before the retry of that number, from 1 on: twice as long for each, up to 10 s, and of that from half on to all by
/// `random`, so that clients that failed together do not come back together. At least what the server wants (the value
/// of retry-after); nullopt if that is more than `most`.
[[nodiscard]] std::optional<std::chrono::nanoseconds> pause_before(int retry, std::uint64_t random,
                                                                   std::optional<std::string_view> retry_after,
                                                                   std::int64_t now_s, std::chrono::nanoseconds most);

/// Retries that a host gets: ten, and one more for every ten requests. So while a host is down, its clients send it
/// at most a tenth more than they would without retries. Any thread.
class retry_budget {
 public:
  void note_request(const std::string& host);
  /// False: there is none left.
  [[nodiscard]] bool take(const std::string& host);

 private:
  static constexpr int of_retry = 10, most = 10 * of_retry;  // guesses, as gRPC's
  static constexpr std::size_t hosts_most = 1000;
  std::mutex lock_;
  std::map<std::string, int> spent_;  // hosts that are not there have spent nothing
};

}  // namespace ramie::http
