// A connection of HTTP/2, by nghttp2: frames, HPACK and flow control are its business, fibers and limits are ours.
//
//  S1 `lock` guards the session and all streams. nghttp2's callbacks run under it; nobody suspends there or makes a
//     system call. It is held briefly, so a mutex, whose waits are not cancelled, will do.
//  S2 The connection's fiber reads. Each request is handled by a fiber in the connection's scope, at most streams_most at a
//     time, counted by handlers that run, not by streams: a client that resets a stream does not get another handler for
//     it at once. More requests, of which there are as many as open streams at most, wait in `ready_`, and a handler that
//     has ended goes on with the first of them: a client that sees a response may be faster than the handler's end. A client that resets many more than it lets finish is sent away.
//  S3 What the session wants to send is taken and written by the holder of `sending`; any fiber that has changed
//     something sets `to_look_again` and tries to become the holder. If it cannot, the holder sees that mark after it has
//     released `sending`, at the latest. A write that fails or takes too long ends the connection, for half a frame may
//     have been sent. The holder may be cancelled, though, by a deadline in a handler, say: what it has not written stays
//     in `under_way_`, and a fiber of the connection's scope goes on with it.
//  S4 Back-pressure: a handler adds to its stream's `out` while that has less than out_most bytes, and waits otherwise;
//     the session takes from it as the client's windows allow. The client's windows are opened by what handlers read.
//  S5 A stream is deleted when nghttp2 has closed it and its handler has ended.
#pragma once

#include "server/core.hpp"
#include "wire/h2_session.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ramie::http {

class h2_connection;

class h2_exchange final : public exchange {
 public:
  h2_exchange(h2_connection& of, std::int32_t id);

  std::size_t read_body(std::span<std::byte> into) override;
  void send_head(int status, std::string_view fields, std::optional<std::uint64_t> length,
                 std::string_view body) override;
  void send_part(std::span<const std::byte> part) override;
  void send_end() override;
  void become_websocket(const std::function<void(request&, websocket&)>&) override;
  [[nodiscard]] bool is_over() const noexcept override;
  [[nodiscard]] const net::endpoint& peer() const noexcept override;
  [[nodiscard]] bool is_whole() const noexcept override;

 private:
  friend class h2_connection;
  [[nodiscard]] bool make_request();
  void queue_part(std::span<const std::byte> part);
  void queue_pieces(std::span<const std::byte>& part);
  [[nodiscard]] bool is_unfinished() const;

  h2_connection& c_;
  const std::int32_t id_;
  cancel_scope life_;                                      // around its handler
  std::deque<std::pair<std::string, std::string>> lines_;  // of the request's head
  std::size_t head_size_ = 0;
  int refused_ = 0;                             // a status
  bool is_head_ = false, is_bodiless_ = false;  // the second: a handler goes on with a body that is not sent

  // Guarded by the connection's lock.
  std::string in_, out_;
  std::size_t out_at_ = 0;
  std::optional<std::uint64_t> left_;  // of a body whose length is known
  bool request_ended_ = false, response_ended_ = false, closed_ = false, running_ = false, unread_ = false;
  event arrived_{event_reset::automatic}, drained_{event_reset::automatic};
};

class h2_connection {
 public:
  explicit h2_connection(connection& c);
  h2_connection(const h2_connection&) = delete;
  h2_connection& operator=(const h2_connection&) = delete;
  ~h2_connection();

  void run();

 private:
  friend class h2_exchange;
  struct callbacks;

  void read();
  void rest();
  void start(scope& fibers, std::vector<h2_exchange*>& all);
  void handle(h2_exchange& x);
  h2_exchange* next_after(h2_exchange& x);
  void reset(h2_exchange& x, std::uint32_t code);
  void flush();
  void flush_all();
  void send_all();
  void say_good_bye();
  void end_if_drained();
  void forget(h2_exchange& x);

  connection& c_;
  scope* fibers_ = nullptr;
  mutex lock_;
  h2_session session_;
  std::map<std::int32_t, std::unique_ptr<h2_exchange>> streams_;
  std::deque<h2_exchange*> ready_;  // their heads are complete
  std::uint32_t running_ = 0;
  std::int64_t resets_ = 0;  // by the client, less responses that were completed
  std::optional<std::chrono::steady_clock::time_point> head_deadline_;
  std::int32_t newest_ = -1;                             // the highest number of a stream
  std::pair<std::int32_t, std::int32_t> skipped_{0, 0};  // the last numbers that the client left out: from, up to
  bool leaving_ = false;
  bool to_look_again_ = false;  // S3
  counting_semaphore<1> sending_{1};
  std::string under_way_;
  bool owes_ =
      false;  // a write was cancelled: the stream may keep what it has taken until the next, as that of TLS does
};

inline const net::endpoint& h2_exchange::peer() const noexcept { return c_.c_.peer(); }

}  // namespace ramie::http
