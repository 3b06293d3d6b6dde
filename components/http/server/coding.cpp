#include "server/coding.hpp"

#include "wire/text.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>
#if RAMIE_HTTP_BROTLI
#include <brotli/encode.h>
#endif
#if RAMIE_HTTP_ZSTD
#include <zstd.h>
#endif

namespace ramie::http {

namespace {

/// Of "q=0.5"; 1,000 without.
int weight_of(std::string_view parameters) {
  const std::optional<std::string> q = parameter_of(parameters, "q");
  if (!q) return 1000;
  // RFC 9110, 12.4.2: 0 or 1, and up to three digits.
  if (q->empty() || (q->front() != '0' && q->front() != '1') || (q->size() > 1 && (*q)[1] != '.')) return 0;
  int weight = q->front() == '1' ? 1000 : 0;
  for (std::size_t i = 2, unit = 100; i < q->size() && unit != 0; ++i, unit /= 10) {
    if ((*q)[i] < '0' || (*q)[i] > '9') return 0;
    weight += ((*q)[i] - '0') * static_cast<int>(unit);
  }
  return std::min(weight, 1000);
}

// Each is empty if its library fails.
#if RAMIE_HTTP_ZSTD
std::string by_zstd(std::string_view body) {
  constexpr int level = 3;  // the library's own default
  std::string packed(ZSTD_compressBound(body.size()), '\0');
  const std::size_t n = ZSTD_compress(packed.data(), packed.size(), body.data(), body.size(), level);
  packed.resize(ZSTD_isError(n) != 0 ? 0 : n);
  return packed;
}
#endif

#if RAMIE_HTTP_BROTLI
std::string by_brotli(std::string_view body) {
  constexpr int quality = 5;  // a guess: the library's default, 11, is for what is packed once
  std::string packed(BrotliEncoderMaxCompressedSize(body.size()), '\0');
  std::size_t n = packed.size();
  const bool done = BrotliEncoderCompress(quality, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, body.size(),
                                          reinterpret_cast<const std::uint8_t*>(body.data()), &n,
                                          reinterpret_cast<std::uint8_t*>(packed.data())) == BROTLI_TRUE;
  packed.resize(done ? n : 0);
  return packed;
}
#endif

std::string by_gzip(std::string_view body) {
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string packed(deflateBound(&z, static_cast<uLong>(body.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  z.avail_in = static_cast<uInt>(body.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  const bool done = deflate(&z, Z_FINISH) == Z_STREAM_END;
  packed.resize(done ? z.total_out : 0);
  deflateEnd(&z);
  return packed;
}

struct coding {
  std::string_view name;
  std::string (*pack)(std::string_view body);
};
constexpr coding codings[] = {
#if RAMIE_HTTP_ZSTD
    {"zstd", &by_zstd},
#endif
#if RAMIE_HTTP_BROTLI
    {"br", &by_brotli},
#endif
    {"gzip", &by_gzip},
};

}  // namespace

int wish_for(std::string_view coding, const request& rq) {
  std::optional<int> named, any;
  for (const header_field& f : rq.headers())
    if (same_name(f.name, "accept-encoding"))
      any_item(f.value, [&](std::string_view item) {
        const std::size_t end = std::min(item.find(';'), item.size());
        const std::string_view name = trimmed(item.substr(0, end));
        if (same_name(name, coding)) named = weight_of(item.substr(end));
        else if (name == "*") any = weight_of(item.substr(end));
        return false;
      });
  return named.value_or(any.value_or(0));
}

std::optional<packed_body> packed_for(const request& rq, std::string_view body) {
  const coding* best = nullptr;
  int most = 0;
  for (const coding& c : codings)
    if (const int wish = wish_for(c.name, rq); wish > most) best = &c, most = wish;
  if (best == nullptr) return std::nullopt;
  packed_body packed{best->name, best->pack(body)};
  if (packed.bytes.empty() || packed.bytes.size() >= body.size()) return std::nullopt;
  return packed;
}

}  // namespace ramie::http
