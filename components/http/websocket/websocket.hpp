// What a websocket consists of.
//
//  W1 One fiber receives: it alone reads `in`. What it has to say (pongs, the answer to a close) goes the way of `send`.
//  W2 A frame is sent whole by the holder of `sending`, or not begun; the last one closes. If one is cut short, the
//     stream has half a frame, so it is closed.
//  W3 A message is complete, within message_most and, if text, UTF-8, before `receive` returns it. What has come of it is
//     kept in `partial`, and a control frame in `control` until it is answered, so that a cancelled `receive` can be called
//     again.
#pragma once

#include "wire/wire.hpp"

#include <ramie/http/websocket.hpp>
#include <ramie/sync.hpp>

#include <atomic>
#include <string>

namespace ramie::http {

struct websocket::state {
  state(wire& over, const websocket_options& o, bool client) : w{&over}, options{o}, is_client{client} {}
  state(std::unique_ptr<wire> over, const websocket_options& o)
      : owned{std::move(over)}, w{owned.get()}, options{o}, is_client{true} {}

  enum opcode : unsigned char { more = 0, text = 1, binary = 2, closing = 8, ping = 9, pong = 10 };
  struct frame {
    opcode code = more;
    bool last = false, packed = false;
    std::uint64_t size = 0;
    unsigned char mask[4] = {};
  };

  void send_frame(opcode code, std::string_view payload, bool packed = false);
  void send_unless_closed(opcode code, std::string_view payload);
  void break_off();
  void send_message(opcode code, std::string_view payload);
  void send_close(std::uint16_t code, std::string_view reason);
  [[noreturn]] void fail(std::uint16_t code, const char* why);

  bool read_frame_head();
  bool read_payload();
  void on_control();
  std::optional<websocket_message> finish_message();
  void more_input();

  std::unique_ptr<wire> owned;
  wire* w;
  websocket_options options;
  bool is_client;
  bool deflate = false;
  int window_bits = 15;

  counting_semaphore<1> sending{1};
  std::atomic<bool> close_sent{false};
  std::atomic<std::uint16_t> peer_code{0};

  // Of the receiver.
  bool in_frame = false, in_message = false, pinged = false, failed = false;
  frame now;
  std::string control, partial;  // payload of a control frame; of the message
  bool message_packed = false, message_text = false;
};

/// RFC 3629.
[[nodiscard]] bool is_utf8(std::string_view s) noexcept;
/// What a server answers to a client's sec-websocket-key.
[[nodiscard]] std::string websocket_accept(std::string_view key);

}  // namespace ramie::http
