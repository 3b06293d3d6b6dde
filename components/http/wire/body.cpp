#include "wire/body.hpp"

#include "wire/text.hpp"

#include <algorithm>
#include <cstring>

namespace ramie::http {

namespace {

constexpr std::size_t ignored_most = 16 * 1024;  // bytes of extensions and trailers of a body; a guess
constexpr int digits_most = 16;                  // of a chunk's size, leading zeros among them

int value_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  return lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
}

/// B2. `line` without its end.
bool is_trailer(std::string_view line) noexcept {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, colon);
  return is_token(name) && is_field_value(trimmed(line.substr(colon + 1))) && !same_name(name, "content-length") &&
         !same_name(name, "transfer-encoding") && !same_name(name, "host");
}

}  // namespace

body_reader body_reader::of_length(std::uint64_t n) noexcept {
  body_reader r;
  r.left_ = n;
  r.at_ = n == 0 ? place::done : place::data;
  return r;
}

body_reader body_reader::in_chunks() noexcept {
  body_reader r;
  r.kind_ = kind::chunks;
  r.at_ = place::size;
  return r;
}

body_reader body_reader::to_end_of_connection() noexcept {
  body_reader r;
  r.kind_ = kind::to_end;
  r.left_ = UINT64_MAX;
  r.at_ = place::data;
  return r;
}

body_reader::progress body_reader::put(std::string_view in, std::span<std::byte> into) {
  progress p{0, 0};
  while (p.used < in.size() && !is_done() && !is_broken()) {
    if (at_ != place::data) {
      at_ = after(in[p.used++]);
      continue;
    }
    const auto n =
        static_cast<std::size_t>(std::min<std::uint64_t>(left_, std::min(in.size() - p.used, into.size() - p.data)));
    if (n == 0) break;  // there is no room
    std::memcpy(into.data() + p.data, in.data() + p.used, n);
    p.used += n;
    p.data += n;
    left_ -= n;
    received_ += n;
    if (left_ == 0) at_ = kind_ == kind::chunks ? place::data_end : place::done;
  }
  return p;
}

/// Where it is behind `c`, which is not data.
body_reader::place body_reader::after(char c) {
  switch (at_) {
    case place::size: return after_digit(c);
    case place::gap:  // before the ';', where RFC 9112 lets a bad sender put spaces
      if (++ignored_ > ignored_most) return place::broken;
      if (c == ';') return place::extension;
      return c == ' ' || c == '\t' ? place::gap : place::broken;
    case place::extension:
      if (++ignored_ > ignored_most) return place::broken;
      if (c == '\r') return place::line_end;
      return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 127 ? place::broken : place::extension;
    case place::line_end:
      if (c != '\n') return place::broken;
      return left_ == 0 ? place::trailers : place::data;
    case place::data_end: return c == '\r' ? place::data_line_end : place::broken;
    case place::data_line_end: digits_ = 0; return c == '\n' ? place::size : place::broken;
    case place::trailers: return after_trailer(c);
    default: return place::broken;
  }
}

body_reader::place body_reader::after_digit(char c) {
  if (const int digit = value_of(c); digit >= 0) {
    if (left_ > (std::uint64_t{INT64_MAX} >> 4) || ++digits_ > digits_most) return place::broken;
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
    return place::size;
  }
  if (digits_ == 0) return place::broken;
  if (c == '\r') return place::line_end;
  if (c == ';') return place::extension;
  return c == ' ' || c == '\t' ? place::gap : place::broken;
}

body_reader::place body_reader::after_trailer(char c) {
  if (++ignored_ > ignored_most) return place::broken;
  const bool ends = !line_.empty() && line_.back() == '\r';
  if (ends != (c == '\n')) return place::broken;
  line_ += c;
  if (!ends) return place::trailers;
  line_.resize(line_.size() - 2);
  if (line_.empty()) return place::done;
  const bool fits = is_trailer(line_);
  line_.clear();
  return fits ? place::trailers : place::broken;
}

}  // namespace ramie::http
