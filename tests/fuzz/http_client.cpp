// What a server may answer to a client of HTTP: heads and bodies put together from whole and broken parts, frames of
// HTTP/2, and anything else. Whatever it is, the client ends, and says the same no matter how the bytes are cut into
// pieces.
#include "input.hpp"

#include <client/h2.hpp>
#include <client/pool.hpp>
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
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 204 No Content\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.0 304 x\r\n",
    "HTTP/1.1 101 x\r\n",
    "HTTP/2.0 200 x\r\n",
    "\r\n",
    "\r\n\r\n",
    "content-length: 5\r\n",
    "content-length: 0\r\n",
    "Content-Length: -1\r\n",
    "content-length: 18446744073709551616\r\n",
    "transfer-encoding: chunked\r\n",
    "transfer-encoding: gzip, chunked\r\n",
    " folded: x\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "fffffffffffffffff\r\n",
    "-1\r\n",
    "0\r\ntrailer: x\r\n\r\n",
    "hello",
    "connection: close\r\n",
    "location: /\r\n",
    "\n",
    "\r",
    ":",
    " ",
    "\xff",
};
using namespace std::string_view_literals;
constexpr std::string_view frames[] = {
    "\0\0\0\4\0\0\0\0\0"sv,                   // SETTINGS
    "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\0"sv,       // no streams at a time
    "\0\0\0\4\1\0\0\0\0"sv,                   // acknowledged
    "\0\0\1\1\4\0\0\0\1\x88"sv,               // :status 200
    "\0\0\1\1\5\0\0\0\1\x88"sv,               // and the end
    "\0\0\1\1\0\0\0\0\1\x88"sv,               // CONTINUATION follows
    "\0\0\1\x9\4\0\0\0\1\x89"sv,              // 204
    "\0\0\7\1\4\0\0\0\1\x48\3100\x40\1x"sv,   // 100, and broken
    "\0\0\5\0\0\0\0\0\1hello"sv,              // DATA
    "\0\0\5\0\1\0\0\0\1hello"sv,              // the last
    "\0\0\0\0\1\0\0\0\1"sv,                   // empty
    "\0\0\5\0\x8\0\0\0\1\4hell"sv,            // padded
    "\0\0\4\3\0\0\0\0\1\0\0\0\7"sv,           // REFUSED_STREAM
    "\0\0\4\3\0\0\0\0\1\0\0\0\0"sv,           // NO_ERROR
    "\0\0\x8\6\0\0\0\0\0pingping"sv,          // PING
    "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\0"sv,  // GOAWAY, none was looked at
    "\0\0\x8\7\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\0"sv,
    "\0\0\4\x8\0\0\0\0\0\0\0\1\0"sv,  // WINDOW_UPDATE
    "\0\0\4\x8\0\0\0\0\1\x7f\xff\xff\xff"sv,
    "\0\0\4\5\4\0\0\0\1\0\0\0\2"sv,  // PUSH_PROMISE
};

std::string text_of(fuzz::input& in, bool is_2) {
  if (in.pick(7) == 0) return in.rest();
  std::string text;
  while (!in.empty() && text.size() < 4096) {
    const unsigned which = in.pick(255);
    if (which < 200) text += is_2 ? frames[which % std::size(frames)] : parts[which % std::size(parts)];
    else if (which < 250) text += static_cast<char>(which);
    else text += std::string(in.pick(255), static_cast<char>(in.pick(255)));
  }
  return text;
}

/// A connection whose peer has sent `input` and its end.
class memory_stream {
 public:
  memory_stream(const std::string& input, std::size_t piece) : input_{&input}, piece_{piece} {}
  std::size_t read_some(std::span<std::byte> into, std::source_location) {
    const std::size_t n = std::min({into.size(), piece_, input_->size() - at_});
    if (n != 0) std::memcpy(into.data(), input_->data() + at_, n);
    at_ += n;
    return n;
  }
  void write_all(std::span<const iovec> pieces, std::size_t*, std::source_location) {
    for (const iovec& p : pieces) written_ += p.iov_len;
    fuzz::require(written_ < (std::size_t{1} << 24), "a small answer makes the client say much");
  }
  void wait_readable(std::source_location) {}
  void shutdown_write() {}
  void close() noexcept { at_ = input_->size(); }

 private:
  const std::string* input_;
  std::size_t piece_, at_ = 0, written_ = 0;
};

/// What the client makes of it.
std::string ask(const std::string& input, std::size_t piece, bool is_2, bool head) {
  static const auto pool = std::make_shared<http::client_pool>(
      http::client_options{
          .header_most = 2048, .headers_most = 20, .body_most = 100'000, .proxies = http::proxy_options{}},
      std::nullopt);
  static const http::url to = http::parse_url("http://a/");
  const http::outgoing what{.method = head ? "HEAD" : "POST", .to = &to, .body = "a body"};
  auto w =
      std::make_unique<http::wire>(memory_stream{input, piece}, pool->options.header_most, pool->options.write_time);
  std::string said;
  try {
    const std::unique_ptr<http::transfer> t =
        is_2 ? http::start_2(std::make_shared<http::h2_client>(std::move(w), pool->options), what)
             : http::start_1(pool, "http://a:80", std::move(w), what);
    said = std::to_string(t->status);
    for (const http::header_field& f : t->fields) (((said += ' ') += f.name) += ':') += f.value;
    fuzz::require(t->status >= 200 && t->status <= 999, "a status that there is not");
    std::array<std::byte, 100> part;
    while (const std::size_t n = t->read(part)) {
      said.append(reinterpret_cast<const char*>(part.data()), n);
      fuzz::require(said.size() < 1'000'000, "a small answer has a large body");
    }
    return said + " end";
  } catch (const ramie::net::io_error&) {
    // Of what was cut off, more or less may have been read before.
    return "failed";
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ramie::runtime fibers{{.workers = 1}};
  fibers.run([&] {
    fuzz::input in{data, size};
    const bool is_2 = in.pick(1) == 1, head = in.pick(3) == 1;
    const std::size_t piece = 1 + in.pick(20);
    const std::string text = text_of(in, is_2);
    const std::string whole = ask(text, text.size() + 1, is_2, head), cut = ask(text, piece, is_2, head);
    // A call of HTTP/2 is over with its last frame: what is broken behind that is seen only if it came along.
    if (!is_2) fuzz::require(whole == cut, "the pieces decide what the client understands");
  });
  return 0;
}
