// A server: routes, limits, and what runs until it is stopped.
#pragma once

#include <ramie/http/message.hpp>
#include <ramie/tls.hpp>

#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ramie::http {

class websocket;
struct server_core;  // what connections share

/// What a client may use up. The defaults are guesses for a server that anybody can reach.
struct server_limits {
  std::size_t header_most = 16 * 1024;           // bytes of the request line and all headers; beyond: 431
  std::size_t target_most = 8 * 1024;            // bytes of it; beyond: 414
  std::size_t headers_most = 100;                // beyond: 431
  std::uint64_t body_most = 8 << 20;             // bytes; beyond: 413
  std::size_t connections_most = 10'000;         // more wait, and end the oldest of those below, or an idle one
  std::size_t unfinished_most = 1000;            // that have not sent a whole request yet; more end the oldest of them
  std::uint32_t streams_most = 100;              // requests at a time on a connection of HTTP/2
  std::size_t websocket_message_most = 1 << 20;  // bytes of a message after decompression
  http_versions versions = http_versions::automatic;
  std::chrono::nanoseconds handshake_time = std::chrono::seconds{10};  // of TLS
  std::chrono::nanoseconds header_time = std::chrono::seconds{10};     // from a request's first byte to its last header
  std::chrono::nanoseconds body_idle = std::chrono::seconds{30};       // between two parts of a body
  std::uint64_t body_rate = 240;  // bytes a second, on average, that a body has to come with after body_idle; 0: any
  std::chrono::nanoseconds idle = std::chrono::seconds{75};  // a connection without a request
  /// A handler is cancelled if its client is gone: reset at once, at its end (FIN) after so long, as that may also mean
  /// that it waits for the response. Over HTTP/2 both count at once, and so does the reset of a stream.
  /// nanoseconds::max(): a reset alone.
  std::chrono::nanoseconds half_close_grace = std::chrono::seconds{1};
  std::chrono::nanoseconds write_time = std::chrono::seconds{30};  // until a client takes the next 64 KiB
  std::chrono::nanoseconds drain_time = std::chrono::seconds{10};  // for what is under way when the server stops
};

struct server_statistics {
  std::uint64_t connections, requests, refused;  // refused: broken or beyond a limit
  std::uint64_t displaced;                       // ended to make room for a newer one
  std::uint64_t open;                            // connections now
};

/// What has become of a request.
struct response_summary {
  int status = 0;                   // 0: it was cut off before its head; 101: a WebSocket
  std::uint64_t body_bytes = 0;     // that were handed to the system (HTTP/2: queued), before TLS; 0 of a WebSocket
  std::chrono::nanoseconds took{};  // of its handler
  bool is_whole = true;             // all of it was handed over; false: it was cut off
};

/// A line of the Common Log Format without its end: 127.0.0.1 - - [30/Nov/2026:21:12:07 +0000] "GET / HTTP/1.1" 200 6
[[nodiscard]] std::string common_log_line(const request& of, const response_summary& became);

/// Stands around handlers. `next` is called once, and has them handle the request; or not at all.
using middleware = std::function<void(request&, response&, const std::function<void()>& next)>;

using handler = std::function<bool(request&, response&, std::span<const std::string>)>;

namespace routing {  // internal

template <class T>
bool parse_parameter(const std::string& text, T& into) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), into);
    return code == std::errc{} && end == text.data() + text.size() && !text.empty();
  } else {
    into = text;
    return true;
  }
}

template <class F>
struct handler_of;
template <class R, class C, class... P>
struct handler_of<R (C::*)(request&, response&, P...) const> {
  static constexpr std::size_t parameters = sizeof...(P);
  template <class F>
  static handler of(F f) {
    return [f = std::move(f)](request& rq, response& rs, std::span<const std::string> texts) {
      std::tuple<std::decay_t<P>...> values;
      const bool all = [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (parse_parameter(texts[I], std::get<I>(values)) && ...);
      }(std::index_sequence_for<P...>{});
      if (all) std::apply([&](auto&... v) { f(rq, rs, v...); }, values);
      return all;
    };
  }
};
template <class R, class C, class... P>
struct handler_of<R (C::*)(request&, response&, P...)> : handler_of<R (C::*)(request&, response&, P...) const> {};

}  // namespace routing

/// A server of HTTP/1.1 and HTTP/2. Routes are added first; then `serve` may be called for any number of listeners,
/// each by a fiber of its own. Every request is handled by a fiber.
///
/// A pattern is a path whose segments may be "{}" or "{name}": each is a parameter of the handler behind request and
/// response, of an integral type or std::string (as copy or const reference), or std::string_view. A segment that is no
/// such number does not match. A last segment "*" is the rest of the path. Patterns without parameters come first, then
/// the others as they were added.
class server {
 public:
  explicit server(const server_limits& limits = {});
  server(const server&) = delete;
  server& operator=(const server&) = delete;
  ~server();

  /// Handlers are called by many fibers at a time. What they throw becomes a response (status_error; 500 for others,
  /// see on_failure), or the end of one that has begun; it ends no other request. Throws invalid_argument if the
  /// handler takes another number of parameters than the pattern has, or the pattern does not begin with '/'.
  template <class F>
  void route(std::string_view method, std::string_view pattern, F f) {
    using type = routing::handler_of<decltype(&F::operator())>;
    add(method, pattern, type::parameters, type::of(std::move(f)));
  }
  /// Also answers HEAD.
  template <class F>
  void get(std::string_view pattern, F f) {
    route("GET", pattern, std::move(f));
  }
  template <class F>
  void post(std::string_view pattern, F f) {
    route("POST", pattern, std::move(f));
  }
  template <class F>
  void put(std::string_view pattern, F f) {
    route("PUT", pattern, std::move(f));
  }
  template <class F>
  void erase(std::string_view pattern, F f) {
    route("DELETE", pattern, std::move(f));
  }
  /// The files below `folder` under `prefix`, which ends with '/'. Symbolic links are followed; no name that begins
  /// with a dot is served. A path that ends with '/' is its index.html.
  void files(std::string_view prefix, std::string folder);
  /// A WebSocket: f has the connection until it returns. Over HTTP/1.1.
  void upgrade(std::string_view pattern, std::function<void(request&, websocket&)> f);

  /// f stands around all handlers, or those of `below`, a path without parameters, and of all paths below it, as well
  /// as around the 404 and 405 of those that have none. Several stand around each other in the order of these calls.
  /// What handlers throw passes through f; headers that f has set before stay in the response that comes of that. Paths
  /// are compared decoded, and however many slashes are in between; one with "." or ".." is a 404 before. Before
  /// `serve`. Throws invalid_argument if `below` does not begin with '/', has a parameter or dots, or is encoded.
  void use(middleware f) { use("/", std::move(f)); }
  void use(std::string_view below, middleware f);
  /// f is told of each request when its response has ended or was cut off, as for an access log (common_log_line): by
  /// the fiber that has handled it, of several at a time; it may suspend, for `drain_time`. Requests that could not be
  /// read are counted
  /// (`refused`), not told. Before `serve`. What f throws ends the connection, or the stream of HTTP/2.
  void on_response(std::function<void(const request& of, const response_summary& became)> f);
  /// f is told what a handler has thrown, but for a status_error that became a response, and failures of the connection
  /// itself: by the handler's fiber, of several at a time; it may suspend. The client gets a 500, or the end of a
  /// response that had begun, and nothing of why. What f throws ends the connection. Before `serve`. Without it, that
  /// is a line on standard error, at most one a second.
  void on_failure(std::function<void(const request& of, const std::exception_ptr& failure)> f);

  /// Accepts and serves connections until `stop` has let them finish. With a TLS context, HTTP/2 where the client can,
  /// by ALPN; without one HTTP/2 for clients that begin with it. Suspends. Throws io_error if the listener fails or is
  /// closed, `cancelled`; then connections are cut off.
  void serve(net::tcp_listener& from);
  void serve(net::tcp_listener& from, const tls::server_context& context);
  /// One connection that somebody else accepted, to its end; it takes no room, and its handlers are not cancelled when
  /// the client is gone. Suspends. Throws `cancelled`.
  void serve_one(net::any_stream connection);

  /// Stops accepting, closes idle connections, lets requests under way finish for limits.drain_time, and makes all
  /// calls of `serve` return. Does not suspend. Any thread.
  void stop();
  [[nodiscard]] server_statistics statistics() const noexcept;  // any thread

  /// The protocols for tls::server_options::alpn.
  [[nodiscard]] static std::vector<std::string> protocols() { return {"h2", "http/1.1"}; }

 private:
  void add(std::string_view method, std::string_view pattern, std::size_t parameters, handler f);
  std::unique_ptr<server_core> core_;
};

}  // namespace ramie::http
