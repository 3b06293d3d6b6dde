// The system calls of this floor, in one place, so that a test can make any one of them fail. None is on a hot path.
#pragma once

#include <sys/uio.h>

#include <cstddef>

namespace ramie::detail {

/// Advice that the C library's headers do not know yet (Linux 6.13).
inline constexpr int advice_guard_install = 102;
inline constexpr int advice_guard_remove = 103;

/// Each fails like the system call behind it: null or -1, and errno.
struct memory_calls {
  void* (*map)(std::size_t size) noexcept;  // fresh private pages, reserved only
  int (*unmap)(void* address, std::size_t size) noexcept;
  int (*advise)(void* address, std::size_t size, int advice) noexcept;
  /// Several ranges in one call; returns how many bytes were advised, from the first range on.
  ssize_t (*advise_ranges)(const iovec* ranges, std::size_t count, int advice) noexcept;
  int (*protect)(void* address, std::size_t size, int protection) noexcept;
  std::size_t (*max_map_count)() noexcept;  // the sysctl as it is now
};

/// The system's own.
extern const memory_calls kernel_calls;

/// Those in use. Any thread.
const memory_calls& calls() noexcept;

/// For tests. Null restores the system's own. `replacement` must outlive its use.
void replace_calls(const memory_calls* replacement) noexcept;

/// Advises all ranges, in one system call where the kernel can. Returns how many ranges were advised, from the first
/// one on; errno tells why that is not all of them. Ranges after the one that failed may have been advised as well.
std::size_t advise_all(const iovec* ranges, std::size_t count, int advice) noexcept;

std::size_t page_size() noexcept;

/// The number in a file that holds one number, such as those below /proc/sys; `otherwise` if it cannot be read.
std::size_t number_in_file(const char* path, std::size_t otherwise) noexcept;

}  // namespace ramie::detail
