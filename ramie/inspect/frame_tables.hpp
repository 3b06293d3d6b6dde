// The unwinding tables of loaded code (.eh_frame): what they say about one instruction. See frames.cpp.
#pragma once

#include <ramie/inspect/frames.hpp>

#include <array>
#include <cstddef>
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
  /// A pointer of DW_EH_PE encoding `how`; `data` is what "data relative" refers to.
  std::uintptr_t pointer(std::uint8_t how, std::uintptr_t data) noexcept;
};

/// How a register of the caller is found.
struct register_rule {
  enum class kind : std::uint8_t { same, undefined, saved_at, is, in_register, saved_at_expression, is_expression };
  kind how = kind::same;
  std::int32_t offset = 0;  // from the frame address; or the register; or of the expression, from the row's `base`
};

struct frame_table_row {
  std::uint32_t cfa_register = 0;
  std::int32_t cfa_offset = 0;
  const char* cfa_expression = nullptr;
  const char* base = nullptr;
  std::uint32_t return_register = 0;
  std::array<register_rule, frame_registers::count> rules{};
};

/// U1 to U3 for the instruction at `pc`. False: there are no tables for it. `signal_frame`: the caller was interrupted
/// by a signal. Async-signal-safe as `unwind` is.
bool find_row(std::uintptr_t pc, frame_table_row& row, bool& signal_frame) noexcept;

}  // namespace ramie::detail
