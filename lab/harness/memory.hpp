// The memory of this process, as the kernel reports it.
#pragma once

#include <cstdint>

namespace ramie::lab {

struct memory_use {
  std::int64_t resident_bytes;       // VmRSS
  std::int64_t peak_resident_bytes;  // VmHWM: the maximum of VmRSS since the program started
  std::int64_t page_table_bytes;     // VmPTE; not part of VmRSS
};

/// Reads /proc/self/status. Throws lab_error if that cannot be read.
memory_use read_memory_use();

/// Bytes available without swapping (MemAvailable). Throws lab_error.
std::int64_t available_memory();

}  // namespace ramie::lab
