// Responses that were packed by gzip.
#pragma once

#include "client/transfer.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace ramie::http {

/// Whether `fields` say that the body is packed by gzip, and by nothing else.
[[nodiscard]] bool is_packed(std::span<const header_field> fields) noexcept;

/// Reads the body of `packed` as it was before; without the fields that tell of the packing. Throws std::bad_alloc; its
/// `read` throws what that of `packed` does, and io_error if the bytes are no gzip, end early, or are more than `most`.
[[nodiscard]] std::unique_ptr<transfer> unpacked(std::unique_ptr<transfer> packed, std::uint64_t most);

}  // namespace ramie::http
