// How the end of a response's body is known (RFC 9112, 6.3), and when a connection may be used again:
//
//  C1 No body: the answer to HEAD, 204, 304. Chunks, or one length, judged as a server's; neither: up to the end of the
//     connection, which is then over. Both are refused.
//  C2 A connection is kept if the body was read to its end, nothing came behind it, and neither side said "close".
#include "client/pool.hpp"
#include "wire/body.hpp"
#include "wire/parser.hpp"
#include "wire/text.hpp"

#include <ramie/runtime.hpp>

#include <algorithm>

namespace ramie::http {

namespace {

class response_parser final : public message_parser<false> {
 public:
  using message_parser::message_parser;
  int status = 0, version = 11;

 private:
  void on_request_impl(beast::http::verb, view, view, int, error_code&) override {}
  void on_response_impl(int code, view, int v, error_code&) override {
    status = code;
    version = v;
  }
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
  [[nodiscard]] bool parse_head(bool to_head);
  void judge_body(bool to_head);
  void end();

  std::shared_ptr<client_pool> of_;
  std::string key_, head_;
  std::unique_ptr<wire> w_;  // null once the body has ended
  body_reader body_;
  bool keep_ = false;
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
    if (!parse_head(method == "HEAD")) refuse_response("its head is broken");
    if (status == 101) refuse_response("an upgrade that was not asked for");
  } while (status < 200);
  judge_body(method == "HEAD");
  if (body_.is_done()) end();
}

/// RFC 9112, 5.2: a client reads what is folded. In place, as fields are views; never into the first line.
void unfold(std::string& head) noexcept {
  for (std::size_t i = head.find("\r\n") + 2; (i = head.find("\r\n", i)) != std::string::npos; i += 2)
    if (head[i + 2] == ' ' || head[i + 2] == '\t') head[i] = head[i + 1] = ' ';
}

bool h1_transfer::parse_head(bool to_head) {
  unfold(head_);
  fields.clear();
  if (!has_whole_lines(head_)) return false;
  response_parser parser{fields, of_->options.headers_most};
  parser.skip(to_head);
  if (!parser.parse(head_)) return false;
  status = parser.status;
  // RFC 9112, 6.1: a server of HTTP/1.0 that sends chunks may not mean what it says.
  keep_ = parser.keep_alive() && (parser.version >= 11 || !find_header(fields, "transfer-encoding"));
  return std::all_of(fields.begin(), fields.end(), [](const header_field& f) { return is_field_value(f.value); });
}

/// C1.
void h1_transfer::judge_body(bool to_head) {
  int lengths = 0, codings = 0;
  std::optional<std::uint64_t> length;
  for (const header_field& f : fields) {
    if (same_name(f.name, "content-length")) {
      ++lengths;
      length = parse_number(f.value);
      if (!length) refuse_response("a content-length that is no number");
    }
    if (same_name(f.name, "transfer-encoding")) {
      ++codings;
      if (!same_name(f.value, "chunked")) refuse_response("a transfer-encoding that is not known");
    }
  }
  if (lengths + codings > 1) refuse_response("more than one length");
  if (to_head || status == 204 || status == 304) body_ = {};
  else if (codings != 0) body_ = body_reader::in_chunks();
  else if (length) body_ = body_reader::of_length(*length);
  else body_ = body_reader::to_end_of_connection();
}

/// C2.
void h1_transfer::end() {
  if (w_ == nullptr) return;
  std::unique_ptr<wire> used = std::move(w_);
  if (keep_ && !body_.ends_with_connection() && used->input().empty()) of_->keep(key_, std::move(used));
}

std::size_t h1_transfer::read(std::span<std::byte> into) {
  if (w_ == nullptr || into.empty()) return 0;
  for (;;) {
    const body_reader::progress p = body_.put(w_->input(), into);
    w_->consume(p.used);
    if (body_.is_broken()) refuse_response("its body is broken");
    if (p.data != 0) return p.data;
    if (body_.is_done()) break;
    if (w_->fill(of_->options.response_time) != 0) continue;
    if (!body_.ends_with_connection()) throw net::io_error{"HTTP body", net::io_errc::unexpected_end};
    break;
  }
  end();
  return 0;
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
