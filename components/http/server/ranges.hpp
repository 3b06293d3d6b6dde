// The parts of a file that a client asks for (RFC 9110, 14).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ramie::http {

struct byte_range {
  std::uint64_t first = 0, size = 0;
};

struct wanted_ranges {
  enum class kind : unsigned char { all, parts, nothing } what = kind::all;
  std::vector<byte_range> parts{};  // in the order asked for; none of them empty, no two of them touch
};

/// Of "bytes=0-99, 200-, -5". What is broken means all of it, and so do more than 16 ranges: a list of many is no use
/// to an honest client. Ranges that overlap or touch are merged, so all together are no longer than the file. Throws
/// std::bad_alloc.
[[nodiscard]] wanted_ranges ranges_of(std::string_view text, std::uint64_t size);

}  // namespace ramie::http
