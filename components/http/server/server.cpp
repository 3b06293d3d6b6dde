#include "server/core.hpp"
#include "wire/text.hpp"

#include <ramie/channel.hpp>
#include <ramie/http/websocket.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace ramie::http {

server_core::server_core(const server_limits& l) : limits{l}, room{static_cast<std::ptrdiff_t>(l.connections_most)} {}

namespace {

void check(const server_limits& l) {
  const auto positive = [](const char* name, auto value) {
    if (value <= decltype(value){})
      throw invalid_argument{std::string{"ramie: http: server_limits: "} + name + " has to be positive"};
  };
  if (l.header_most < 512)
    throw invalid_argument{"ramie: http: server_limits: header_most is " + std::to_string(l.header_most) +
                           "; it has to be at least 512"};
  positive("target_most", l.target_most);
  positive("headers_most", l.headers_most);
  positive("connections_most", l.connections_most);
  positive("unfinished_most", l.unfinished_most);
  positive("streams_most", l.streams_most);
  positive("websocket_message_most", l.websocket_message_most);
  positive("handshake_time", l.handshake_time);
  positive("header_time", l.header_time);
  positive("body_idle", l.body_idle);
  positive("idle", l.idle);
  positive("write_time", l.write_time);
}

/// What a failure of the handler's is to the client; `rs` has not begun.
void answer_failure(response& rs, int status, const char* text) {
  rs.status(status);
  rs.send(std::string{text} + "\n");
}

/// As connections end every day.
bool ends_connections(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const net::io_error&) {
    return true;
  } catch (const timeout_error&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// What the client still sends is read for a moment: if it were in the kernel when the socket is closed, the kernel
/// would reset the connection, and the client might lose the end of the response.
void linger(connection& c) {
  constexpr auto time = std::chrono::seconds{1};  // both are guesses
  constexpr std::size_t bytes = 256 * 1024;
  const auto deadline = std::chrono::steady_clock::now() + time;
  for (std::size_t n = c.input().size(); n < bytes; n += c.input().size()) {
    c.consume(c.input().size());
    if (c.fill_until(deadline) == 0) return;
  }
}

}  // namespace

server::server(const server_limits& limits) {
  check(limits);
  core_ = std::make_unique<server_core>(limits);
}
server::~server() = default;

void server::add(std::string_view method, std::string_view pattern, std::size_t parameters, handler f) {
  core_->routes.add(method, pattern, parameters, std::move(f));
}

void server::upgrade(std::string_view pattern, std::function<void(request&, websocket&)> f) {
  core_->routes.add("GET", pattern, SIZE_MAX, {}, std::move(f));
}

void server::stop() {
  core_->stopping.store(true);
  core_->stopped.set();
  const std::lock_guard locked{core_->lock};
  for (connection* c : core_->all) c->end_if_idle();
}

server_statistics server::statistics() const noexcept {
  const auto get = [](const std::atomic<std::uint64_t>& n) { return n.load(std::memory_order_relaxed); };
  return {get(core_->connections), get(core_->requests), get(core_->refused), get(core_->displaced), get(core_->open)};
}

void server::use(std::string_view below, middleware f) {
  const std::string named = "ramie: http: use: \"" + std::string{below} + "\"";
  if (!below.starts_with('/')) throw invalid_argument{named + " has to begin with '/'"};
  if (below.find(' ') != std::string_view::npos) throw invalid_argument{named + " has a space"};
  std::vector<std::string> segments;
  any_item(
      below,
      [&](std::string_view segment) {
        if (segment == "*" || segment.starts_with('{') || segment == "." || segment == ".." ||
            segment.find('%') != std::string_view::npos)
          throw invalid_argument{named + " has to be a plain path: no parameters, no dots, not encoded"};
        segments.emplace_back(segment);
        return false;
      },
      '/');
  core_->around_handlers.push_back({std::move(segments), std::move(f)});
}

void server::on_response(std::function<void(const request&, const response_summary&)> f) {
  core_->on_response = std::move(f);
}

std::string common_log_line(const request& of, const response_summary& became) {
  const std::string_view now = date_now();  // "Sun, 06 Nov 1994 08:49:37 GMT"
  std::string line = of.peer().size() == 0 ? "-" : of.peer().address();
  ((((((line += " - - [") += now.substr(5, 2)) += '/') += now.substr(8, 3)) += '/') += now.substr(12, 4)) += ':';
  ((line += now.substr(17, 8)) += " +0000] \"") += of.method();
  line += ' ';
  for (const char c : of.target()) {
    std::array<char, 8> code{};
    // Nothing that ends the field or the line.
    if (c != '"' && c != '\\' && c > ' ' && c < 127) line += c;
    else
      line.append(code.data(), static_cast<std::size_t>(
                                   std::snprintf(code.data(), code.size(), "\\x%02X", static_cast<unsigned char>(c))));
  }
  line += of.version() == 20 ? " HTTP/2.0\" " : of.version() == 11 ? " HTTP/1.1\" " : " HTTP/1.0\" ";
  return line + std::to_string(became.status) + ' ' + std::to_string(became.body_bytes);
}

void server::on_failure(std::function<void(const request&, const std::exception_ptr&)> f) {
  core_->on_failure = std::move(f);
}

void server_core::tell(const request& of, const std::exception_ptr& failure) {
  if (on_failure) {
    on_failure(of, failure);
    return;
  }
  std::size_t others = 0;
  {
    const std::lock_guard locked{telling_};
    const auto now = std::chrono::steady_clock::now();
    if (now < tell_again_) {
      ++untold_;
      return;
    }
    tell_again_ = now + std::chrono::seconds{1};
    others = std::exchange(untold_, 0);
  }
  const auto line = [&](const char* what) {
    std::string text =
        "ramie: http: the handler of " + std::string{of.method()} + " " + std::string{of.path()} + " failed";
    if (others != 0) text += ", and " + std::to_string(others) + " have before";
    text += std::string{": "} + what + "\n";
    std::fputs(text.c_str(), stderr);
  };
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    line(e.what());
  } catch (...) {
    line("by an exception that is not a std::exception");
  }
}

namespace {

/// However many slashes are between them.
bool is_below(const std::vector<std::string>& prefix, std::string_view path) {
  if (prefix.empty()) return true;
  std::vector<std::string> all = segments_of(path);
  std::erase(all, std::string{});
  return all.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), all.begin());
}

}  // namespace

void server_core::go_on(exchange& x, std::size_t at) {
  for (; at < around_handlers.size(); ++at) {
    const around& a = around_handlers[at];
    if (!is_below(a.below, x.rq.path())) continue;
    x.keep_headers();
    return a.f(x.rq, x.rs, [this, &x, next = at + 1] { go_on(x, next); });
  }
  x.keep_headers();
  if (x.rq.target() == "*") {  // of OPTIONS: whether there is a server
    x.rs.status(204).send({});
    return;
  }
  bool was_routed = false;
  const std::string others =
      routes.match(x.rq.method(), x.rq.path(), [&](const route& r, const std::vector<std::string>& parameters) {
        if (r.upgraded) {
          x.become_websocket(r.upgraded);
          return true;
        }
        was_routed = r.f(x.rq, x.rs, parameters);
        return was_routed;
      });
  if (x.rs.has_begun() || x.is_upgraded()) return;
  if (!others.empty()) {
    x.rs.header("allow", others);
    answer_failure(x.rs, 405, "this method is not allowed here");
  } else if (!was_routed) {
    answer_failure(x.rs, 404, "there is nothing here");
  }
}

void server_core::handle(exchange& x) {
  requests.fetch_add(1, std::memory_order_relaxed);
  if (!on_response) return answer(x);
  const auto began = std::chrono::steady_clock::now();
  std::exception_ptr failure;
  try {
    answer(x);
  } catch (...) {
    failure = std::current_exception();
  }
  const response_summary became{.status = x.is_upgraded() ? 101 : x.sent_status(),
                                .body_bytes = x.sent(),
                                .took = std::chrono::steady_clock::now() - began,
                                .is_whole = x.is_whole()};
  // Also if the client is gone, but not for ever.
  shield([&] { with_timeout(limits.drain_time, [&] { on_response(x.rq, became); }); });
  if (failure) std::rethrow_exception(failure);
}

void server_core::answer(exchange& x) {
  std::exception_ptr failure;
  int status = 500;
  std::string text = "this went wrong";
  try {
    if (has_dots(x.rq.path())) throw status_error{404, "there is nothing here"};
    go_on(x, 0);
    if (!x.is_upgraded()) x.rs.finish();
    return;
  } catch (const status_error& e) {
    if (x.is_over()) throw;
    if (x.rs.has_begun() || e.status() < 200 || e.status() > 599) {
      failure = std::current_exception();
    } else {
      status = e.status();
      text = e.what();
    }
  } catch (...) {
    // The client or the server has ended it; all else, whatever its type, is the handler's own.
    if (x.is_over() || this_fiber::stop_requested()) throw;
    failure = std::current_exception();
  }
  if (failure) {
    if (x.is_upgraded() && ends_connections(failure)) std::rethrow_exception(failure);
    tell(x.rq, failure);
    if (!x.is_upgraded() && x.has_ended()) return;  // the response was whole before
  }
  if (x.rs.has_begun()) throw net::io_error{"HTTP response", net::io_errc::unexpected_end};
  if (failure) x.begin_anew();  // a status_error may go with headers
  answer_failure(x.rs, status, text.c_str());
}

namespace {
struct counted_while_it_lives {
  explicit counted_while_it_lives(std::atomic<std::uint64_t>& n) : n_{n} { n_.fetch_add(1, std::memory_order_relaxed); }
  counted_while_it_lives(const counted_while_it_lives&) = delete;
  counted_while_it_lives& operator=(const counted_while_it_lives&) = delete;
  ~counted_while_it_lives() { n_.fetch_sub(1, std::memory_order_relaxed); }
  std::atomic<std::uint64_t>& n_;
};
}  // namespace

void server_core::run(net::any_stream s, newcomer* from, bool encrypted, bool must_be_2) {
  constexpr std::string_view preface = "PRI * HTTP/2.0\r\n";
  connection c{*this, std::move(s), from, encrypted};
  connections.fetch_add(1, std::memory_order_relaxed);
  const counted_while_it_lives here{open};
  const auto serve = [&] {
    if (stopping.load()) c.end_if_idle();
    bool is_2 = must_be_2 || (limits.versions == http_versions::only_2 && !encrypted);
    if (!is_2 && limits.versions == http_versions::automatic && c.fill(limits.idle) != 0) {
      // The preface of HTTP/2 is no request of HTTP/1.1. If only some of it has come, wait for more.
      const auto deadline = std::chrono::steady_clock::now() + limits.header_time;
      while (c.input().size() < preface.size() && preface.starts_with(c.input()) && c.fill_until(deadline) != 0) {
      }
      is_2 = c.input().starts_with(preface);
    }
    if (is_2) serve_2(c);
    else if (limits.versions != http_versions::only_2) serve_1(c);
    c.stream.shutdown_write();
    linger(c);
  };
  try {
    c.life.run(serve);
  } catch (const cancelled&) {
    if (this_fiber::stop_requested()) throw;
  } catch (...) {
    // The client is gone, or was too slow, or its handler failed in the middle of a response: it sees the connection
    // end.
  }
}

template <class Serve>
void server_core::accept_all(net::tcp_listener& from, Serve serve) {
  std::atomic<std::size_t> running{1};
  event ended;  // all connections, once there are no new ones
  const auto leave = [&] {
    if (running.fetch_sub(1) == 1) ended.set();
  };
  // Also for one that is not begun, as the scope does with others when one fails.
  const auto leave_room = [&leave](server_core* of) {
    of->room.release();
    leave();
  };
  scope fibers;
  fibers.spawn([this] { look_round(); });
  while (!stopping.load()) {
    net::tcp_stream accepted;
    bool stop = false;
    select(net::on_accept(from, [&](net::tcp_stream s) { accepted = std::move(s); }),
           on_ready(stopped, [&] { stop = true; }));
    if (stop) break;
    if (!wait_for_room()) break;
    running.fetch_add(1);
    std::unique_ptr<server_core, const decltype(leave_room)&> place{this, leave_room};
    net::any_stream connected{newcomer{std::move(accepted)}};
    auto& fresh = static_cast<newcomer&>(*connected.socket());
    fresh.join_queue(*this);  // here, so that the queue has the order of arrival
    fibers.spawn([&serve, &fresh, s = std::move(connected), until_its_end = std::move(place)]() mutable {
      try {
        serve(std::move(s), fresh);
      } catch (...) {
        // By a handshake that fails, for want of memory, or since the server stops: it ends no other connection.
      }
    });
  }
  leave();
  if (!ended.wait_for(limits.drain_time)) fibers.cancel();
  fibers.join();
}

void server::serve(net::tcp_listener& from) {
  core_->accept_all(
      from, [this](net::any_stream s, newcomer& accepted) { core_->run(std::move(s), &accepted, false, false); });
}

void server::serve(net::tcp_listener& from, const tls::server_context& context) {
  core_->accept_all(from, [this, &context](net::any_stream s, newcomer& accepted) {
    tls::stream encrypted =
        with_timeout(core_->limits.handshake_time, [&] { return tls::stream::accept(std::move(s), context); });
    const bool is_2 = encrypted.details().alpn == "h2";
    core_->run(std::move(encrypted), &accepted, true, is_2);
  });
}

void server::serve_one(net::any_stream s) { core_->run(std::move(s), nullptr, false, false); }

}  // namespace ramie::http
