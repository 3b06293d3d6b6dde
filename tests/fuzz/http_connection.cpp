// What a client may send to a server of HTTP: requests put together from whole and broken parts, forms, frames of a
// WebSocket, the preface of HTTP/2, and anything else. Whatever it is, the server says the same no matter how the bytes
// are cut into pieces, begins nothing but responses, and answers no more requests than its handlers were called for or
// refused.
#include "input.hpp"

#include <ramie/http.hpp>
#include <ramie/ramie.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace http = ramie::http;

namespace {

constexpr std::string_view parts[] = {
    "GET / HTTP/1.1\r\n",
    "POST /form HTTP/1.1\r\n",
    "POST /body HTTP/1.1\r\n",
    "GET /ws HTTP/1.1\r\n",
    "HEAD / HTTP/1.0\r\n",
    "host: a\r\n",
    "\r\n",
    "\r\n\r\n",
    "content-length: 5\r\n",
    "content-length: 0\r\n",
    "Content-Length: -1\r\n",
    "content-length: 18446744073709551616\r\n",
    "content-length: 5, 5\r\n",
    "transfer-encoding: chunked\r\n",
    "transfer-encoding: gzip, chunked\r\n",
    "transfer-encoding: identity\r\n",
    "Transfer-Encoding : chunked\r\n",
    " folded: x\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "5;a=\"b\"\r\nhello\r\n",
    "fffffffffffffffff\r\n",
    "-1\r\n",
    "0\r\ntrailer: x\r\n\r\n",
    "hello",
    "expect: 100-continue\r\n",
    "connection: close\r\n",
    "connection: keep-alive\r\n",
    "upgrade: websocket\r\nconnection: upgrade\r\n",
    "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    "sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n",
    "content-type: multipart/form-data; boundary=x\r\n",
    "content-length: 62\r\n",
    "--x\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n--x--\r\n",
    "--x\r\n",
    "--x--",
    "\n",
    "\r",
    ":",
    " ",
    "\t",
    "%zz",
    "/../",
    "?a=%4",
    "HTTP/2.0",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\xff",
    "\x81\x85",
    "\xc1\x8a",
    "\x01\x80",
    "\x80\x80",
    "\x88\x82\x03\xe8",
    "\x89\xfe\xff\xff",
    "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff",
    "accept-encoding: br, gzip, zstd\r\n",
    "range: bytes=0-1\r\n",
    "cookie: a=b; c\r\n",
};

std::string text_of(fuzz::input& in) {
  if (in.pick(7) == 0) return in.rest();
  std::string text;
  while (!in.empty() && text.size() < 4096) {
    const unsigned which = in.pick(255);
    if (which < 200) text += parts[which % std::size(parts)];
    else if (which < 250) text += static_cast<char>(which);
    else text += std::string(in.pick(255), static_cast<char>(in.pick(255)));
  }
  return text;
}

/// A connection whose peer has sent `input` and its end.
class memory_stream {
 public:
  struct state {
    std::string input, output;
    std::size_t at = 0, piece = 0;
    bool closed = false;
  };
  explicit memory_stream(state& s) : s_{&s} {}
  std::size_t read_some(std::span<std::byte> into, std::source_location) {
    const std::size_t n = s_->closed ? 0 : std::min({into.size(), s_->piece, s_->input.size() - s_->at});
    if (n != 0) std::memcpy(into.data(), s_->input.data() + s_->at, n);
    s_->at += n;
    return n;
  }
  void write_all(std::span<const iovec> pieces, std::size_t*, std::source_location) {
    for (const iovec& p : pieces) s_->output.append(static_cast<const char*>(p.iov_base), p.iov_len);
    fuzz::require(s_->output.size() < (std::size_t{1} << 24), "a small request has a huge answer");
  }
  void wait_readable(std::source_location) {}
  void shutdown_write() {}
  void close() noexcept { s_->closed = true; }

 private:
  state* s_;
};

/// Without the lines that depend on the time.
std::string lasting(std::string text) {
  for (std::size_t at; (at = text.find("\r\ndate: ")) != std::string::npos;) text.erase(at, 37);
  return text;
}

struct outcome {
  std::string output;
  std::uint64_t handled;
};

outcome serve(const std::string& input, std::size_t piece) {
  memory_stream::state s{.input = input, .output = {}, .piece = piece};
  http::server site{{.header_most = 2048, .body_most = 4096, .websocket_message_most = 4096}};
  std::uint64_t handled = 0;
  site.get("/", [&](http::request&, http::response& rs) {
    ++handled;
    rs.compressed().send(std::string(2000, 'x'));
  });
  site.post("/body", [&](http::request& rq, http::response& rs) {
    ++handled;
    const std::string body = rq.body();
    rs.write(body);
    rs.write("\n");
  });
  site.post("/form", [&](http::request& rq, http::response& rs) {
    ++handled;
    std::string names;
    for (const http::form_part& p : http::read_form(rq)) names += p.name + "\n";
    rs.send(names);
  });
  site.upgrade("/ws", [&](http::request&, http::websocket& w) {
    ++handled;
    while (const auto m = w.receive()) w.send_binary(m->data);
  });
  site.serve_one(memory_stream{s});
  return {std::move(s.output), handled};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ramie::runtime fibers{{.workers = 1}};
  fibers.run([&] {
    fuzz::input in{data, size};
    const std::size_t piece = 1 + in.pick(20);
    const std::string text = text_of(in);
    const outcome whole = serve(text, text.size() + 1), cut = serve(text, piece);
    if (text.starts_with("PRI")) return;  // HTTP/2 sends windows and acknowledgements as it reads
    fuzz::require(whole.output.empty() || whole.output.starts_with("HTTP/1.1 "), "something other than a response");
    fuzz::require(whole.handled == cut.handled, "the pieces decide how many requests there are");
    fuzz::require(lasting(whole.output) == lasting(cut.output), "the pieces decide what is answered");
  });
  return 0;
}
