// The load generator: many connections to an echo server, driven by one thread with one epoll set.
//
// Closed loop (`rate` 0): each connection sends a message, waits until all of it has come back, and sends the next.
// Open loop: request number j is due at j / rate, on connection j mod connections. It is sent when it is due, or as
// soon as the connection's request before it has been answered; its time counts from when it was due. So a server that
// stops for a second is charged for all requests that were due in that second (no coordinated omission, a term of Gil
// Tene's).
//
// Every message has contents of its own, and what comes back is compared byte for byte. Of answers to HTTP requests,
// which are all alike, only status and length are looked at.
#pragma once

#include <lab/load/histogram.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace ramie::lab {

enum class talk : std::uint8_t {
  bytes,      // what is sent comes back
  http,       // requests for `path`, by HTTP/1.1
  websocket,  // messages that come back, on a WebSocket at `path`
};

struct load_options {
  std::uint16_t port = 0;  // on the loopback
  talk how = talk::bytes;
  std::string path{};
  int connections = 50;
  int size = 64;          // bytes of a message
  std::int64_t rate = 0;  // requests a second of all connections together; 0: closed loop
};

struct load_outcome {
  double seconds = 0;
  std::int64_t requests = 0;  // answered
  histogram times;
};

class load_driver {
 public:
  /// Opens all connections, and sends one message over each. Throws lab_error if one cannot be opened.
  explicit load_driver(const load_options& options);
  load_driver(const load_driver&) = delete;
  load_driver& operator=(const load_driver&) = delete;
  ~load_driver();

  /// Drives for `time`, and then until every request under way has been answered. Throws lab_error if a connection
  /// breaks or answers with other bytes.
  load_outcome run(std::chrono::nanoseconds time);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace ramie::lab
