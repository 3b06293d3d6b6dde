// How the end of a response's body is known (RFC 9112, 6.3), and when a connection may be used again:
//
//  C1 No body: the answer to HEAD, 204, 304. Chunks, or one length, by the same parser as a server's; neither: up to the
//     end of the connection, which is then over. Both are refused.
//  C2 A connection is kept if the body was read to its end, nothing came behind it, and neither side said "close".
#include "client/pool.hpp"
#include "wire/parser.hpp"
#include "wire/text.hpp"

#include <ramie/runtime.hpp>

namespace ramie::http {

namespace {

class response_parser final : public message_parser<false> {
 public:
  using message_parser::message_parser;
  int status = 0;

 private:
  void on_request_impl(beast::http::verb, view, view, int, error_code&) override {}
  void on_response_impl(int code, view, int, error_code&) override { status = code; }
};

class h1_transfer final : public transfer {
 public:
  h1_transfer(std::shared_ptr<client_pool> of, std::string key, std::unique_ptr<wire> w)
      : of_{std::move(of)}, key_{std::move(key)}, w_{std::move(w)} {}

  void send(const outgoing& what);
  void read_head(std::string_view method);
  std::size_t read(std::span<std::byte> into) override;
  [[nodiscard]] bool has_begun() const noexcept { return !head_.empty() || !w_->input().empty(); }

 private:
  void end();

  std::shared_ptr<client_pool> of_;
  std::string key_, head_;
  std::unique_ptr<wire> w_;  // null once the body has ended
  std::unique_ptr<response_parser> parser_;
  bool to_eof_ = false;
};

void h1_transfer::send(const outgoing& what) {
  const url& to = *what.to;
  std::string head = what.method + " " + (what.absolute ? to.scheme + "://" + to.authority() : std::string{}) +
                     to.target + " HTTP/1.1\r\nhost: " + to.authority() + "\r\n";
  for (const auto& [name, value] : what.fields) head += name + ": " + value + "\r\n";
  if (what.body) head += "content-length: " + std::to_string(what.body->size()) + "\r\n";
  head += "\r\n";
  w_->write(head, what.body ? std::as_bytes(std::span{*what.body}) : std::span<const std::byte>{});
}

/// C1. Skips 1xx.
void h1_transfer::read_head(std::string_view method) {
  const client_options& o = of_->options;
  const auto deadline = std::chrono::steady_clock::now() + o.response_time;
  do {
    std::size_t end = 0;
    while ((end = w_->input().find("\r\n\r\n")) == std::string_view::npos)
      if (w_->fill_until(deadline) == 0) {
        if (w_->input().empty()) throw net::io_error{"HTTP response", net::io_errc::unexpected_end};
        refuse_response("its head ends, or does not");
      }
    head_.assign(w_->input().substr(0, end + 4));
    w_->consume(end + 4);
    fields.clear();
    parser_ = std::make_unique<response_parser>(fields, o.headers_most);
    parser_->skip(method == "HEAD");
    beast::error_code ec;
    parser_->put(boost::asio::const_buffer{head_.data(), head_.size()}, ec);
    if (ec && ec != beast::http::error::need_more) refuse_response("its head is broken");
    if (!parser_->is_header_done()) refuse_response("its head is broken");
    if (parser_->status == 101) refuse_response("an upgrade that was not asked for");
  } while (parser_->status < 200);
  status = parser_->status;
  int lengths = 0, codings = 0;
  for (const header_field& f : fields) {
    lengths += same_name(f.name, "content-length") ? 1 : 0;
    if (same_name(f.name, "transfer-encoding")) {
      ++codings;
      if (!same_name(f.value, "chunked")) refuse_response("a transfer-encoding that is not known");
    }
  }
  if (lengths + codings > 1) refuse_response("more than one length");
  to_eof_ = parser_->need_eof();
  if (parser_->is_done()) end();
}

/// C2.
void h1_transfer::end() {
  if (w_ == nullptr) return;
  std::unique_ptr<wire> used = std::move(w_);
  if (parser_->keep_alive() && !to_eof_ && used->input().empty()) of_->keep(key_, std::move(used));
}

std::size_t h1_transfer::read(std::span<std::byte> into) {
  if (w_ == nullptr || into.empty()) return 0;
  response_parser& p = *parser_;
  p.into = into;
  p.taken = 0;
  while (p.taken == 0 && !p.is_done()) {
    beast::error_code ec = beast::http::error::need_more;
    if (const std::string_view there = w_->input(); !there.empty())
      w_->consume(p.put(boost::asio::const_buffer{there.data(), there.size()}, ec));
    if (ec == beast::http::error::need_more) {
      if (w_->fill(of_->options.response_time) != 0) continue;
      if (!to_eof_) throw net::io_error{"HTTP body", net::io_errc::unexpected_end};
      p.put_eof(ec);
    } else if (ec) {
      refuse_response("its body is broken");
    }
  }
  const std::size_t n = p.taken;
  if (p.is_done() && n == 0) end();
  return n;
}

}  // namespace

void refuse_response(const char* why) {
  throw net::io_error{std::string{"HTTP response: "} + why, std::error_code{EPROTO, std::system_category()}};
}

std::unique_ptr<transfer> start_1(std::shared_ptr<client_pool> of, std::string key, std::unique_ptr<wire> w,
                                  const outgoing& what) {
  auto made = std::make_unique<h1_transfer>(std::move(of), std::move(key), std::move(w));
  try {
    made->send(what);
    made->read_head(what.method);
  } catch (const net::io_error& e) {
    if (made->has_begun()) throw;
    throw not_begun{"HTTP request", e.code(), false};
  }
  return made;
}

}  // namespace ramie::http
