// How the body of a response is packed for its client (RFC 9110, 8.4 and 12.5.3).
#pragma once

#include <ramie/http/message.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ramie::http {

/// How much a client wants that coding, in thousandths: 0 if not at all.
[[nodiscard]] int wish_for(std::string_view coding, const request& rq);

struct packed_body {
  std::string_view coding;  // as content-encoding has it
  std::string bytes;
};
/// By zstd, brotli or gzip, as this library was built and the client wants it most; among equals the first of these.
/// nullopt if it wants none, or nothing would be saved. Throws std::bad_alloc.
[[nodiscard]] std::optional<packed_body> packed_for(const request& rq, std::string_view body);

}  // namespace ramie::http
