// The loop of a server: takes connections and serves each by a fiber of its own, until it is told to stop; then lets
// those that are open end.
//
//   net::tcp_listener at{{"", 7}};
//   net::signals stop{SIGINT, SIGTERM};
//   net::serve(at, [](net::tcp_stream client) { net::copy(client, client); }, {.stop_on = &stop});
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/fiber/in_scope.hpp>
#include <ramie/net/listener.hpp>
#include <ramie/net/signals.hpp>
#include <ramie/poll/io_error.hpp>
#include <ramie/sync/event.hpp>
#include <ramie/sync/semaphore.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <stop_token>
#include <string_view>
#include <utility>

namespace ramie::net {

struct serve_options {
  /// Connections that are served at a time; more wait in the listener's backlog. 0: any number.
  std::size_t connections_most = 0;
  /// What makes `serve` stop: the next of these signals (an object for each server: one waiter takes it), or this
  /// token.
  signals* stop_on = nullptr;
  std::stop_token stop = {};
  /// How long connections that are open may go on after that; then they are cancelled.
  std::chrono::nanoseconds drain = std::chrono::seconds{10};
  /// Called with what a handler threw, but not `cancelled` or child_cancelled, by that connection's fiber, for several
  /// at a time; it may wait, as in a `shield`. If it throws, `serve` ends, and throws that. Empty: a failure is a line
  /// on standard error, at most one a second, unless it is an io_error or a timeout_error: by these, connections end
  /// every day.
  std::function<void(const std::exception_ptr& failure)> on_failure = {};
};

namespace detail {

/// What a server's fibers share.
class serving {
 public:
  /// Throws usage_error.
  explicit serving(const serve_options& options);
  serving(const serving&) = delete;
  serving& operator=(const serving&) = delete;

  /// Cancels `accepting` when it is time to stop.
  void watch(body_scope& accepting);
  [[nodiscard]] in_scope_options of_connections() const;
  [[nodiscard]] const serve_options& options() const noexcept { return options_; }

  /// The right to have one more connection, for as long as that lasts.
  class place {
   public:
    explicit place(serving& in) : in_{&in} { in.places_.acquire(); }
    place(place&& other) noexcept : in_{std::exchange(other.in_, nullptr)} {}
    place& operator=(place&&) = delete;
    ~place() {
      if (in_ != nullptr) in_->places_.release();
    }

   private:
    serving* in_;
  };

 private:
  const serve_options& options_;
  counting_semaphore<> places_;
  event told_;
};

}  // namespace detail

/// Takes connections of `listener`, a tcp_listener or unix_listener, and calls handler(stream) for each, in a fiber of
/// its own, all by the same handler at the same time. What a handler throws ends its connection only. Returns when the
/// listener was closed, or a signal or token of the options has come, which closes it, and all connections have ended.
/// A stop request or deadline of the calling fiber cancels the connections at once. When descriptors are short, new
/// clients wait (see `accept`). While `connections_most` are served, a close of the listener is noticed only when
/// one of them ends; the signals and the token always are. Suspends. Throws `cancelled`, what `accept` throws for a
/// listener that cannot go on, and usage_error on a plain thread.
template <class Listener, class Handler>
  requires std::invocable<Handler&, decltype(std::declval<Listener&>().accept())>
void serve(Listener& listener, Handler&& handler, const serve_options& options = {}) {
  detail::serving server{options};
  in_scope(server.of_connections(), [&](body_scope& connections) {
    in_scope([&](body_scope& accepting) {
      server.watch(accepting);
      for (;;) {
        detail::serving::place one{server};
        auto client = listener.accept_unless_closed();
        if (!client) break;
        connections.spawn([&, one = std::move(one), client = std::move(*client)]() mutable {
          try {
            std::invoke(handler, std::move(client));
          } catch (const io_error&) {
            if (options.on_failure) throw;
          } catch (const timeout_error&) {
            if (options.on_failure) throw;
          }
        });
      }
      accepting.cancel();
    });
    listener.close();
    connections.end_after(options.drain);
  });
}

}  // namespace ramie::net
