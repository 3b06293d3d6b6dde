// WebSocket (RFC 6455), with permessage-deflate (RFC 7692).
#pragma once

#include <ramie/net.hpp>
#include <ramie/tls.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ramie::http {

struct websocket_options {
  std::size_t message_most = 1 << 20;  // bytes of a message after decompression; beyond: closed, 1009
  std::chrono::nanoseconds idle = std::chrono::seconds{60};  // without anything from the peer: a ping, then the end
  std::chrono::nanoseconds write_time = std::chrono::seconds{30};  // until the peer takes the next 64 KiB
  bool compress = true;  // offered, or accepted: messages of 512 bytes or more
};

struct websocket_message {
  std::string data;
  bool is_text = true;
};

/// A connection of messages. One fiber may receive while any number send. Movable; of a moved-from one only the
/// destructor and assignment may be called. The destructor closes the connection without a word: call `close`.
class websocket {
 public:
  websocket(websocket&&) noexcept;
  websocket& operator=(websocket&&) noexcept;
  ~websocket();

  /// To "ws://host:port/path", or "wss://" by TLS. Suspends. Throws io_error, invalid_argument, timeout_error (30 s),
  /// `cancelled`.
  [[nodiscard]] static websocket connect(std::string_view url, const websocket_options& options = {},
                                         const tls::client_context* context = nullptr);

  /// The next message; nullopt once the peer has closed: then `close_code` says why. Answers pings. Suspends. Throws
  /// io_error (the connection broke, or the peer broke the protocol: it is closed with the code for that),
  /// timeout_error (nothing for twice `idle`), `cancelled` (nothing is lost, unless an answer to a ping, a
  /// close or an error was cut off: then the connection is over).
  [[nodiscard]] std::optional<websocket_message> receive();
  /// Suspends while the peer takes nothing. Throws io_error, timeout_error: then the connection is over, for half a
  /// message may have been sent; `cancelled`: the same, unless nothing of it had gone out; invalid_argument if `text`
  /// is not UTF-8.
  void send(std::string_view text);
  void send_binary(std::string_view bytes);
  /// Says that it ends, once; the peer's answer is what `receive` returns nullopt for. Same.
  void close(std::uint16_t code = 1000, std::string_view reason = {});
  /// What the peer gave when it closed; 1005 if nothing, 0 as long as it has not.
  [[nodiscard]] std::uint16_t close_code() const noexcept;
  [[nodiscard]] bool is_compressed() const noexcept;

  struct state;
  explicit websocket(std::unique_ptr<state> made) noexcept;  // for the server

 private:
  std::unique_ptr<state> state_;
};

}  // namespace ramie::http
