#include "client/unpack.hpp"

#include "wire/text.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace ramie::http {

namespace {

class unpacked_transfer final : public transfer {
 public:
  unpacked_transfer(std::unique_ptr<transfer> packed, std::uint64_t most) : packed_{std::move(packed)}, left_{most} {
    constexpr int gzip_alone = 15 + 16;  // bits of the window; see zlib.h
    status = packed_->status;
    for (const header_field& f : packed_->fields)
      if (!same_name(f.name, "content-encoding") && !same_name(f.name, "content-length")) fields.push_back(f);
    if (inflateInit2(&z_, gzip_alone) != Z_OK) throw std::bad_alloc{};
  }
  ~unpacked_transfer() override { inflateEnd(&z_); }

  std::size_t read(std::span<std::byte> into) override {
    if (into.empty()) return 0;
    for (;;) {
      if (z_.avail_in == 0 && !has_more_ && !fill()) return 0;
      // What comes behind the end of one is another, or nothing (RFC 1952, 2.2).
      if (std::exchange(is_between_, false)) inflateReset(&z_);
      z_.next_out = reinterpret_cast<Bytef*>(into.data());
      z_.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), UINT32_MAX));
      const uInt room = z_.avail_out;
      const int how = inflate(&z_, Z_NO_FLUSH);
      if (how != Z_OK && how != Z_STREAM_END && how != Z_BUF_ERROR) refuse_response("its body is no gzip");
      is_between_ = how == Z_STREAM_END;
      has_more_ = z_.avail_out == 0 && !is_between_;  // perhaps
      if (z_.avail_out != room) return room - z_.avail_out;
    }
  }

 private:
  /// False: that was all.
  bool fill() {
    const std::size_t n = packed_->read(in_);
    if (n > left_) throw net::io_error{"HTTP body, packed", net::io_errc::too_long};  // perhaps it comes to nothing
    left_ -= n;
    z_.next_in = reinterpret_cast<Bytef*>(in_.data());
    z_.avail_in = static_cast<uInt>(n);
    if (n == 0 && !is_between_) throw net::io_error{"HTTP body, packed", net::io_errc::unexpected_end};
    return n != 0;
  }

  std::unique_ptr<transfer> packed_;
  std::uint64_t left_;
  z_stream z_{};
  bool has_more_ = false;
  bool is_between_ = true;  // of no bytes there is nothing to unpack
  std::array<std::byte, 8192> in_;
};

}  // namespace

bool is_packed(std::span<const header_field> fields) noexcept {
  int codings = 0;
  bool by_gzip = false;
  for (const header_field& f : fields)
    if (same_name(f.name, "content-encoding")) {
      ++codings;
      by_gzip = same_name(f.value, "gzip") || same_name(f.value, "x-gzip");
    }
  return codings == 1 && by_gzip;
}

std::unique_ptr<transfer> unpacked(std::unique_ptr<transfer> packed, std::uint64_t most) {
  return std::make_unique<unpacked_transfer>(std::move(packed), most);
}

}  // namespace ramie::http
