// The encodings of the tables that compilers write for exceptions: .eh_frame, .gcc_except_table.
#pragma once

#include <cstdint>
#include <cstring>

namespace ramie::detail {

/// Reads the tables' encodings. They are part of loaded code, so they are trusted.
struct table_reader {
  const char* at;

  template <class T>
  T get() noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  }
  std::uintptr_t unsigned_leb() noexcept {
    std::uintptr_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = get<std::uint8_t>();
      if (shift < 64) value |= std::uintptr_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  std::intptr_t signed_leb() noexcept {
    std::uintptr_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = get<std::uint8_t>();
      if (shift < 64) value |= std::uintptr_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~std::uintptr_t{0} << shift;
      return static_cast<std::intptr_t>(value);
    }
  }
  // Of DW_EH_PE encodings.
  static constexpr std::uint8_t omitted = 0xff, indirect = 0x80, relative = 0x70, format = 0x0f;
  /// A pointer of encoding `how`, not followed if it is indirect; `data` is what "data relative" refers to.
  std::uintptr_t pointer(std::uint8_t how, std::uintptr_t data) noexcept;
  /// The same, followed.
  std::uintptr_t followed(std::uint8_t how, std::uintptr_t data) noexcept;
};

}  // namespace ramie::detail
