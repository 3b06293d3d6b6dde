// Chunks of HTTP/1 by the component's own reader and by Beast's parser: what the own one accepts, Beast has to accept
// with the same data and the same end (but for extensions that are none), and the own one says the same however the
// bytes are cut.
#include "input.hpp"

#include "wire/body.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>
#include <string>
#include <string_view>

namespace beast = boost::beast;
using ramie::http::body_reader;

namespace {

constexpr std::string_view parts[] = {
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "1\r\nx\r\n",
    "2\r\n\r\n\r\n",
    "003;a=b\r\nabc\r\n",
    "1;a=\"b\"\r\ny\r\n",
    "0\r\n",
    "\r\n",
    "\r",
    "\n",
    "t: v\r\n",
    "content-length: 3\r\n",
    " x\r\n",
    "5",
    "a",
    "ffffffffffffffff",
    "7fffffffffffffff\r\n",
    ";",
    "\"",
    " ",
    "\t",
    "hello",
    "GET / HTTP/1.1\r\n\r\n",
    ":",
    std::string_view{"\0", 1},
    "\x7f",
};

struct outcome {
  std::string data;
  std::size_t used = 0;
  bool done = false, broken = false, bad_extension = false;
};

outcome own(std::string_view text, std::size_t piece) {
  outcome all;
  body_reader r = body_reader::in_chunks();
  std::array<std::byte, 8> room;
  for (std::size_t there = 0; !r.is_done() && !r.is_broken();) {
    const body_reader::progress p = r.put(text.substr(all.used, there - all.used), room);
    all.used += p.used;
    all.data.append(reinterpret_cast<const char*>(room.data()), p.data);
    if (p.used != 0 || p.data != 0) continue;
    if (there == text.size()) break;
    there = std::min(text.size(), there + piece);
  }
  all.done = r.is_done();
  all.broken = r.is_broken();
  return all;
}

outcome of_beast(std::string_view text) {
  const std::string all = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + std::string{text};
  beast::http::request_parser<beast::http::string_body> parser;
  parser.eager(true);
  parser.body_limit(boost::none);
  std::size_t used = 0;
  beast::error_code ec;
  while (used < all.size() && !parser.is_done()) {
    used += parser.put(boost::asio::const_buffer{all.data() + used, all.size() - used}, ec);
    if (ec) break;
  }
  const std::size_t head = all.size() - text.size();
  return {parser.get().body(), used < head ? 0 : used - head, parser.is_done(), static_cast<bool>(ec),
          ec == beast::http::error::bad_chunk_extension};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in{data, size};
  std::string text;
  while (!in.empty() && text.size() < 2048) {
    const unsigned which = in.pick(255);
    if (which < 240) text += parts[which % std::size(parts)];
    else text += static_cast<char>(in.pick(255));
  }
  const outcome whole = own(text, text.size()), bytewise = own(text, 1);
  fuzz::require(whole.done == bytewise.done && whole.broken == bytewise.broken && whole.data == bytewise.data &&
                    whole.used == bytewise.used,
                "a body in one piece and byte by byte");
  if (!whole.done) return 0;
  const outcome other = of_beast(text);
  if (other.bad_extension) return 0;  // the own reader does not look whether they are any
  fuzz::require(other.done && !other.broken, "a body is accepted that Beast refuses");
  fuzz::require(other.data == whole.data && other.used == whole.used, "Beast takes another body");
  return 0;
}
