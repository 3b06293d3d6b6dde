// The unwinding tables of loaded code (.eh_frame): what they say about one instruction. See frames.cpp.
#pragma once

#include <ramie/context/frames.hpp>
#include <ramie/context/table_reader.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

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

/// Where the calls of a function are listed that exceptions may come from, in the way of __gxx_personality_v0.
struct call_table_place {
  const char* table = nullptr;  // null: none
  std::uintptr_t function = 0;  // what its places are relative to
};
/// Of the function, or the part of one, that holds `pc`.
[[nodiscard]] call_table_place find_call_table(std::uintptr_t pc) noexcept;

/// U1 to U3 for the instruction at `pc`. False: there are no tables for it. `signal_frame`: the caller was interrupted
/// by a signal. Async-signal-safe as `unwind` is.
bool find_row(std::uintptr_t pc, frame_table_row& row, bool& signal_frame) noexcept;

}  // namespace ramie::detail
