// Which calls are on a stack: an unwinder that may run in a signal handler.
#pragma once

#include <ramie/context/context.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// Registers as DWARF numbers them, as far as a caller's can be determined.
struct frame_registers {
#if defined(__x86_64__)
  static constexpr std::size_t count = 17, frame_pointer = 6, stack_pointer = 7, return_address = 16;
#else
  static constexpr std::size_t count = 32, frame_pointer = 29, stack_pointer = 31, return_address = 30;
#endif
  std::array<std::uintptr_t, count> value{};
  std::uintptr_t pc = 0;
  bool exact = true;  // pc is the instruction to resume at, not the one after a call
};

/// Those of a suspended context. Its callers' frames do not depend on the registers that it does not keep.
[[nodiscard]] frame_registers registers_of(const context& suspended) noexcept;
/// Those of code that a signal interrupted; `machine_context` is the handler's third argument.
[[nodiscard]] frame_registers registers_of_interrupted(const void* machine_context) noexcept;

/// The memory that may be read: the stack.
struct stack_range {
  const char* low;
  const char* high;
};

/// Writes the addresses of the frames, innermost first, into `pcs`; returns how many. All but the first are the address
/// after a call, less one. Stops at the stack's base, and at code without unwinding tables that has no frame pointer
/// either. Reads only `range` and the tables of loaded code; never faults. Any thread; async-signal-safe (with a
/// C library before glibc 2.35 only while no thread loads a library).
std::size_t unwind(frame_registers from, stack_range range, std::uintptr_t* pcs, std::size_t most) noexcept;

}  // namespace ramie::detail
