// What a single fiber can be told at its start.
#pragma once

#include <cstddef>
#include <string>

namespace ramie {

struct fiber_options {
  /// Shows in reports. Empty: none.
  std::string name{};
  /// Bytes of address space for the stack, 16 KiB to 1 GiB, rounded up to a power of two. 0: the runtime's stack size.
  std::size_t stack_size = 0;
};

}  // namespace ramie
