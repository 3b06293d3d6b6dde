#include <ramie/context/no_throw.hpp>

#include <ramie/base/error.hpp>
#include <ramie/context/frame_tables.hpp>
#include <ramie/context/table_reader.hpp>

#include <unwind.h>

#include <cstdint>
#include <exception>
#include <typeinfo>

// One for each program or library, in those that clang has compiled; and AddressSanitizer's, which it calls before.
extern "C" __attribute__((weak)) void clang_call_terminate(void*) asm("__clang_call_terminate");
extern "C" __attribute__((weak)) void asan_handle_no_return() asm("__asan_handle_no_return");

namespace ramie::detail {

namespace {

enum class what { passes, is_caught, ends };

/// Skips the instruction that marks where jumps may go, if there is one (-fcf-protection, -mbranch-protection).
void skip_mark(table_reader& code) noexcept {
#if defined(__x86_64__)
  constexpr std::uint32_t mark = 0xfa1e0ff3;  // endbr64
#else
  constexpr std::uint32_t mark = 0xd503249f;  // bti j
#endif
  if (table_reader ahead = code; ahead.get<std::uint32_t>() == mark) code = ahead;
}

/// Of a piece of code: where its first call goes, after nothing but moves of registers. 0: it begins otherwise.
std::uintptr_t first_call(table_reader& code) noexcept {
#if defined(__x86_64__)
  for (;;) {
    const auto byte = code.get<std::uint8_t>();
    if (byte == 0xe8) {
      const std::intptr_t to = code.get<std::int32_t>();
      return reinterpret_cast<std::uintptr_t>(code.at) + static_cast<std::uintptr_t>(to);
    }
    const auto operation = code.get<std::uint8_t>();
    const auto operands = code.get<std::uint8_t>();
    if (byte != 0x48 || (operation != 0x89 && operation != 0x8b)) return 0;
    if (operands >> 6 == 1) code.get<std::uint8_t>();  // to or from the stack, near the frame's address
    else if (operands >> 6 != 3) return 0;
  }
#else
  for (;;) {
    const auto here = reinterpret_cast<std::uintptr_t>(code.at);
    const auto instruction = code.get<std::uint32_t>();
    if (instruction >> 26 == 0x25) {  // bl
      const std::intptr_t to = static_cast<std::int32_t>(instruction << 6) >> 4;
      return here + static_cast<std::uintptr_t>(to);
    }
    if ((instruction & 0xffe0ffe0) != 0xaa0003e0) return 0;
  }
#endif
}

/// E4. The address of a handler's code: is it the end of a noexcept function? Only its first call is looked at: what
/// comes later may belong to the next handler.
bool ends_by_clang(std::uintptr_t handler) noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(&clang_call_terminate);
  const auto before = reinterpret_cast<std::uintptr_t>(&asan_handle_no_return);
  if (wanted == 0) return false;
  table_reader code{reinterpret_cast<const char*>(handler)};
  skip_mark(code);
  std::uintptr_t called = first_call(code);
  if (called == before && before != 0) called = first_call(code);
  return called == wanted;
}

/// A function's table: .gcc_except_table, as __gxx_personality_v0 reads it.
class call_table {
 public:
  explicit call_table(call_table_place of) noexcept : handlers_{of.function}, function_{of.function} {
    table_reader in{of.table};
    if (const auto how = in.get<std::uint8_t>(); how != table_reader::omitted) handlers_ = in.pointer(how, 0);
    types_are_ = in.get<std::uint8_t>();
    if (types_are_ != table_reader::omitted) {
      const std::uintptr_t size = in.unsigned_leb();
      types_ = in.at + size;
    }
    calls_are_ = in.get<std::uint8_t>();
    const std::uintptr_t size = in.unsigned_leb();
    calls_ = in.at;
    actions_ = in.at + size;
  }

  [[nodiscard]] what becomes_of_call_at(std::uintptr_t pc) const noexcept {
    for (table_reader in{calls_}; in.at < actions_;) {
      const call c = next(in);
      if (pc < c.start) break;  // they are sorted
      if (pc >= c.start + c.size) continue;
      if (c.handler == 0 || c.action == 0) return what::passes;  // or cleans up
      return becomes_of(actions_ + c.action - 1, handlers_ + c.handler);
    }
    return what::ends;  // E1
  }

 private:
  struct call {
    std::uintptr_t start;
    std::uintptr_t size;
    std::uintptr_t handler;  // 0: none
    std::uintptr_t action;
  };
  call next(table_reader& in) const noexcept {
    const std::uint8_t format = calls_are_ & table_reader::format;
    const std::uintptr_t start = function_ + in.pointer(format, 0);
    const std::uintptr_t size = in.pointer(format, 0);
    const std::uintptr_t handler = in.pointer(format, 0);
    return {start, size, handler, in.unsigned_leb()};
  }
  /// E2, by a list of filters, innermost first.
  [[nodiscard]] what becomes_of(const char* action, std::uintptr_t handler) const noexcept {
    for (bool passed_on = false;;) {
      table_reader in{action};
      const std::intptr_t filter = in.signed_leb();
      const char* const here = in.at;
      const std::intptr_t to_next = in.signed_leb();
      if (filter > 0) {
        const std::type_info* const type = type_at(static_cast<std::uintptr_t>(filter));
        if (type != nullptr && *type == typeid(passes_on)) passed_on = true;
        else if (passed_on) passed_on = false;
        else if (type == nullptr) return ends_by_clang(handler) ? what::ends : what::is_caught;
        else if (catches(*type)) return what::is_caught;
      } else if (filter < 0) {  // an exception specification from before noexcept; only throw() lets nothing out
        if (table_reader{types_ - filter - 1}.unsigned_leb() == 0) return what::ends;
      }
      if (to_next == 0) return what::passes;
      action = here + to_next;
    }
  }
  static bool catches(const std::type_info& type) noexcept {
    return type == typeid(cancelled) || type == typeid(std::exception);
  }
  /// Null: everything.
  [[nodiscard]] const std::type_info* type_at(std::uintptr_t filter) const noexcept {
    const std::uint8_t format = types_are_ & 0x07;
    const std::uintptr_t size = format == 0x02 ? 2 : format == 0x03 ? 4 : sizeof(std::uintptr_t);
    table_reader in{types_ - filter * size};
    return reinterpret_cast<const std::type_info*>(in.followed(types_are_, 0));
  }

  std::uintptr_t handlers_;
  std::uintptr_t function_;
  const char* types_ = nullptr;
  const char* calls_;
  const char* actions_;
  std::uint8_t types_are_;
  std::uint8_t calls_are_;
};

struct walk {
  int skipped;
  const char* found = nullptr;
};

_Unwind_Reason_Code look(_Unwind_Context* frame, void* context) {
  auto& by = *static_cast<walk*>(context);
  const auto* const lowest = reinterpret_cast<const char*>(_Unwind_GetCFA(frame));
  if (by.skipped-- > 0) return _URC_NO_REASON;
  int exact = 0;
  const std::uintptr_t pc = _Unwind_GetIPInfo(frame, &exact) - (exact != 0 ? 0 : 1);
  const call_table_place calls = find_call_table(pc);
  if (calls.table == nullptr) return _URC_NO_REASON;
  const what becomes = call_table{calls}.becomes_of_call_at(pc);
  if (becomes == what::passes) return _URC_NO_REASON;
  if (becomes == what::ends) by.found = lowest;
  return _URC_NORMAL_STOP;
}

}  // namespace

const char* nearest_no_throw_frame(int skipped) {
  walk by{skipped + 1};  // and this one
  _Unwind_Backtrace(&look, &by);
  return by.found;
}

}  // namespace ramie::detail
