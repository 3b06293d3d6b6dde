#include "websocket/websocket.hpp"

#include "server/h1.hpp"
#include "websocket/deflate.hpp"
#include "wire/text.hpp"

#include <ramie/runtime.hpp>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <cstring>

namespace ramie::http {

namespace {

constexpr std::size_t deflated_least = 512;  // shorter messages are sent as they are; a guess

bool may_be_received(unsigned code) noexcept {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
         (code >= 3000 && code < 5000);
}

void apply_mask(char* bytes, std::size_t n, const unsigned char (&mask)[4], std::uint64_t at) noexcept {
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(bytes[i] ^ static_cast<char>(mask[(at + i) % 4]));
}

}  // namespace

bool is_utf8(std::string_view s) noexcept {
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c < 0x80) {
      ++i;
      continue;
    }
    const std::size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc2 || c > 0xf4 || i + more >= s.size()) return false;
    std::uint32_t point = c & (0x3fu >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(s[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3fu);
    }
    if ((more == 2 && (point < 0x800 || (point >= 0xd800 && point < 0xe000))) ||
        (more == 3 && (point < 0x10000 || point > 0x10ffff)))
      return false;
    i += more + 1;
  }
  return true;
}

std::string websocket_accept(std::string_view key) {
  const std::string text = std::string{key} + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1) throw std::bad_alloc{};
  std::string encoded(28, '\0');
  std::array<unsigned char, 32> base64;
  EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(size));
  std::memcpy(encoded.data(), base64.data(), encoded.size());
  return encoded;
}

// ---- sending -------------------------------------------------------------------------------------------------------

void websocket::state::send_frame(opcode code, std::string_view payload, bool packed) {
  std::string head;
  head += static_cast<char>(0x80u | (packed ? 0x40u : 0u) | code);
  const unsigned masked = is_client ? 0x80u : 0u;
  if (payload.size() < 126) {
    head += static_cast<char>(masked | payload.size());
  } else {
    const bool wide = payload.size() > 0xffff;
    head += static_cast<char>(masked | (wide ? 127u : 126u));
    for (int shift = wide ? 56 : 8; shift >= 0; shift -= 8) head += static_cast<char>(payload.size() >> shift);
  }
  std::string copy;
  if (is_client) {
    unsigned char mask[4];
    if (RAND_bytes(mask, sizeof mask) != 1) throw net::io_error{"WebSocket mask", tls::errc::protocol};
    head.append(reinterpret_cast<const char*>(mask), sizeof mask);
    copy = payload;
    apply_mask(copy.data(), copy.size(), mask, 0);
    payload = copy;
  }
  sending.acquire();
  const released_at_end last{sending};
  std::size_t written = 0;
  try {
    if (close_sent.load()) throw net::io_error{"WebSocket send", net::io_errc::closed};
    w->write(head, std::as_bytes(std::span{payload}), &written);
    if (code == closing) close_sent.store(true);
  } catch (const net::io_error&) {
    throw;
  } catch (const cancelled&) {
    if (written != 0) break_off();  // W2
    throw;
  } catch (...) {
    break_off();
    throw;
  }
}

/// By the holder of `sending`.
void websocket::state::break_off() {
  close_sent.store(true);
  w->stream.close();
}

/// For what is not worth an error once another fiber has closed.
void websocket::state::send_unless_closed(opcode code, std::string_view payload) {
  if (close_sent.load()) return;
  try {
    send_frame(code, payload);
  } catch (const net::io_error& e) {
    if (e.code() != net::io_errc::closed) throw;
  }
}

void websocket::state::send_message(opcode code, std::string_view payload) {
  if (deflate && options.compress && payload.size() >= deflated_least && payload.size() < (std::size_t{1} << 30)) {
    const std::string packed = deflated(payload, window_bits);
    if (packed.size() < payload.size()) return send_frame(code, packed, true);
  }
  send_frame(code, payload);
}

void websocket::state::send_close(std::uint16_t code, std::string_view reason) {
  std::string payload;
  if (code != 1005) {
    payload += static_cast<char>(code >> 8);
    payload += static_cast<char>(code & 0xff);
    payload += reason.substr(0, 123);
  }
  send_unless_closed(closing, payload);
}

void websocket::state::fail(std::uint16_t code, const char* why) {
  failed = true;
  try {
    send_close(code, {});
  } catch (const error&) {
    // It is over in any case.
  } catch (const cancelled&) {
    w->stream.close();
    throw;
  }
  w->stream.close();
  throw net::io_error{std::string{"WebSocket: "} + why, std::error_code{EPROTO, std::system_category()}};
}

// ---- receiving -----------------------------------------------------------------------------------------------------

void websocket::state::more_input() {
  std::size_t n = 0;
  try {
    n = w->fill(options.idle);
  } catch (const timeout_error&) {
    if (pinged) {
      w->stream.close();
      throw;
    }
    send_frame(ping, {});
    pinged = true;
    return;
  }
  if (n == 0) throw net::io_error{"WebSocket", net::io_errc::unexpected_end};
  pinged = false;
}

/// False if more input is needed.
bool websocket::state::read_frame_head() {
  const std::string_view in = w->input();
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(in[i]); };
  if (in.size() < 2) return false;
  const unsigned size7 = byte(1) & 0x7fu;
  const bool masked = (byte(1) & 0x80) != 0;
  const std::size_t size_bytes = size7 == 126 ? 2 : size7 == 127 ? 8 : 0;
  const std::size_t head = 2 + size_bytes + (masked ? 4 : 0);
  const unsigned code = byte(0) & 0x0fu;
  now = {};
  now.last = (byte(0) & 0x80) != 0;
  now.packed = (byte(0) & 0x40) != 0;
  const bool is_control = (code & 8) != 0;
  if ((byte(0) & 0x30) != 0 || (code > 2 && code < 8) || code > 10) fail(1002, "a frame of an unknown kind");
  if (masked == is_client) fail(1002, masked ? "a server may not mask" : "a client has to mask");
  if (is_control && (!now.last || size7 > 125 || now.packed)) fail(1002, "a broken control frame");
  if (now.packed && (!deflate || code == more)) fail(1002, "compression was not agreed");
  if (!is_control && (code == more) != in_message) fail(1002, "a fragment out of place");
  if (in.size() < head) return false;
  now.size = size7;
  if (size_bytes != 0) {
    now.size = 0;
    for (std::size_t i = 0; i < size_bytes; ++i) now.size = now.size << 8 | byte(2 + i);
    if (now.size < (size_bytes == 2 ? 126u : 65536u) || now.size >> 63 != 0) fail(1002, "a broken length");
  }
  if (masked) std::memcpy(now.mask, in.data() + 2 + size_bytes, 4);
  now.code = static_cast<opcode>(code);
  w->consume(head);
  if (!is_control) {
    if (now.size > options.message_most || partial.size() + now.size > options.message_most)
      fail(1009, "a message that is too long");
    if (code != more) {
      in_message = true;
      message_packed = now.packed;
      message_text = code == text;
    }
  }
  return true;
}

/// What has come of the frame's payload. False if more input is needed.
bool websocket::state::read_payload() {
  std::string& to = (now.code & 8) != 0 ? control : partial;
  const std::string_view in = w->input();
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(in.size(), now.size));
  const std::size_t before = to.size();
  to.append(in.substr(0, n));
  w->consume(n);
  if (!is_client) {
    apply_mask(to.data() + before, n, now.mask, 0);
    // The mask goes on where this part ended.
    unsigned char turned[4];
    for (std::size_t i = 0; i < 4; ++i) turned[i] = now.mask[(i + n) % 4];
    std::memcpy(now.mask, turned, 4);
  }
  now.size -= n;
  return now.size == 0;
}

void websocket::state::on_control() {
  if (now.code == ping) {
    send_unless_closed(pong, control);
  } else if (now.code == closing) {
    std::uint16_t code = 1005;
    if (control.size() == 1) fail(1002, "a broken close");
    if (control.size() >= 2) {
      code = static_cast<std::uint16_t>(static_cast<unsigned char>(control[0]) << 8 |
                                        static_cast<unsigned char>(control[1]));
      if (!may_be_received(code)) fail(1002, "a close code that may not be sent");
      if (!is_utf8(std::string_view{control}.substr(2))) fail(1007, "text that is not UTF-8");
    }
    peer_code.store(code);
    try {
      send_close(code, {});
    } catch (const cancelled&) {
      peer_code.store(0);  // W3
      throw;
    }
    w->stream.shutdown_write();
  }
  control.clear();
}

std::optional<websocket_message> websocket::state::finish_message() {
  websocket_message m{std::exchange(partial, {}), message_text};
  in_message = false;
  if (message_packed) {
    std::optional<std::string> plain = inflated(m.data, options.message_most);
    if (!plain) fail(1007, "broken compression");
    if (plain->size() > options.message_most) fail(1009, "a message that is too long");
    m.data = std::move(*plain);
  }
  if (m.is_text && !is_utf8(m.data)) fail(1007, "text that is not UTF-8");
  return m;
}

std::optional<websocket_message> websocket::receive() {
  state& s = *state_;
  for (;;) {
    if (s.failed) throw net::io_error{"WebSocket", net::io_errc::closed};  // what followed has no meaning
    if (s.peer_code.load() != 0) return std::nullopt;
    if (!s.in_frame) {
      if (!s.read_frame_head()) {
        s.more_input();
        continue;
      }
      s.in_frame = true;
    }
    if (!s.read_payload()) {
      s.more_input();
      continue;
    }
    const bool is_control = (s.now.code & 8) != 0;
    if (is_control) s.on_control();
    s.in_frame = false;
    if (!is_control && s.now.last) return s.finish_message();
  }
}

// ---- the rest ------------------------------------------------------------------------------------------------------

websocket::websocket(std::unique_ptr<state> made) noexcept : state_{std::move(made)} {}
websocket::websocket(websocket&&) noexcept = default;
websocket& websocket::operator=(websocket&&) noexcept = default;
websocket::~websocket() = default;

void websocket::send(std::string_view text) {
  if (!is_utf8(text)) throw invalid_argument{"ramie: http: websocket: send: text has to be UTF-8; see send_binary"};
  state_->send_message(state::text, text);
}
void websocket::send_binary(std::string_view bytes) { state_->send_message(state::binary, bytes); }

void websocket::close(std::uint16_t code, std::string_view reason) {
  if ((code != 1005 && !may_be_received(code)) || reason.size() > 123 || !is_utf8(reason))
    throw invalid_argument{"ramie: http: websocket: close: code " + std::to_string(code) +
                           " or its reason; 1000 to 1014 and 3000 to 4999 are possible, and 123 bytes of UTF-8"};
  state_->send_close(code, reason);
}

std::uint16_t websocket::close_code() const noexcept { return state_->peer_code.load(); }
bool websocket::is_compressed() const noexcept { return state_->deflate; }

void upgrade_to_websocket(exchange& x, connection& c, const std::function<void(request&, websocket&)>& f,
                          const std::function<void()>& agreed) {
  const request& rq = x.rq;
  const auto has = [&](std::string_view name, std::string_view wanted) {
    const auto value = rq.header(name);
    return value && any_item(*value, [&](std::string_view item) { return same_name(item, wanted); });
  };
  if (!has("upgrade", "websocket") || !has("connection", "upgrade")) {
    x.rs.header("sec-websocket-version", "13");
    throw status_error{426, "this is a WebSocket"};
  }
  if (rq.header("sec-websocket-version") != std::string_view{"13"}) {
    x.rs.header("sec-websocket-version", "13");
    throw status_error{426, "version 13 of WebSocket is spoken here"};
  }
  const std::string_view key = rq.header("sec-websocket-key").value_or("");
  std::array<unsigned char, 32> decoded;
  if (key.size() != 24 || !key.ends_with("==") ||
      EVP_DecodeBlock(decoded.data(), reinterpret_cast<const unsigned char*>(key.data()), 24) != 18)
    throw status_error{400, "sec-websocket-key is broken"};
  if (rq.content_length().value_or(0) != 0 || rq.header("transfer-encoding"))
    throw status_error{400, "a WebSocket's request has no body"};
  // A page of another site could use this one's cookies.
  if (const auto origin = rq.header("origin")) {
    const std::size_t host = origin->find("://");
    if (host == std::string_view::npos || !same_name(origin->substr(host + 3), rq.authority()))
      throw status_error{403, "not from this origin"};
  }
  auto s = std::make_unique<websocket::state>(
      c,
      websocket_options{
          .message_most = x.limits.websocket_message_most, .idle = x.limits.idle, .write_time = x.limits.write_time},
      false);
  std::string answer =
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: " +
      websocket_accept(key) + "\r\n";
  if (const auto offers = rq.header("sec-websocket-extensions"))
    if (const auto terms = accept_deflate(*offers)) {
      s->deflate = true;
      s->window_bits = terms->window_bits;
      answer += "sec-websocket-extensions: " + terms->answer + "\r\n";
    }
  answer += "\r\n";
  agreed();
  c.write(answer);
  websocket connected{std::move(s)};
  f(x.rq, connected);
}

}  // namespace ramie::http
