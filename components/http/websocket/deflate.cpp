#include "websocket/deflate.hpp"

#include "wire/text.hpp"

#include <zlib.h>

#include <array>
#include <new>

namespace ramie::http {

namespace {

Bytef* in_of(std::string_view s) noexcept { return reinterpret_cast<Bytef*>(const_cast<char*>(s.data())); }

/// One offer, as "permessage-deflate; client_max_window_bits".
std::optional<deflate_terms> accept_one(std::string_view offer) {
  deflate_terms t;
  bool first = true, broken = false;
  any_item(
      offer,
      [&](std::string_view item) {
        const std::size_t is = std::min(item.find('='), item.size());
        const std::string_view name = trimmed(item.substr(0, is));
        std::string_view value = trimmed(item.substr(std::min(is + 1, item.size())));
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
        const std::optional<std::uint64_t> bits = parse_number(value);
        if (first) {
          broken = !same_name(item, "permessage-deflate");
          first = false;
        } else if (name == "server_max_window_bits") {
          if (!bits || *bits < 9 || *bits > 15) broken = true;  // zlib has no raw window of 256 bytes
          else t.window_bits = static_cast<int>(*bits);
        } else if (name == "client_max_window_bits") {
          broken |= !value.empty() && (!bits || *bits < 8 || *bits > 15);
        } else if (name != "server_no_context_takeover" && name != "client_no_context_takeover") {
          broken = true;
        }
        return broken;
      },
      ';');
  if (broken || first) return std::nullopt;
  t.answer = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
  if (t.window_bits != 15) t.answer += "; server_max_window_bits=" + std::to_string(t.window_bits);
  return t;
}

}  // namespace

std::optional<deflate_terms> accept_deflate(std::string_view offers) {
  std::optional<deflate_terms> found;
  any_item(offers, [&](std::string_view offer) {
    found = accept_one(offer);
    return found.has_value();
  });
  return found;
}

std::string deflated(std::string_view message, int window_bits) {
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc{};
  std::string packed(deflateBound(&z, static_cast<uLong>(message.size())) + 16, '\0');
  z.next_in = in_of(message);
  z.avail_in = static_cast<uInt>(message.size());
  z.next_out = in_of(packed);
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_SYNC_FLUSH);
  packed.resize(z.total_out - 4);  // 00 00 ff ff at the end is implied (RFC 7692, 7.2.1)
  deflateEnd(&z);
  return packed;
}

std::optional<std::string> inflated(std::string_view packed, std::size_t most) {
  static constexpr std::string_view tail{"\0\0\xff\xff", 4};
  z_stream z{};
  if (inflateInit2(&z, -15) != Z_OK) throw std::bad_alloc{};
  std::string plain;
  std::array<char, 8192> part;
  int how = Z_OK;
  for (const std::string_view piece : {packed, tail}) {
    z.next_in = in_of(piece);
    z.avail_in = static_cast<uInt>(piece.size());
    do {
      z.next_out = reinterpret_cast<Bytef*>(part.data());
      z.avail_out = static_cast<uInt>(part.size());
      how = inflate(&z, Z_SYNC_FLUSH);
      if (how != Z_OK && how != Z_STREAM_END && how != Z_BUF_ERROR) break;
      const std::size_t n = part.size() - z.avail_out;
      plain.append(part.data(), std::min(n, most + 1 - plain.size()));
    } while (z.avail_out == 0 && plain.size() <= most && how != Z_STREAM_END);
    if (plain.size() > most || (how != Z_OK && how != Z_BUF_ERROR)) break;
  }
  inflateEnd(&z);
  if (how != Z_OK && how != Z_BUF_ERROR && how != Z_STREAM_END) return std::nullopt;
  return plain;
}

}  // namespace ramie::http
