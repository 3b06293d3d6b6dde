// All that libcurl can transfer, for fibers: link ramie::curl.
//
//   ramie::curl::client web;
//   const ramie::curl::response r = web.perform({.url = "https://example.org/"});
//
// HTTP/1 to 3, FTP, SFTP, IMAP, proxies, cookies and so on are libcurl's; `configure` sets what has no name here.
#pragma once

#include <ramie/ramie.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie::curl {

/// A transfer failed: no connection, a broken certificate, an interrupted body. `code()` is a CURLcode.
class transfer_error : public error {
 public:
  transfer_error(const std::string& what, int code) : error{"ramie: curl: " + what}, code_{code} {}
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

struct request {
  std::string url;
  std::string method{};                // empty: GET, or POST if there is a body
  std::vector<std::string> headers{};  // "name: value"
  std::optional<std::string> body{};
  bool follow_redirects = false;
  std::size_t body_most = std::size_t{64} << 20;  // bytes of the response's body; more is a transfer_error
  /// If it is there, it gets the body in parts instead of response::body. It runs inside libcurl, on any thread: it
  /// must not suspend, and what it throws is passed on by `perform`.
  std::function<void(std::string_view)> sink{};
  /// Called with the CURL*, before the transfer, to set further options. It must not set those for callbacks of reading
  /// and writing, CURLOPT_PRIVATE, CURLOPT_ERRORBUFFER and CURLOPT_NOSIGNAL.
  std::function<void(void*)> configure{};
};

struct response {
  long status = 0;                                           // 0 for protocols that have none
  std::vector<std::pair<std::string, std::string>> headers;  // of the last response; names in lower case
  std::string body;
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;  // in lower case; the first
};

struct client_options {
  long connections_most = 64;          // open at a time, to all hosts; more transfers wait. A guess.
  long connections_most_to_host = 16;  // A guess.
};

/// A multi handle of libcurl that any number of fibers share, with its connections, and a fiber that drives it. Made
/// and destroyed by a fiber.
class client {
 public:
  /// Throws transfer_error, io_error.
  explicit client(const client_options& options = {});
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  ~client();  // no transfer is under way. Suspends

  /// Suspends until the transfer is over. A stop or deadline ends the transfer. Any status is a response. Any fiber or
  /// plain thread. Throws transfer_error, `cancelled`, std::bad_alloc, and what the request's functions throw.
  [[nodiscard]] response perform(const request& r);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace ramie::curl
