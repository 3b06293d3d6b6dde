// Facts about the program or library that holds an address.
#pragma once

#include <cstdint>

namespace ramie::detail {

struct loaded_object {
  std::uintptr_t base = 0;                // what addresses in its file are relative to
  const char* path = "";                  // "": the program itself
  const char* eh_frame_header = nullptr;  // null: it has no sorted unwinding table
};

/// False if no loaded object holds it. Any thread; async-signal-safe with glibc 2.35 or later, else only while no
/// thread loads a library.
bool find_loaded_object(std::uintptr_t address, loaded_object& found) noexcept;

}  // namespace ramie::detail
