// A client of HTTP/1.1 and HTTP/2, which keeps its connections for the next request.
#pragma once

#include <ramie/http/message.hpp>
#include <ramie/tls.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie::http {

struct client_pool;  // what requests share

/// Which proxies are used. Those of HTTP are asked by "GET http://host/..." for http, and for a tunnel (CONNECT) for
/// https, so what is encrypted is encrypted up to the host itself. Those of SOCKS 5 are asked for a connection, and
/// resolve the host's name.
struct proxy_options {
  /// "SCHEME://[USER:PASSWORD@]HOST[:PORT]"; empty: none. Schemes: http; https, TLS to the proxy, which is verified;
  /// socks5 (also written socks5h), port 1080 unless it is given.
  std::string for_http{}, for_https{};
  /// Hosts that are asked directly: "example.org" with all below it, an address, "10.0.0.0/8", any of these with
  /// ":PORT", or "*".
  std::vector<std::string> direct{};
  /// For proxies of https. None: they are verified against the system's roots. Its `alpn` is empty, or "http/1.1".
  std::optional<tls::client_context> context{};

  /// As http_proxy, https_proxy and no_proxy say (the last two also in capitals), else all_proxy; as Go and curl do.
  /// HTTP_PROXY counts for nothing: a CGI program's client could set it. This machine's own loopback is asked directly.
  [[nodiscard]] static proxy_options from_environment();
};

struct client_options {
  std::size_t header_most = 64 * 1024;               // bytes of the response's head
  std::size_t headers_most = 200;                    // of a response
  std::uint64_t body_most = std::uint64_t{1} << 30;  // bytes of a response's body, packed and unpacked
  int redirects_most = 10;                           // that GET and HEAD follow
  int retries_most = 0;                              // of a request that fails; see client::request
  bool unpack = true;    // ask for gzip, unless a request says which coding it wants, and read bodies unpacked
  bool cookies = false;  // keep those that servers set, and send them along (RFC 6265), as long as the client lives
  std::size_t idle_most = 8;                                         // connections that are kept for a host
  std::chrono::nanoseconds connect_time = std::chrono::seconds{10};  // with the handshake of TLS
  std::chrono::nanoseconds response_time =
      std::chrono::seconds{30};  // until its head is there, and between parts of the body
  std::chrono::nanoseconds write_time = std::chrono::seconds{30};  // until the server takes the next 64 KiB
  std::chrono::nanoseconds idle = std::chrono::seconds{30};        // how long a connection is kept
  http_versions versions = http_versions::automatic;
  std::optional<proxy_options> proxies{};  // none: those of the environment
};

/// What is asked for. `body` none: the request has none.
struct client_request {
  std::string method = "GET";
  std::vector<std::pair<std::string, std::string>> headers{};
  std::optional<std::string> body{};
};

/// A response whose head has been read. Movable. Its connection is kept if the body is read to its end, and closed if
/// it is destroyed before. What it returns by view is valid as long as it.
class client_response {
 public:
  client_response(client_response&&) noexcept;
  client_response& operator=(client_response&&) noexcept;
  ~client_response();

  [[nodiscard]] int status() const noexcept;
  /// Without content-encoding and content-length if the body is unpacked (client_options::unpack).
  [[nodiscard]] std::span<const header_field> headers() const noexcept;
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept {
    return find_header(headers(), name);
  }
  /// The URL that it is of, behind redirects.
  [[nodiscard]] const std::string& url() const noexcept;
  /// The next bytes of the body; 0 at its end. Suspends. Throws io_error (io_errc::unexpected_end if it is cut off,
  /// io_errc::too_long beyond `body_most`), timeout_error, `cancelled`.
  std::size_t read_some(std::span<std::byte> into);
  /// All that is left of it. Same; too_long if that is more than `most`.
  [[nodiscard]] std::string body(std::size_t most = std::size_t{16} << 20);

 private:
  friend class client;
  struct state;
  explicit client_response(std::unique_ptr<state> made) noexcept;
  void skip();
  std::unique_ptr<state> state_;
};

/// Any number of fibers may use one. Responses may outlive it.
class client {
 public:
  /// Without a context, "https" verifies against the system's roots, and offers HTTP/2. With one, its `alpn` is what is
  /// offered. Throws invalid_argument (also for a proxy whose URL is none).
  explicit client(const client_options& options = {}, std::optional<tls::client_context> context = std::nullopt);

  /// Sends a request, and returns when the head of the response is there, whatever its status. Follows redirects of GET
  /// and HEAD; headers for authentication and cookies go to the same host, port and scheme alone. If a kept connection
  /// ends before the first byte of the response, GET, HEAD, PUT, DELETE and OPTIONS are sent once more on a new one
  /// (RFC 9110, 9.2.2); over HTTP/2 also others that the server surely has not looked at. All requests to a host share
  /// one connection of HTTP/2.
  ///
  /// With `retries_most`, idempotent requests (those above) are sent again after 429, 502, 503, 504, or if the
  /// connection fails before the head of the response is there, and any request that surely was not sent. The pause is
  /// 0.1 s at first, doubles up to 10 s, and is at random from half of that on; it is longer if the server asks for
  /// that (retry-after), and if it asks for more than `response_time`, its response is returned. A host gets ten
  /// retries, and one more for every ten requests; without one left the failure is returned. What takes too long is not
  /// repeated.
  ///
  /// Suspends. Throws io_error, timeout_error, `cancelled`, invalid_argument (the URL, the method or a header).
  [[nodiscard]] client_response request(std::string_view url, const client_request& what = {});
  [[nodiscard]] client_response get(std::string_view url) { return request(url); }
  [[nodiscard]] client_response post(std::string_view url, std::string_view body,
                                     std::string_view type = "application/octet-stream") {
    return request(url, {"POST", {{"content-type", std::string{type}}}, std::string{body}});
  }

 private:
  std::shared_ptr<client_pool> pool_;
};

}  // namespace ramie::http
