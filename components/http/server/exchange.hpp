// What the versions of HTTP have to offer to requests and responses, and what a server's connections share.
#pragma once

#include "wire/text.hpp"
#include "wire/wire.hpp"

#include <ramie/http/server.hpp>
#include <ramie/runtime.hpp>
#include <ramie/sync.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramie::http {

/// One request and its response. Its calls are made by the fiber that handles it.
struct exchange {
  explicit exchange(const server_limits& l) : limits{l} { rq.by_ = rs.by_ = this; }
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;
  virtual ~exchange() = default;

  /// Part of the body; 0 at its end.
  virtual std::size_t read_body(std::span<std::byte> into) = 0;
  /// The head; `body` follows if not empty. `length` none: parts follow, then the end. With a length, parts of that
  /// many bytes in all follow `body`; then it ends by itself.
  virtual void send_head(int status, std::string_view fields, std::optional<std::uint64_t> length,
                         std::string_view body) = 0;
  virtual void send_part(std::span<const std::byte> part) = 0;
  virtual void send_end() = 0;
  /// Part of a file by sendfile(2); false if that cannot be here.
  virtual bool send_from_file(int, std::uint64_t, std::uint64_t) { return false; }

  /// Becomes a WebSocket, until f returns. Throws status_error where that cannot be.
  virtual void become_websocket(const std::function<void(request&, websocket&)>& f) = 0;
  [[nodiscard]] virtual bool is_upgraded() const noexcept { return false; }

  /// The client can be told no more: its connection has failed, or it has reset the stream.
  [[nodiscard]] virtual bool is_over() const noexcept = 0;
  /// What a handler has made of a response that has not begun is forgotten.
  void begin_anew() noexcept {
    rs.fields_.clear();
    rs.has_type_ = rs.has_encoding_ = rs.may_compress_ = false;
  }

  [[nodiscard]] bool has_ended() const noexcept { return rs.state_ == response::state::ended; }

  [[nodiscard]] bool is_head() const noexcept { return rq.method() == "HEAD"; }

  request rq;
  response rs;
  const server_limits& limits;
  bool was_routed = false;  // a handler had it

 protected:
  /// Everything of the last request is forgotten.
  void fresh(std::string_view method, std::string_view target, std::string_view authority, int version, bool encrypted);
  /// The same, and their memory is given back.
  void forget() noexcept {
    std::vector<header_field>{}.swap(rq.headers_);
    std::string{}.swap(rs.fields_);
  }
  [[nodiscard]] std::vector<header_field>& fields() noexcept { return rq.headers_; }
  void set_length(std::optional<std::uint64_t> n) noexcept { rq.length_ = n; }
  void end_response() noexcept { rs.state_ = response::state::ended; }
};

struct route {
  std::string method;
  std::vector<std::string> segments;  // "{}" for a parameter
  bool takes_rest = false;
  handler f;
  std::function<void(request&, websocket&)> upgraded;
};

/// Finds who handles a path.
class router {
 public:
  void add(std::string_view method, std::string_view pattern, std::size_t parameters, handler f,
           std::function<void(request&, websocket&)> upgraded = {});
  struct found {
    const route* to = nullptr;
    std::vector<std::string> parameters;
  };
  /// Calls f(route, parameters) for all that fit, until one returns true. Returns the methods that there would be.
  template <class F>
  std::string match(std::string_view method, std::string_view path, F f) const;

 private:
  static bool fits(const route& r, std::span<const std::string> path, std::vector<std::string>& parameters);
  std::unordered_map<std::string, std::vector<route>> plain_;
  std::vector<route> others_;
};

/// "/a/b%20c" as "a", "b c"; throws status_error.
[[nodiscard]] std::vector<std::string> segments_of(std::string_view path);

/// The same as a path without encoding; "" if that would be another path, because a segment has a '/'.
[[nodiscard]] std::string joined(std::span<const std::string> segments);

class connection;
struct server_core;

/// A connection that was accepted, in the queue of those that have not sent a whole request until it has. It ends
/// without that as slowly as it likes, within the limits of time; so that such connections take up no room that others
/// need, the oldest of them are closed when there are too many.
class newcomer : public net::tcp_stream {
 public:
  explicit newcomer(net::tcp_stream s) : tcp_stream{std::move(s)} {}
  newcomer(newcomer&&) noexcept = default;
  newcomer& operator=(newcomer&&) noexcept = default;
  ~newcomer() { leave_queue(); }

  /// From now on it may not be moved. Throws std::bad_alloc.
  void join_queue(server_core& of);
  /// Once a whole request is there. The same fiber's.
  void leave_queue() noexcept;

 private:
  friend struct server_core;
  server_core* queue_of_ = nullptr;
  std::optional<std::list<newcomer*>::iterator> place_;  // the core's lock
};

struct server_core {
  explicit server_core(const server_limits& l);

  const server_limits limits;
  router routes;
  std::function<void(const request&, const std::exception_ptr&)> on_failure;
  std::atomic<std::uint64_t> connections{0}, requests{0}, refused{0}, displaced{0}, open{0};
  std::atomic<bool> stopping{false};
  event stopped;
  counting_semaphore<> room;
  std::mutex lock;  // of what follows; nobody suspends under it
  std::set<connection*> all;
  std::list<newcomer*> unfinished;  // the oldest first

  /// Its handler, and an answer for what that throws. Throws what has ended the connection or is to end this fiber, and
  /// io_error where a response is cut short.
  void handle(exchange& x);
  void tell(const request& of, const std::exception_ptr& failure);
  /// `from`: what `s` is above, or null.
  void run(net::any_stream s, newcomer* from, bool encrypted, bool must_be_2);
  /// Ends the oldest of the unfinished connections, if there are more than `most`.
  void displace_oldest(std::size_t most) noexcept;
  template <class Serve>
  void accept_all(net::tcp_listener& from, Serve serve);

 private:
  std::mutex telling_;  // of what follows; nobody suspends under it
  std::chrono::steady_clock::time_point tell_again_;
  std::size_t untold_ = 0;
};

/// A connection as `stop` sees it: 0 idle, 1 busy, 2 ended by `stop`. The connection becomes busy or idle before it
/// looks at `stopping`, and `stop` sets that before it looks at the state: one of them sees the other.
class connection : public wire {
 public:
  connection(server_core& of, net::any_stream s, newcomer* from, bool is_encrypted);
  ~connection();

  /// A whole request is there.
  void is_used() noexcept {
    if (from_ != nullptr) std::exchange(from_, nullptr)->leave_queue();
  }

  [[nodiscard]] bool begin_request() noexcept {
    int idle = 0;
    return state_.compare_exchange_strong(idle, 1);
  }
  /// False if it shall end.
  [[nodiscard]] bool end_request() noexcept {
    state_.store(0);
    return !core.stopping.load();
  }
  void end_if_idle() noexcept {
    int idle = 0;
    if (state_.compare_exchange_strong(idle, 2)) stream.close();
  }

  server_core& core;
  const bool encrypted;

 private:
  newcomer* from_;
  std::atomic<int> state_{0};
};

/// Serves a connection to its end. Throw io_error, timeout_error, `cancelled`.
void serve_1(connection& c);
void serve_2(connection& c);

template <class F>
std::string router::match(std::string_view method, std::string_view path, F f) const {
  std::string others;
  std::vector<std::string> parameters;
  const auto offer = [&](const route& r) {
    if (r.method != method && !(method == "HEAD" && r.method == "GET")) {
      if (others.find(r.method) == std::string::npos) others += (others.empty() ? "" : ", ") + r.method;
      return false;
    }
    return static_cast<bool>(f(r, parameters));
  };
  const bool encoded = path.find('%') != std::string_view::npos;
  std::vector<std::string> segments;
  if (encoded) segments = segments_of(path);
  if (const auto at = plain_.find(encoded ? joined(segments) : std::string{path}); at != plain_.end())
    for (const route& r : at->second)
      if (offer(r)) return {};
  if (others_.empty()) return others;
  if (!encoded) segments = segments_of(path);
  for (const route& r : others_)
    if (fits(r, segments, parameters) && offer(r)) return {};
  return others;
}

}  // namespace ramie::http
