// Files as responses: conditional requests and ranges (RFC 9110, 13 and 14).
#include "server/exchange.hpp"
#include "server/ranges.hpp"
#include "wire/text.hpp"

#include <openssl/rand.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>

namespace ramie::http {

namespace {

/// `weakly`: tags that say "semantically the same" count, too.
bool has_tag(std::string_view list, std::string_view tag, bool weakly) {
  return list == "*" || any_item(list, [&](std::string_view item) {
           if (weakly && item.starts_with("W/")) item.remove_prefix(2);
           return item == tag;
         });
}

/// RFC 9110, 13.2.2. The status that is due instead; 0 if it is none.
int judge(const request& asked, std::string_view etag, std::int64_t modified_s) {
  const auto is_since = [&](std::string_view name) -> std::optional<bool> {
    const auto text = asked.header(name);
    const auto date = text ? parse_date(*text) : std::nullopt;
    return date ? std::optional{modified_s > *date} : std::nullopt;
  };
  if (const auto match = asked.header("if-match")) {
    if (!has_tag(*match, etag, false)) return 412;
  } else if (is_since("if-unmodified-since").value_or(false)) {
    return 412;
  }
  if (const auto none_match = asked.header("if-none-match")) return has_tag(*none_match, etag, true) ? 304 : 0;
  return is_since("if-modified-since").value_or(true) ? 0 : 304;
}

std::string random_boundary() {
  std::array<unsigned char, 12> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw net::io_error{"boundary of parts", tls::errc::protocol};
  std::string text;
  for (const unsigned char b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

std::string as_content_range(const byte_range& r, std::uint64_t size) {
  return "bytes " + std::to_string(r.first) + "-" + std::to_string(r.first + r.size - 1) + "/" + std::to_string(size);
}

/// The value of a line of `fields`, which is taken out.
std::string take_field(std::string& fields, std::string_view name) {
  const std::string line = std::string{name} + ": ";
  std::size_t at = fields.starts_with(line) ? 0 : fields.find("\r\n" + line);
  if (at == std::string::npos) return {};
  if (at != 0) at += 2;
  const std::size_t end = fields.find("\r\n", at);
  std::string value = fields.substr(at + line.size(), end - at - line.size());
  fields.erase(at, end + 2 - at);
  return value;
}

/// Behind the head.
void send_bytes(exchange& by, net::file& f, const std::string& path, byte_range part) {
  if (part.size == 0 || by.send_from_file(f.native_handle(), part.first, part.size)) return;
  std::vector<std::byte> bytes(std::min<std::uint64_t>(part.size, 64 * 1024));
  while (part.size != 0) {
    const auto piece = std::span{bytes}.first(std::min<std::uint64_t>(bytes.size(), part.size));
    const std::size_t got = f.read_at(part.first, piece);
    if (got == 0) throw net::io_error{"read " + path, net::io_errc::unexpected_end};  // it was cut meanwhile
    by.send_part(piece.first(got));
    part.first += got;
    part.size -= got;
  }
}

/// As multipart/byteranges.
void send_parts(exchange& by, std::string fields, net::file& f, const std::string& path,
                const std::vector<byte_range>& parts, std::uint64_t size) {
  const std::string type = take_field(fields, "content-type"), boundary = random_boundary(),
                    end = "\r\n--" + boundary + "--\r\n";
  std::vector<std::string> heads;
  std::uint64_t all = end.size();
  for (const byte_range& r : parts) {
    const std::string& head =
        heads.emplace_back((heads.empty() ? "--" : "\r\n--") + boundary + "\r\ncontent-type: " + type +
                           "\r\ncontent-range: " + as_content_range(r, size) + "\r\n\r\n");
    all += head.size() + r.size;
  }
  fields += "content-type: multipart/byteranges; boundary=" + boundary + "\r\n";
  by.send_head(206, fields, all, {});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    by.send_part(std::as_bytes(std::span{heads[i]}));
    send_bytes(by, f, path, parts[i]);
  }
  by.send_part(std::as_bytes(std::span{end}));
}

}  // namespace

void response::send_file(const request& asked, const std::string& path) {
  expect_fresh("send_file");
  net::file f;
  struct stat about{};
  try {
    f = net::file::open(path);
  } catch (const net::io_error& e) {
    const int code = e.code().value();
    if (code == ENOENT || code == ENOTDIR || code == EACCES || code == ENAMETOOLONG || code == EISDIR || code == ELOOP)
      throw status_error{404, "there is nothing here"};
    throw;
  }
  if (::fstat(f.native_handle(), &about) != 0 || !S_ISREG(about.st_mode))
    throw status_error{404, "there is nothing here"};
  const auto size = static_cast<std::uint64_t>(about.st_size);
  std::array<char, 64> tag{};
  const int n = std::snprintf(tag.data(), tag.size(), "\"%llx-%llx%lx\"", static_cast<unsigned long long>(size),
                              static_cast<unsigned long long>(about.st_mtim.tv_sec), about.st_mtim.tv_nsec);
  const std::string_view etag{tag.data(), static_cast<std::size_t>(n)};
  const std::string modified = date_of(about.st_mtim.tv_sec);
  header("etag", etag).header("last-modified", modified).header("accept-ranges", "bytes");
  if (!has_type_) header("content-type", type_of_file(path));
  if (status_ == 200) {
    if (const int other = judge(asked, etag, about.st_mtim.tv_sec); other != 0) return status(other).send({});
  }
  wanted_ranges wanted;
  const auto if_range = asked.header("if-range");
  if (const auto text = asked.header("range");
      text && status_ == 200 && asked.method() == "GET" && (!if_range || *if_range == etag || *if_range == modified))
    wanted = ranges_of(*text, size);
  if (wanted.what == wanted_ranges::kind::nothing) {
    header("content-range", "bytes */" + std::to_string(size));
    return status(416).send({});
  }
  state_ = state::ended;
  if (wanted.parts.size() > 1) return send_parts(*by_, fields_, f, path, wanted.parts, size);
  byte_range part{0, size};
  if (!wanted.parts.empty()) {
    part = wanted.parts.front();
    status_ = 206;
    fields_ += "content-range: " + as_content_range(part, size) + "\r\n";
  }
  by_->send_head(status_, fields_, part.size, {});
  if (!by_->is_head()) send_bytes(*by_, f, path, part);
}

void server::files(std::string_view prefix, std::string folder) {
  if (!prefix.ends_with('/'))
    throw invalid_argument{"ramie: http: files: \"" + std::string{prefix} + "\" has to end with '/'"};
  get(std::string{prefix} + "*", [folder = std::move(folder)](request& rq, response& rs, const std::string& rest) {
    for (std::string_view left = rest; !left.empty();) {
      if (left.front() == '.') throw status_error{404, "there is nothing here"};
      const std::size_t end = left.find('/');
      left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    }
    rs.send_file(rq, folder + "/" + rest + (rest.empty() || rest.ends_with('/') ? "index.html" : ""));
  });
}

}  // namespace ramie::http
