#include "server/coding.hpp"
#include "server/exchange.hpp"
#include "wire/text.hpp"

#include <ramie/fiber.hpp>
#include <ramie/http/message.hpp>

#include <array>
#include <utility>

namespace ramie::http {

std::optional<std::string_view> find_header(std::span<const header_field> in, std::string_view name) noexcept {
  for (const header_field& f : in)
    if (same_name(f.name, name)) return f.value;
  return std::nullopt;
}

void exchange::fresh(std::string_view method, std::string_view target, std::string_view authority, int version,
                     bool encrypted) {
  rq.method_ = method;
  rq.target_ = target;
  rq.authority_ = authority;
  rq.version_ = version;
  rq.encrypted_ = encrypted;
  rq.body_most_ = limits.body_most;
  rq.body_read_ = 0;
  awaited_ = {};
  sent_ = 0;
  sent_status_ = 0;
  kept_ = {};
  rs.status_ = 200;
  rs.fields_.clear();
  rs.has_type_ = rs.has_encoding_ = rs.may_compress_ = false;
  rs.state_ = response::state::fresh;
}

// ---- requests ------------------------------------------------------------------------------------------------------

std::string_view request::path() const noexcept { return target_.substr(0, target_.find('?')); }

const net::endpoint& request::peer() const noexcept { return by_->peer(); }

std::optional<std::string> request::query(std::string_view name) const {
  const std::size_t begin = target_.find('?');
  std::optional<std::string> found;
  if (begin == std::string_view::npos) return found;
  any_item(
      target_.substr(begin + 1),
      [&](std::string_view item) {
        const std::size_t is = std::min(item.find('='), item.size());
        if (percent_decoded(item.substr(0, is), true) != name) return false;
        found = percent_decoded(item.substr(std::min(is + 1, item.size())), true);
        return found.has_value();
      },
      '&');
  return found;
}

std::optional<std::string_view> request::cookie(std::string_view name) const noexcept {
  std::optional<std::string_view> found;
  for (const header_field& f : headers_)
    if (same_name(f.name, "cookie") && any_item(
                                           f.value,
                                           [&](std::string_view item) {
                                             const std::size_t is = item.find('=');
                                             if (is == std::string_view::npos || item.substr(0, is) != name)
                                               return false;
                                             found = item.substr(is + 1);
                                             return true;
                                           },
                                           ';'))
      break;
  return found;
}

std::size_t request::read_some(std::span<std::byte> into) {
  if (length_ && *length_ > body_most_)
    throw status_error{413, "the body is longer than " + std::to_string(body_most_) + " bytes"};
  const std::size_t n = by_->read_body(into);
  body_read_ += n;
  if (body_read_ > body_most_)
    throw status_error{413, "the body is longer than " + std::to_string(body_most_) + " bytes"};
  return n;
}

std::string request::body(std::size_t most) {
  std::string all;
  if (length_ && *length_ > most) throw status_error{413, "the body is longer than " + std::to_string(most) + " bytes"};
  std::array<std::byte, 8192> part;
  while (const std::size_t n = read_some(part)) {
    if (n > most - all.size()) throw status_error{413, "the body is longer than " + std::to_string(most) + " bytes"};
    all.append(reinterpret_cast<const char*>(part.data()), n);
  }
  return all;
}

// ---- responses -----------------------------------------------------------------------------------------------------

void response::expect_fresh(const char* what) const {
  if (state_ != state::fresh) throw usage_error{std::string{"ramie: http: response: "} + what + " after it was sent"};
}

response& response::status(int code) {
  expect_fresh("status");
  if (code < 200 || code > 599)
    throw invalid_argument{"ramie: http: response: status " + std::to_string(code) + "; 200 to 599 are possible"};
  status_ = code;
  return *this;
}

response& response::header(std::string_view name, std::string_view value) {
  expect_fresh("header");
  if (!is_token(name) || !is_field_value(value))
    throw invalid_argument{"ramie: http: response: header: a name or value that HTTP does not allow"};
  for (const char* own : {"content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "date"})
    if (same_name(name, own))
      throw invalid_argument{std::string{"ramie: http: response: header: "} + own + " belongs to the connection"};
  has_type_ |= same_name(name, "content-type");
  has_encoding_ |= same_name(name, "content-encoding");
  for (const char c : name) fields_ += lower(c);
  fields_ += ": ";
  fields_ += value;
  fields_ += "\r\n";
  return *this;
}

response& response::cookie(std::string_view name, std::string_view value, const cookie_options& options) {
  if (!is_token(name) || value.find_first_of(" \t\",;\\") != std::string_view::npos ||
      options.path.find(';') != std::string_view::npos || !is_token(options.same_site))
    throw invalid_argument{"ramie: http: response: cookie: a name, value, path or same_site that cookies cannot have"};
  std::string text{name};
  text += '=';
  text += value;
  text += "; Path=";
  text += options.path;
  if (options.max_age_s) text += "; Max-Age=" + std::to_string(*options.max_age_s);
  if (options.secure) text += "; Secure";
  if (options.http_only) text += "; HttpOnly";
  text += "; SameSite=";
  text += options.same_site;
  return header("set-cookie", text);
}

response& response::compressed() noexcept {
  may_compress_ = true;
  return *this;
}

namespace {

constexpr std::size_t compressed_least = 1024;  // below that the head weighs more; a guess

}  // namespace

void response::send(std::string_view body) {
  expect_fresh("send");
  if (!has_type_ && status_ != 204 && status_ != 304) fields_ += "content-type: text/plain; charset=utf-8\r\n";
  state_ = state::ended;
  if (may_compress_ && !has_encoding_) {
    fields_ += "vary: accept-encoding\r\n";
    if (body.size() >= compressed_least && body.size() < (std::size_t{1} << 30)) {
      if (const std::optional<packed_body> packed = packed_for(by_->rq, body)) {
        fields_ += "content-encoding: ";
        (fields_ += packed->coding) += "\r\n";
        by_->send_head(status_, fields_, packed->bytes.size(), packed->bytes);
        return;
      }
    }
  }
  by_->send_head(status_, fields_, body.size(), body);
}

void response::send_json(std::string_view body) {
  if (!has_type_) header("content-type", "application/json");
  send(body);
}

void response::write(std::span<const std::byte> part) {
  if (state_ == state::ended) throw usage_error{"ramie: http: response: write after it was sent"};
  if (state_ == state::fresh) {
    if (!has_type_) fields_ += "content-type: text/plain; charset=utf-8\r\n";
    state_ = state::streaming;
    by_->send_head(status_, fields_, std::nullopt, {});
  }
  if (by_->is_head()) {  // nothing is sent, so nothing else would let others run, or see a stop
    this_fiber::yield();
    this_fiber::throw_if_stopped();
  }
  by_->send_part(part);
}

void response::finish() {
  if (state_ == state::fresh) return send({});
  if (state_ == state::ended) return;
  state_ = state::ended;
  by_->send_end();
}

void response::redirect(std::string_view to, int status_code) {
  if (status_code < 300 || status_code > 399)
    throw invalid_argument{"ramie: http: response: redirect: status " + std::to_string(status_code) +
                           "; 300 to 399 are possible"};
  status(status_code);
  header("location", to);
  send({});
}

// ---- server-sent events --------------------------------------------------------------------------------------------

event_stream::event_stream(response& over) : to_{&over} {
  over.header("content-type", "text/event-stream").header("cache-control", "no-store");
  over.write(std::string_view{});
}

void event_stream::send(const server_event& e) {
  std::string text;
  const auto line = [&](std::string_view field, std::string_view value) {
    text += field;
    text += ": ";
    text += value;
    text += '\n';
  };
  if (e.name.find_first_of("\r\n") != std::string_view::npos ||
      e.id.find_first_of(std::string_view{"\r\n\0", 3}) != std::string_view::npos)
    throw invalid_argument{"ramie: http: event: a line break in name or id"};
  if (!e.id.empty()) line("id", e.id);
  if (!e.name.empty()) line("event", e.name);
  for (std::string_view rest = e.data;;) {
    const std::size_t end = rest.find_first_of("\r\n");
    line("data", rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  text += '\n';
  to_->write(text);
}

void event_stream::keep_alive() { to_->write(std::string_view{":\n\n"}); }

// ---- forms ---------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t parts_most =
    1000;  // of a form: an empty one takes 14 bytes on the wire, and some 130 here; a guess

form_part part_of(std::string_view text) {
  const std::size_t head_end = text.find("\r\n\r\n");
  if (head_end == std::string_view::npos) throw status_error{400, "the form is broken"};
  form_part p;
  p.data = text.substr(head_end + 4);
  for (std::string_view head = text.substr(0, head_end + 2); !head.empty();) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string_view value = trimmed(line.substr(std::min(colon + 1, line.size())));
    if (same_name(line.substr(0, colon), "content-disposition")) {
      p.name = parameter_of(value, "name").value_or("");
      p.file_name = parameter_of(value, "filename").value_or("");
    } else if (same_name(line.substr(0, colon), "content-type")) {
      p.content_type = value;
    }
    head.remove_prefix(end + 2);
  }
  return p;
}

}  // namespace

std::vector<form_part> read_form(request& from, std::size_t most) {
  const std::string_view type = from.header("content-type").value_or("");
  const std::optional<std::string> boundary = parameter_of(type, "boundary");
  if (!same_name(trimmed(type.substr(0, type.find(';'))), "multipart/form-data") || !boundary || boundary->empty() ||
      boundary->size() > 70)
    throw status_error{415, "this has to be multipart/form-data"};
  const std::string text = "\r\n" + from.body(most);
  const std::string mark = "\r\n--" + *boundary;
  std::vector<form_part> parts;
  std::size_t at = text.find(mark);
  for (;;) {
    if (at == std::string::npos) throw status_error{400, "the form is broken"};
    at += mark.size();
    if (text.compare(at, 2, "--") == 0) return parts;
    if (text.compare(at, 2, "\r\n") != 0) throw status_error{400, "the form is broken"};
    const std::size_t next = text.find(mark, at);
    if (next == std::string::npos) throw status_error{400, "the form is broken"};
    if (parts.size() == parts_most)
      throw status_error{413, "the form has more than " + std::to_string(parts_most) + " parts"};
    parts.push_back(part_of(std::string_view{text}.substr(at + 2, next - at - 2)));
    at = next;
  }
}

}  // namespace ramie::http
