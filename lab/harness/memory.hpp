// The memory of a process, as the kernel reports it.
#pragma once

#include <cstdint>
#include <string>

namespace ramie::lab {

struct memory_use {
  std::int64_t resident_bytes;       // VmRSS
  std::int64_t peak_resident_bytes;  // VmHWM: the maximum of VmRSS since the program started
  std::int64_t page_table_bytes;     // VmPTE; not part of VmRSS
};

/// Reads a process's status file in /proc. Throws lab_error if it cannot be read.
memory_use read_memory_use(const std::string& status_file = "/proc/self/status");

/// Bytes available without swapping (MemAvailable). Throws lab_error.
std::int64_t available_memory();

}  // namespace ramie::lab
