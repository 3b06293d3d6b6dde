// An unwinder by the tables that compilers write for exceptions (.eh_frame, DWARF call frame information). Frame
// pointers would be simpler, but neither this library nor its users' code usually has them; and the unwinder that
// comes with the compiler cannot be started at a suspended context, nor be called in a signal handler.
//
// U1 Find the object that holds the pc, and its sorted table of functions (.eh_frame_hdr).
// U2 Find the function's entry (FDE) there by bisection, and the entry's common part (CIE).
// U3 Run both programs up to the pc. They say where the canonical frame address is (the stack pointer before
//    the call) and where the caller's registers were saved, relative to it.
// U4 Read those. The return address is the next pc; looked up less one, because a call may be a function's last
//    instruction. The first pc is looked up as it is: a suspended context resumes just after the jump of its switch,
//    and the entry before it says "outermost frame".
// Every read of the stack is checked against its bounds, and each frame must lie above the one before.
#include <ramie/context/frames.hpp>

#include <ramie/context/frame_tables.hpp>

#include <ucontext.h>

#include <cstring>

namespace ramie::detail {

namespace {

constexpr std::size_t registers = frame_registers::count;

/// The frames' own memory, which sanitizers of running code must not watch.
RAMIE_UNWATCHED bool read_stack(stack_range range, std::uintptr_t address, std::uintptr_t& value) noexcept {
  const auto low = reinterpret_cast<std::uintptr_t>(range.low), high = reinterpret_cast<std::uintptr_t>(range.high);
  if (address < low || address > high - sizeof value || address % sizeof value != 0) return false;
  value = *reinterpret_cast<const volatile std::uintptr_t*>(address);
  return true;
}

/// A DWARF expression, as far as compilers and linkers use them for frames. False: it uses something else.
bool evaluate(const char* code, const frame_registers& frame, stack_range range, std::uintptr_t first, bool has_first,
              std::uintptr_t& result) noexcept {
  std::array<std::uintptr_t, 16> values;
  std::size_t n = 0;
  if (has_first) values[n++] = first;
  table_reader in{code};
  const std::uintptr_t size = in.unsigned_leb();
  const char* const end = in.at + size;
  while (in.at < end) {
    if (n + 1 >= values.size()) return false;
    const std::uint8_t op = in.get<std::uint8_t>();
    if (op >= 0x70 && op <= 0x8f) {  // breg
      const std::size_t reg = op - 0x70u;
      if (reg >= registers) return false;
      const auto base =
          reg == frame_registers::return_address && frame_registers::return_address == 16 ? frame.pc : frame.value[reg];
      values[n++] = base + static_cast<std::uintptr_t>(in.signed_leb());
    } else if (op >= 0x30 && op <= 0x4f) {  // lit
      values[n++] = op - 0x30u;
    } else if (op == 0x08) {
      values[n++] = in.get<std::uint8_t>();
    } else if (op == 0x09) {
      values[n++] = static_cast<std::uintptr_t>(std::intptr_t{in.get<std::int8_t>()});
    } else if (op == 0x0a) {
      values[n++] = in.get<std::uint16_t>();
    } else if (op == 0x10) {
      values[n++] = in.unsigned_leb();
    } else if (op == 0x11) {
      values[n++] = static_cast<std::uintptr_t>(in.signed_leb());
    } else if (op == 0x06 && n >= 1) {  // deref
      if (!read_stack(range, values[n - 1], values[n - 1])) return false;
    } else if (op == 0x12 && n >= 1) {  // dup
      values[n] = values[n - 1];
      ++n;
    } else if (op == 0x23 && n >= 1) {  // plus_uconst
      values[n - 1] += in.unsigned_leb();
    } else if (n >= 2) {
      const std::uintptr_t b = values[--n];
      std::uintptr_t& a = values[n - 1];
      switch (op) {
        case 0x1a: a &= b; break;
        case 0x1c: a -= b; break;
        case 0x21: a |= b; break;
        case 0x22: a += b; break;
        case 0x24: a = b < 64 ? a << b : 0; break;
        case 0x25: a = b < 64 ? a >> b : 0; break;
        case 0x2a: a = static_cast<std::intptr_t>(a) >= static_cast<std::intptr_t>(b); break;
        case 0x2b: a = static_cast<std::intptr_t>(a) > static_cast<std::intptr_t>(b); break;
        default: return false;
      }
    } else {
      return false;
    }
  }
  if (n == 0) return false;
  result = values[n - 1];
  return true;
}

/// U4. False: there is no caller.
bool step(frame_registers& frame, stack_range range) noexcept {
  frame_table_row row;
  bool signal_frame = false;
  if (!find_row(frame.pc - (frame.exact ? 0 : 1), row, signal_frame)) {
    // No tables (hand-written or generated code): by the frame pointer, which may be wrong.
    const std::uintptr_t fp = frame.value[frame_registers::frame_pointer];
    std::uintptr_t caller_fp = 0, caller_pc = 0;
    if (fp < frame.value[frame_registers::stack_pointer] || !read_stack(range, fp, caller_fp) ||
        !read_stack(range, fp + sizeof fp, caller_pc))
      return false;
    frame.value[frame_registers::frame_pointer] = caller_fp;
    frame.value[frame_registers::stack_pointer] = fp + 2 * sizeof fp;
    frame.pc = caller_pc;
    frame.exact = false;
    return caller_pc != 0;
  }
  std::uintptr_t cfa;
  if (row.cfa_expression != nullptr) {
    if (!evaluate(row.cfa_expression, frame, range, 0, false, cfa)) return false;
  } else {
    if (row.cfa_register >= registers) return false;
    cfa = frame.value[row.cfa_register] + static_cast<std::uintptr_t>(row.cfa_offset);
  }
  const std::uintptr_t sp_before = frame.value[frame_registers::stack_pointer];
  frame_registers caller = frame;
  caller.value[frame_registers::stack_pointer] = cfa;
  for (std::size_t i = 0; i < registers; ++i) {
    const register_rule& rule = row.rules[i];
    switch (rule.how) {
      case register_rule::kind::same: break;
      case register_rule::kind::undefined:
        if (i == row.return_register) return false;  // the stack's base
        break;
      case register_rule::kind::saved_at:
        if (!read_stack(range, cfa + static_cast<std::uintptr_t>(rule.offset), caller.value[i])) return false;
        break;
      case register_rule::kind::is: caller.value[i] = cfa + static_cast<std::uintptr_t>(rule.offset); break;
      case register_rule::kind::in_register:
        if (static_cast<std::size_t>(rule.offset) >= registers) return false;
        caller.value[i] = frame.value[static_cast<std::size_t>(rule.offset)];
        break;
      case register_rule::kind::saved_at_expression:
      case register_rule::kind::is_expression: {
        std::uintptr_t found;
        if (!evaluate(row.base + rule.offset, frame, range, cfa, true, found)) return false;
        if (rule.how == register_rule::kind::is_expression) caller.value[i] = found;
        else if (!read_stack(range, found, caller.value[i])) return false;
        break;
      }
    }
  }
  caller.pc = caller.value[row.return_register];
#if defined(__aarch64__)
  caller.pc &= 0x0000'ffff'ffff'ffffu;  // without a pointer authentication code
#endif
  caller.exact = signal_frame;
  // A leaf on aarch64 may have the same stack pointer, once.
  if (caller.pc == 0 || cfa < sp_before || (cfa == sp_before && caller.pc == frame.pc)) return false;
  frame = caller;
  return true;
}

}  // namespace

frame_registers registers_of(const context& suspended) noexcept {
  frame_registers found;
  found.pc = reinterpret_cast<std::uintptr_t>(suspended.pc);
  found.value[frame_registers::stack_pointer] = reinterpret_cast<std::uintptr_t>(suspended.sp);
  found.value[frame_registers::frame_pointer] = reinterpret_cast<std::uintptr_t>(suspended.fp);
  return found;
}

frame_registers registers_of_interrupted(const void* machine_context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(machine_context)->uc_mcontext;
  frame_registers found;
#if defined(__x86_64__)
  constexpr std::array<int, 16> order{REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  for (std::size_t i = 0; i < order.size(); ++i) found.value[i] = static_cast<std::uintptr_t>(machine.gregs[order[i]]);
  found.pc = static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
#else
  for (std::size_t i = 0; i < 31; ++i) found.value[i] = machine.regs[i];
  found.value[frame_registers::stack_pointer] = machine.sp;
  found.pc = machine.pc;
#endif
  return found;
}

std::size_t unwind(frame_registers from, stack_range range, std::uintptr_t* pcs, std::size_t most) noexcept {
  std::size_t n = 0;
  for (; n < most; ++n) {
    if (from.pc == 0) break;
    pcs[n] = from.pc - (from.exact ? 0 : 1);
    if (!step(from, range)) return n + 1;
  }
  return n;
}

}  // namespace ramie::detail
