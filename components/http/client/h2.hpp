// A client's connection of HTTP/2, which many requests share.
//
//  K1 `lock_` guards nghttp2's session and all calls. Callbacks run under it; nobody suspends there, or makes a system
//     call.
//  K2 Nobody reads but those who wait for something. Each waits for its own call to change and for `reading_`, and
//     whichever gets `reading_` reads for all until its own call has changed. So there is no fiber behind a connection: an
//     idle one costs none, and none is left when the runtime ends. A fiber that is cancelled while it reads loses nothing.
//  K3 What the session wants to send is sent as by a server (S3 in server/h2.hpp), by the holder of `sending_`. It sends what
//     belongs to others, too, so it is not cancelled there, but held up for write_time at most: then the connection is over.
//  K4 A body is taken as it is read: the windows of a call that nobody reads stay closed, and the others go on.
//  K5 A call that is given up is reset. It stays in `calls_` until nghttp2 has closed the stream, since nghttp2 may still
//     ask for its body. The reset is sent with whatever is sent next: destructors do not suspend.
#pragma once

#include "client/transfer.hpp"
#include "wire/h2_session.hpp"
#include "wire/wire.hpp"

#include <ramie/sync.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace ramie::http {

/// One request and its response. Guarded by the connection's lock, but for `changed`.
struct h2_call {
  std::string body;  // of the request
  std::size_t sent = 0;
  std::deque<std::pair<std::string, std::string>> lines;  // of the response's head
  std::size_t head_size = 0;
  int status = 0;
  bool too_large = false, has_head = false, ended = false, closed = false, given_up = false;
  std::uint32_t code = 0;  // why it was closed
  std::string in;
  event changed{event_reset::automatic};
};

class h2_client {
 public:
  h2_client(std::unique_ptr<wire> w, const client_options& o);
  h2_client(const h2_client&) = delete;
  h2_client& operator=(const h2_client&) = delete;

  /// For one more request.
  [[nodiscard]] bool is_usable(std::chrono::steady_clock::time_point now) noexcept;

  /// Sends it, and waits for the head. Suspends. Throws not_begun, io_error, timeout_error, `cancelled`.
  [[nodiscard]] std::pair<std::int32_t, std::shared_ptr<h2_call>> request(const outgoing& what);
  /// Part of the body; 0 at its end. Same.
  std::size_t read(std::int32_t id, h2_call& x, std::span<std::byte> into);
  /// K5.
  void give_up(std::int32_t id, h2_call& x) noexcept;

 private:
  struct callbacks;
  enum class until : unsigned char { head, data };

  std::int32_t submit(const outgoing& what, const std::shared_ptr<h2_call>& x);
  void wait(h2_call& x, until what);
  [[nodiscard]] bool is_due(const h2_call& x, until what) const;
  void read_once(std::chrono::steady_clock::time_point deadline);
  void flush();
  void send_all();
  void break_off() noexcept;

  std::unique_ptr<wire> w_;
  const client_options options_;
  mutex lock_;
  h2_session session_;
  std::map<std::int32_t, std::shared_ptr<h2_call>> calls_;
  bool leaving_ = false;  // no more requests
  bool broken_ = false;
  bool to_look_again_ = false;
  std::chrono::steady_clock::time_point last_used_;
  counting_semaphore<1> reading_{1}, sending_{1};
  std::string under_way_;  // the holder of sending_
};

}  // namespace ramie::http
