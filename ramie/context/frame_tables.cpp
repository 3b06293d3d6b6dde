#include <ramie/context/frame_tables.hpp>

#include <ramie/context/loaded_object.hpp>

#include <cstring>

// Only its address is used: as declared by the library that has it, it takes arguments.
extern "C" void gxx_personality() asm("__gxx_personality_v0");

namespace ramie::detail {

namespace {

/// A CIE: what many functions share.
struct common_part {
  std::uintptr_t code_unit = 1;
  std::intptr_t data_unit = 1;
  std::uint32_t return_register = 0;
  std::uint8_t pointers = 0;
  std::uint8_t call_tables = table_reader::omitted;
  std::uintptr_t personality = 0;
  bool augmented = false;
  bool signal_frame = false;
  const char* program = nullptr;
  const char* end = nullptr;
};

bool parse_common(const char* cie, common_part& found) noexcept {
  table_reader in{cie};
  const auto length = in.get<std::uint32_t>();
  if (length == 0 || length == 0xffffffff) return false;
  found.end = in.at + length;
  if (in.get<std::uint32_t>() != 0) return false;
  const auto version = in.get<std::uint8_t>();
  const char* augmentation = in.at;
  in.at += std::strlen(augmentation) + 1;
  found.code_unit = in.unsigned_leb();
  found.data_unit = in.signed_leb();
  found.return_register = version == 1 ? in.get<std::uint8_t>() : static_cast<std::uint32_t>(in.unsigned_leb());
  if (augmentation[0] == 'z') {
    found.augmented = true;
    const std::uintptr_t size = in.unsigned_leb();
    found.program = in.at + size;
    for (const char* a = augmentation + 1; *a != '\0'; ++a) {
      if (*a == 'R') found.pointers = in.get<std::uint8_t>();
      else if (*a == 'P') {
        const auto how = in.get<std::uint8_t>();
        found.personality = in.followed(how, 0);
      } else if (*a == 'L') found.call_tables = in.get<std::uint8_t>();
      else if (*a == 'S') found.signal_frame = true;
      else if (*a != 'B') break;
    }
  } else {
    if (augmentation[0] != '\0') return false;
    found.program = in.at;
  }
  return found.return_register < frame_registers::count;
}

/// Runs a program up to `pc`. `initial`: the row after the common part's program, which `restore` restores.
class row_program {
 public:
  row_program(const common_part& common, std::uintptr_t start, std::uintptr_t pc) noexcept
      : common_{common}, place_{start}, pc_{pc} {}

  bool run(const char* from, const char* end, frame_table_row& row, const frame_table_row& initial) noexcept {
    table_reader in{from};
    while (in.at < end && place_ <= pc_)
      if (!instruction(in, row, initial)) return false;
    return true;
  }

 private:
  static constexpr std::size_t remembered_most = 4;

  bool instruction(table_reader& in, frame_table_row& row, const frame_table_row& initial) noexcept {
    using kind = register_rule::kind;
    const auto op = in.get<std::uint8_t>();
    const std::uint8_t low = op & 0x3f;
    switch (op >> 6) {
      case 1: return advance(low);
      case 2: return set(row, low, kind::saved_at, scaled(in.unsigned_leb()));
      case 3:
        if (low < frame_registers::count) row.rules[low] = initial.rules[low];
        return true;
      default: break;
    }
    switch (op) {
      case 0x00: return true;                                            // nop
      case 0x01: place_ = in.pointer(common_.pointers, 0); return true;  // set_loc
      case 0x02: return advance(in.get<std::uint8_t>());
      case 0x03: return advance(in.get<std::uint16_t>());
      case 0x04: return advance(in.get<std::uint32_t>());
      case 0x05: {  // offset_extended
        const std::uintptr_t reg = in.unsigned_leb();
        return set(row, reg, kind::saved_at, scaled(in.unsigned_leb()));
      }
      case 0x06: {  // restore_extended
        const std::uintptr_t reg = in.unsigned_leb();
        if (reg < frame_registers::count) row.rules[reg] = initial.rules[reg];
        return true;
      }
      case 0x07: return set(row, in.unsigned_leb(), kind::undefined, 0);
      case 0x08: return set(row, in.unsigned_leb(), kind::same, 0);
      case 0x09: {  // register
        const std::uintptr_t reg = in.unsigned_leb();
        return set(row, reg, kind::in_register, static_cast<std::intptr_t>(in.unsigned_leb()));
      }
      case 0x0a:  // remember_state
        if (remembered_ == remembered_most) return false;
        memory_[remembered_++] = row;
        return true;
      case 0x0b:  // restore_state
        if (remembered_ == 0) return false;
        row = memory_[--remembered_];
        return true;
      case 0x0c: {  // def_cfa
        row.cfa_register = static_cast<std::uint32_t>(in.unsigned_leb());
        return offset_of_cfa(row, static_cast<std::intptr_t>(in.unsigned_leb()));
      }
      case 0x0d:
        row.cfa_register = static_cast<std::uint32_t>(in.unsigned_leb());
        row.cfa_expression = nullptr;
        return true;
      case 0x0e: return offset_of_cfa(row, static_cast<std::intptr_t>(in.unsigned_leb()));
      case 0x0f: row.cfa_expression = in.at; return skip_block(in);
      case 0x10: {  // expression
        const std::uintptr_t reg = in.unsigned_leb();
        const bool ok = set(row, reg, kind::saved_at_expression, in.at - row.base);
        return skip_block(in) && ok;
      }
      case 0x11: {  // offset_extended_sf
        const std::uintptr_t reg = in.unsigned_leb();
        return set(row, reg, kind::saved_at, in.signed_leb() * common_.data_unit);
      }
      case 0x12: {  // def_cfa_sf
        row.cfa_register = static_cast<std::uint32_t>(in.unsigned_leb());
        return offset_of_cfa(row, in.signed_leb() * common_.data_unit);
      }
      case 0x13: return offset_of_cfa(row, in.signed_leb() * common_.data_unit);
      case 0x14: {  // val_offset
        const std::uintptr_t reg = in.unsigned_leb();
        return set(row, reg, kind::is, scaled(in.unsigned_leb()));
      }
      case 0x15: {  // val_offset_sf
        const std::uintptr_t reg = in.unsigned_leb();
        return set(row, reg, kind::is, in.signed_leb() * common_.data_unit);
      }
      case 0x16: {  // val_expression
        const std::uintptr_t reg = in.unsigned_leb();
        const bool ok = set(row, reg, kind::is_expression, in.at - row.base);
        return skip_block(in) && ok;
      }
      case 0x2d: return true;                     // aarch64: return addresses are signed from here on, or no longer
      case 0x2e: in.unsigned_leb(); return true;  // GNU_args_size
      default: return false;
    }
  }

  std::intptr_t scaled(std::uintptr_t offset) const noexcept {
    return static_cast<std::intptr_t>(offset) * common_.data_unit;
  }
  bool advance(std::uintptr_t units) noexcept {
    place_ += units * common_.code_unit;
    return true;
  }
  static bool offset_of_cfa(frame_table_row& row, std::intptr_t offset) noexcept {
    row.cfa_offset = static_cast<std::int32_t>(offset);
    row.cfa_expression = nullptr;
    return true;
  }
  static bool set(frame_table_row& row, std::uintptr_t reg, register_rule::kind how, std::intptr_t offset) noexcept {
    if (reg < frame_registers::count) row.rules[reg] = {how, static_cast<std::int32_t>(offset)};
    return true;  // others (vector registers) do not matter here
  }
  static bool skip_block(table_reader& in) noexcept {
    const std::uintptr_t size = in.unsigned_leb();
    in.at += size;
    return true;
  }

  const common_part& common_;
  std::uintptr_t place_;
  std::uintptr_t pc_;
  std::size_t remembered_ = 0;
  std::array<frame_table_row, remembered_most> memory_;
};

/// U2: the entry for `pc` in the sorted table, or null.
const char* find_entry(const char* header, std::uintptr_t pc) noexcept {
  constexpr std::uint8_t relative_int32 = 0x3b;  // to the header
  const auto base = reinterpret_cast<std::uintptr_t>(header);
  table_reader in{header};
  if (in.get<std::uint8_t>() != 1) return nullptr;
  const auto frame_encoding = in.get<std::uint8_t>();
  const auto count_encoding = in.get<std::uint8_t>();
  const auto table_encoding = in.get<std::uint8_t>();
  in.pointer(frame_encoding, base);
  if (count_encoding == table_reader::omitted || table_encoding != relative_int32) return nullptr;
  const std::uintptr_t count = in.pointer(count_encoding, base);
  const char* const table = in.at;
  const auto start_of = [&](std::uintptr_t i) {
    return base + static_cast<std::uintptr_t>(std::intptr_t{table_reader{table + 8 * i}.get<std::int32_t>()});
  };
  if (count == 0 || pc < start_of(0)) return nullptr;
  std::uintptr_t low = 0, high = count;  // start_of(low) <= pc < start_of(high)
  while (high - low > 1) {
    const std::uintptr_t middle = low + (high - low) / 2;
    (start_of(middle) <= pc ? low : high) = middle;
  }
  return header + table_reader{table + 8 * low + 4}.get<std::int32_t>();
}

/// The entry for an instruction, and its common part.
struct function_entry {
  const char* entry = nullptr;
  const char* end = nullptr;
  const char* program = nullptr;
  const char* call_table = nullptr;
  std::uintptr_t start = 0;
  common_part common;
};

bool find_function(std::uintptr_t pc, function_entry& found) noexcept {
  loaded_object object;
  if (!find_loaded_object(pc, object) || object.eh_frame_header == nullptr) return false;
  found.entry = find_entry(object.eh_frame_header, pc);
  if (found.entry == nullptr) return false;
  table_reader in{found.entry};
  const auto length = in.get<std::uint32_t>();
  if (length == 0 || length == 0xffffffff) return false;
  found.end = in.at + length;
  const char* const id_at = in.at;
  const auto to_common = in.get<std::int32_t>();
  common_part& common = found.common;
  if (to_common == 0 || !parse_common(id_at - to_common, common)) return false;
  found.start = in.pointer(common.pointers, 0);
  const std::uintptr_t size = in.pointer(common.pointers & table_reader::format, 0);
  if (pc < found.start || pc >= found.start + size) return false;
  if (common.augmented) {
    const std::uintptr_t extra = in.unsigned_leb();
    found.program = in.at + extra;
    if (extra != 0) found.call_table = reinterpret_cast<const char*>(in.followed(common.call_tables, 0));
  } else {
    found.program = in.at;
  }
  return true;
}

}  // namespace

call_table_place find_call_table(std::uintptr_t pc) noexcept {
  function_entry f;
  if (!find_function(pc, f) || f.call_table == nullptr ||
      f.common.personality != reinterpret_cast<std::uintptr_t>(&gxx_personality))
    return {};
  return {f.call_table, f.start};
}

bool find_row(std::uintptr_t pc, frame_table_row& row, bool& signal_frame) noexcept {
  function_entry f;
  if (!find_function(pc, f)) return false;
  const common_part& common = f.common;
  row = {};
  row.base = f.entry;
  row.return_register = common.return_register;
  row.rules[frame_registers::return_address].how = register_rule::kind::same;
  signal_frame = common.signal_frame;
  const frame_table_row nothing = row;
  row_program first{common, 0, 0};
  if (!first.run(common.program, common.end, row, nothing)) return false;
  const frame_table_row initial = row;
  row_program rest{common, f.start, pc};
  return rest.run(f.program, f.end, row, initial);
}

}  // namespace ramie::detail
