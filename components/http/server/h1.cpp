// HTTP/1.1: what a client sends is judged before it is used.
//
//  H1 A request's head is used when all of it is there: within header_most bytes and header_time. Lines end with CRLF, and
//     nothing else does; no line begins with a space (folding). Then Beast's parser has it.
//  H2 Where a body ends is told by one Content-Length of digits only, or by "Transfer-Encoding: chunked" alone, not by
//     both. Anything else is refused, and the connection is closed, so that nobody disagrees about where the next request
//     begins (request smuggling).
//  H3 The next request is looked at when the response is complete and the body has been read. If the handler has left
//     more than a little of it, the connection is closed.
#include "server/h1.hpp"

#include "wire/parser.hpp"
#include "wire/text.hpp"

#include <ramie/http/websocket.hpp>

#include <sys/sendfile.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace ramie::http {

namespace {

constexpr std::size_t unread_most = 64 * 1024;  // of a body that is skipped to keep the connection; a guess

}  // namespace

class h1_parser final : public message_parser<true> {
 public:
  using message_parser::message_parser;
  std::string_view method, target;
  int version_number = 11;

 private:
  void on_request_impl(beast::http::verb, view m, view t, int v, error_code&) override {
    method = plain(m);
    target = plain(t);
    version_number = v;
  }
  void on_response_impl(int, view, int, error_code&) override {}
};

h1_exchange::h1_exchange(connection& c) : exchange{c.core.limits}, c_{c} {
  c_.on_rest = [this] {
    if (!busy_) rest();
  };
}
h1_exchange::~h1_exchange() { c_.on_rest = nullptr; }

/// Between two requests.
void h1_exchange::rest() noexcept {
  std::string{}.swap(head_);
  std::string{}.swap(target_);
  std::string{}.swap(held_);
  forget();
}

namespace {

void add_number(std::string& to, std::uint64_t n) {
  std::array<char, 20> digits;
  to.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr);
}

/// What a request is for: RFC 9112, 3.2.
struct destination {
  std::string_view path;  // "": "/"
  std::string_view host;
};

/// Of "/a", and of "http://host/a", which a server has to understand, too, and which tells the host. "*" is for OPTIONS
/// alone. nullopt: none of these.
std::optional<destination> destination_of(std::string_view method, std::string_view target,
                                          std::string_view host) noexcept {
  if (method == "CONNECT" || target.find('#') != std::string_view::npos) return std::nullopt;
  if (target.starts_with('/') || (target == "*" && method == "OPTIONS")) return destination{target, host};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_name(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    const std::string_view named = target.substr(0, end);
    if (named.empty() || named.front() == ':' || !is_authority(named)) return std::nullopt;
    return destination{target.substr(end), named};
  }
  return std::nullopt;
}

}  // namespace

/// H2. The status to refuse it with; 0 if it is all right.
int h1_exchange::judge_fields(int version) {
  int hosts = 0, lengths = 0, codings = 0;
  bool more_than_chunked = false;
  std::optional<std::uint64_t> length;
  expects_ = false;
  std::string_view host;
  for (const header_field& f : rq.headers()) {
    if (same_name(f.name, "host")) {
      ++hosts;
      host = f.value;
    } else if (same_name(f.name, "content-length")) {
      ++lengths;
      length = parse_number(f.value);
      if (!length) return 400;
    } else if (same_name(f.name, "transfer-encoding")) {
      ++codings;
      more_than_chunked |= !same_name(f.value, "chunked");
    } else if (same_name(f.name, "expect") && version >= 11) {
      if (!same_name(f.value, "100-continue")) return 417;
      expects_ = true;
    }
    if (!is_field_value(f.value)) return 400;
  }
  if (hosts > 1 || (hosts == 0 && version >= 11) || !is_authority(host)) return 400;
  if (lengths > 1 || (lengths == 1 && codings != 0) || codings > 1) return 400;
  if (codings == 1 && (more_than_chunked || version < 11)) return more_than_chunked ? 501 : 400;
  set_length(length);
  body_ = codings == 1 ? body_reader::in_chunks() : body_reader::of_length(length.value_or(0));
  return 0;
}

/// H1. False if the connection is over.
bool h1_exchange::read_head() {
  std::size_t searched = 0;
  bool skipped = false;
  if (c_.input().empty() && c_.fill(limits.idle) == 0) return false;
  if (!busy_ && !c_.begin_request()) return false;
  busy_ = true;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  for (;;) {
    // RFC 9112, 2.2: an empty line before a request is skipped. One, however the bytes come.
    if (!skipped && c_.input().starts_with("\r\n")) {
      c_.consume(2);
      skipped = true;
      searched = 0;
    }
    const std::string_view there = c_.input();
    const std::size_t end = there.find("\r\n\r\n", searched > 3 ? searched - 3 : 0);
    if (end != std::string_view::npos && end + 4 <= limits.header_most) {
      head_.assign(there.substr(0, end + 4));
      c_.consume(end + 4);
      c_.is_used();
      return true;
    }
    // What has bare line ends may never have a CRLF CRLF.
    if (there.find("\n\n") != std::string_view::npos) return refuse(400);
    if (end != std::string_view::npos || there.size() >= limits.header_most)
      return refuse(there.find("\r\n") == std::string_view::npos ? 414 : 431);
    searched = there.size();
    if (!held_.empty()) flush();
    if (!deadline) deadline = std::chrono::steady_clock::now() + limits.header_time;
    try {
      if (c_.fill_until(*deadline) == 0) return false;
    } catch (const timeout_error&) {
      return refuse(408);
    }
  }
}

bool h1_exchange::refuse(int status) {
  c_.core.refused.fetch_add(1, std::memory_order_relaxed);
  keep_ = false;
  version_ = 11;
  rq_is_head_ = false;
  send_head(status, "content-type: text/plain; charset=utf-8\r\n", reason_of(status).size() + 1,
            std::string{reason_of(status)} + "\n");
  return false;
}

/// The request in `head_`. False: refused.
bool h1_exchange::parse_head() {
  fields().clear();
  if (!has_whole_lines(head_)) return refuse(400);
  h1_parser parser{fields(), limits.headers_most};
  if (!parser.parse(head_)) {
    if (parser.has_too_many_fields) return refuse(431);
    return refuse(parser.has_bad_version ? 505 : 400);
  }
  version_ = parser.version_number;
  if (const int status = judge_fields(version_); status != 0) return refuse(status);
  const std::optional<destination> to = destination_of(parser.method, parser.target, rq.header("host").value_or(""));
  if (!to) return refuse(400);
  if (parser.target.size() > limits.target_most) return refuse(414);
  std::string_view target = to->path;
  if (!target.starts_with('/') && target != "*") target = target_.assign("/").append(target);
  const std::optional<std::uint64_t> length = rq.content_length();
  fresh(parser.method, target, to->host, version_, c_.encrypted);
  set_length(length);
  rq_is_head_ = parser.method == "HEAD";
  keep_ = parser.keep_alive() && !c_.core.stopping.load(std::memory_order_relaxed);
  chunked_ = false;
  return true;
}

bool h1_exchange::next() {
  if (!read_head()) return false;
  c_.note_step();
  if (!parse_head()) return false;
  c_.core.handle(*this);
  if (owed_ != 0) {
    break_off();
    return false;
  }
  if (c_.core.stopping.load()) keep_ = false;
  if (!keep_ || !skip_body()) {
    flush();
    return false;
  }
  if (!c_.input().empty()) return true;  // pipelined
  flush();
  busy_ = false;
  return c_.end_request();
}

/// H3.
bool h1_exchange::skip_body() {
  if (body_.is_done()) return true;
  if (expects_) return false;
  std::vector<std::byte> ignored(4096);  // not on the stack, whose page would be touched by each request
  std::size_t skipped = 0;
  while (skipped <= unread_most) {
    std::size_t n = 0;
    try {
      n = read_part(ignored, UINT64_MAX);
    } catch (const error&) {
      return false;
    }
    if (n == 0) return true;
    skipped += n;
  }
  return false;
}

std::size_t h1_exchange::read_body(std::span<std::byte> into) { return read_part(into, body_most()); }

std::size_t h1_exchange::read_part(std::span<std::byte> into, std::uint64_t most) {
  if (body_.is_done() || into.empty()) return 0;
  if (expects_ && !rs.has_begun()) held_ += "HTTP/1.1 100 Continue\r\n\r\n";
  expects_ = false;
  for (;;) {
    const body_reader::progress p = body_.put(c_.input(), into);
    c_.consume(p.used);
    if (body_.is_broken()) {
      keep_ = false;
      c_.core.refused.fetch_add(1, std::memory_order_relaxed);
      throw status_error{400, "the body is broken"};
    }
    if (body_.announced() > most) throw status_error{413, "the body is longer than " + std::to_string(most) + " bytes"};
    if (p.data != 0 || body_.is_done()) return p.data;
    await_more();
  }
}

void h1_exchange::await_more() {
  flush();
  std::size_t more = 0;
  try {
    await_part([&](std::chrono::nanoseconds time) { more = c_.fill(time); });
  } catch (const timeout_error&) {
    keep_ = false;
    throw status_error{408, "the body did not come in time"};
  }
  if (more != 0) return;
  // The client may still read (RFC 9112, 8).
  keep_ = false;
  throw status_error{400, "the body is not whole"};
}

void h1_exchange::send_head(int status, std::string_view fields, std::optional<std::uint64_t> length,
                            std::string_view body) {
  std::string& h = held_;
  h += "HTTP/1.1 ";
  add_number(h, static_cast<std::uint64_t>(status));
  h += ' ';
  h += reason_of(status);
  h += "\r\ndate: ";
  h += date_now();
  h += "\r\n";
  h += fields;
  const bool has_none = status == 204 || status == 304;
  no_body_ = has_none || rq_is_head_;
  if (length && !has_none) {
    h += "content-length: ";
    add_number(h, *length);
    h += "\r\n";
  } else if (!length && !has_none) {
    chunked_ = version_ >= 11;
    if (chunked_) h += "transfer-encoding: chunked\r\n";
    else keep_ = false;
  }
  // A client that waits for a 100 may send the body or not.
  if (expects_ || c_.core.stopping.load(std::memory_order_relaxed)) keep_ = false;
  if (!keep_) h += "connection: close\r\n";
  else if (version_ < 11) h += "connection: keep-alive\r\n";
  h += "\r\n";
  const auto bytes = std::as_bytes(std::span{body});
  const bool all = length && *length == body.size();
  owed_ = !length || no_body_ ? 0 : *length - body.size();
  note_head(status);
  if (no_body_ && !length) {
    flush_or_hold();  // the handler may go on for ever
  } else if (no_body_) {
    flush_unless_pipelined(all);
  } else if (bytes.size() <= 16 * 1024) {
    h += body;
    note_sent(body.size());
    flush_unless_pipelined(all);
  } else {
    flush_or_hold(bytes);
  }
}

/// With the next request there already, its response can go along.
void h1_exchange::flush_unless_pipelined(bool complete) {
  if (complete && keep_ && held_.size() < 16 * 1024 && !c_.input().empty() && body_.is_done()) return;
  if (complete) flush_or_hold();
}

/// False: it was cancelled, and nothing has gone out.
bool h1_exchange::try_flush(std::span<const std::byte> body) {
  const std::size_t n = held_.size();
  if (n + body.size() == 0) return true;
  std::size_t written = 0;
  try {
    // A body that is held goes in pieces, as one that is not.
    if (body.empty()) c_.write({}, std::as_bytes(std::span{held_}), &written);
    else c_.write(held_, body, &written);
    note_sent(body.size());
  } catch (const cancelled&) {
    if (written == 0) return false;
    note_sent(written - std::min(written, n));
    break_off();
    throw;
  } catch (...) {
    note_sent(written - std::min(written, n));
    break_off();
    throw;
  }
  held_.clear();
  return true;
}

void h1_exchange::flush() {
  if (!try_flush()) throw cancelled{};
}

/// Of a response that counts as sent: if the handler is to stop, `next` sends what is held.
void h1_exchange::flush_or_hold(std::span<const std::byte> body) {
  if (try_flush(body)) return;
  held_.append(reinterpret_cast<const char*>(body.data()), body.size());
  note_sent(body.size());
}

/// What was sent ends in the middle: nothing may follow it.
void h1_exchange::break_off() {
  keep_ = false;
  over_ = true;
  held_.clear();
  c_.stream.close();
}

void h1_exchange::send_part(std::span<const std::byte> part) {
  if (no_body_) return;
  const std::size_t before = held_.size();
  if (chunked_ && !part.empty()) {
    std::array<char, 20> size{};
    const int n = std::snprintf(size.data(), size.size(), "%zx\r\n", part.size());
    held_.append(size.data(), static_cast<std::size_t>(n));
  }
  if (!try_flush(part)) {
    held_.resize(before);
    throw cancelled{};
  }
  owed_ -= std::min<std::uint64_t>(owed_, part.size());
  if (chunked_ && !part.empty()) held_ = "\r\n";
}

void h1_exchange::send_end() {
  if (chunked_ && !no_body_) held_ += "0\r\n\r\n";
  flush_or_hold();
}

bool h1_exchange::send_from_file(int fd, std::uint64_t offset, std::uint64_t size) {
  net::socket_stream* s = c_.stream.socket();
  if (no_body_) return true;
  if (s == nullptr) return false;
  auto at = static_cast<off_t>(offset);
  const auto end = static_cast<off_t>(offset + size);
  try {
    flush();
    // Nobody else closes a connection that is busy, so the number stays what it is.
    while (at < end) {
      const ssize_t n =
          ::sendfile(s->native_handle(), fd, &at, static_cast<std::size_t>(std::min<off_t>(end - at, 1 << 20)));
      if (n == 0) throw net::io_error{"sendfile", net::io_errc::unexpected_end};
      if (n < 0 && errno != EINTR && errno != EAGAIN)
        throw net::io_error{"sendfile", std::error_code{errno, std::system_category()}};
      c_.note_step();
      if (n > 0) note_sent(static_cast<std::uint64_t>(n));
      // Also if there is room: a client that is faster must not outlive a stop.
      if (at < end) with_timeout(limits.write_time, [&] { s->wait_writable(); });
    }
  } catch (...) {
    break_off();
    throw;
  }
  owed_ -= std::min(owed_, size);
  return true;
}

void h1_exchange::become_websocket(const std::function<void(request&, websocket&)>& f) {
  flush();
  upgrade_to_websocket(*this, c_, f, [this] {
    upgraded_ = true;
    c_.is_watched.store(false, std::memory_order_relaxed);  // its reader sees the end
    keep_ = false;
    end_response();
  });
}

void serve_1(connection& c) {
  c.is_watched.store(true, std::memory_order_relaxed);
  h1_exchange x{c};
  while (x.next()) {
  }
}

}  // namespace ramie::http
