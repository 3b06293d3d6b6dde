// What a server's connections share, and how others end them.
//
//  E1 A connection becomes busy or idle before it looks at `stopping`, and `stop` sets that before it looks at the state:
//     one of them sees the other. An idle one is closed at once; a busy one ends behind its response.
//  E2 One that has not sent a whole request yet is in `unfinished`. The oldest of them is closed when there are too many.
//  E3 If there is no room for a new connection, one is ended that has been without a request for longest, whether it has
//     had one (idle) or not (unfinished), counted in requests of all; if unfinished ones are many (half of their limit),
//     the oldest of them, as these may be an attack. While no room comes of that, others follow. One of HTTP/2 is idle
//     when it has no streams and all is written; it says good bye. serve_one's take no room.
//  E4 A handler whose client is gone is cancelled. A fiber looks round in intervals, at connections for which nothing was
//     done since the look before: no request begun, nothing written. A reset counts at once. An end may also be that of a
//     client that has said all that it wants to say: it counts once it is as old as half_close_grace and was seen
//     several times, as this machine may have stood still. HTTP/2 and idle connections see the end themselves.
#pragma once

#include "server/exchange.hpp"
#include "server/router.hpp"
#include "wire/wire.hpp"

#include <ramie/fiber.hpp>
#include <ramie/http/server.hpp>
#include <ramie/sync.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ramie::http {

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
  // The core's lock:
  std::optional<std::list<newcomer*>::iterator> place_;
  std::uint64_t came_at_ = 0;  // so many requests had come
};

struct server_core {
  explicit server_core(const server_limits& l);

  const server_limits limits;
  router routes;
  struct around {
    std::vector<std::string> below;
    middleware f;
  };
  std::vector<around> around_handlers;
  std::function<void(const request&, const response_summary&)> on_response;
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
  /// Through all middlewares from `at` on, to its handler; or 404, or 405.
  void go_on(exchange& x, std::size_t at);
  void tell(const request& of, const std::exception_ptr& failure);
  /// `from`: what `s` is above, or null.
  void run(net::any_stream s, newcomer* from, bool encrypted, bool must_be_2);
  /// E2. Ends the oldest of the unfinished connections, if there are more than `most`.
  void displace_oldest(std::size_t most) noexcept;
  /// E3. Waits until a connection may be accepted; false: the server stops. Suspends. Throws `cancelled`.
  [[nodiscard]] bool wait_for_room();
  /// E4. Until the server stops. Suspends.
  void look_round();
  template <class Serve>
  void accept_all(net::tcp_listener& from, Serve serve);

 private:
  void answer(exchange& x);
  void make_room() noexcept;
  void close_oldest() noexcept;

  std::mutex telling_;  // of what follows; nobody suspends under it
  std::chrono::steady_clock::time_point tell_again_;
  std::size_t untold_ = 0;
  std::chrono::steady_clock::time_point looked_at_;  // E4; the lock
};

class connection : public wire {
 public:
  connection(server_core& of, net::any_stream s, newcomer* from, bool is_encrypted);
  ~connection();

  /// A whole request is there.
  void is_used() noexcept {
    if (from_ != nullptr) std::exchange(from_, nullptr)->leave_queue();
  }

  /// A request begins. False: the connection has been ended.
  [[nodiscard]] bool begin_request() noexcept { return change(state::idle, state::busy); }
  /// False if it shall end.
  [[nodiscard]] bool end_request() noexcept {
    note_use();
    state_.store(state::idle);
    return !core.stopping.load();
  }
  /// Of HTTP/2, between begin_request and the end: there are no streams, or there are some. The session's lock is held.
  void begin_rest() noexcept {
    if (change(state::busy, state::resting)) note_use();
  }
  void end_rest() noexcept { change(state::resting, state::busy); }
  event leaves;  // set once one of HTTP/2 is to say good bye

  // By others, under the core's lock.
  void end_if_idle() noexcept {
    if (change(state::idle, state::ended)) stream.close();
  }
  [[nodiscard]] bool end_for_room() noexcept;
  [[nodiscard]] bool may_end_for_room() const noexcept {
    const state s = state_.load();
    return takes_room_ && used_at() != 0 && (s == state::idle || s == state::resting);
  }
  /// So many requests had come when it was last used; 0: it has not been.
  [[nodiscard]] std::uint64_t used_at() const noexcept { return used_at_.load(std::memory_order_relaxed); }
  /// E4.
  void look_for_client(std::chrono::steady_clock::time_point now) noexcept;

  [[nodiscard]] const net::endpoint& peer() const noexcept { return peer_; }

  server_core& core;
  const bool encrypted;
  cancel_scope life;  // around all that the connection's fiber does
  std::atomic<bool> is_watched{false};

 private:
  enum class state : unsigned char { idle, busy, resting, ended };
  bool change(state from, state to) noexcept { return state_.compare_exchange_strong(from, to); }
  void note_use() noexcept { used_at_.store(core.requests.load(std::memory_order_relaxed), std::memory_order_relaxed); }

  newcomer* from_;
  const bool takes_room_;
  net::socket_stream* const socket_;  // below all else; null if there is none
  const net::endpoint peer_;
  std::atomic<state> state_{state::idle};
  std::atomic<std::uint64_t> used_at_{0};
  // The core's lock:
  std::uint64_t steps_seen_ = 0;
  int ends_seen_ = 0;
  std::chrono::steady_clock::time_point ended_at_;
};

/// Serves a connection to its end. Throw io_error, timeout_error, `cancelled`.
void serve_1(connection& c);
void serve_2(connection& c);

}  // namespace ramie::http
