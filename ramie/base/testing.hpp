// For the tests of all floors: the kind of machine they run on.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace ramie::detail::testing {

/// Whether the program runs under a user-mode emulator of another processor instead of on Linux itself. Emulators
/// accept any advice about memory and know little of /proc; other programs see the emulator in place of this one.
inline bool emulated() noexcept {
  constexpr int no_such_advice = 9999;
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* page = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::abort();
  // Bypasses glibc and the sanitizers' wrappers.
  const bool taken = ::syscall(SYS_madvise, page, size, no_such_advice) == 0;
  ::munmap(page, size);
  return taken;
}

/// For GTEST_FLAG_SET(death_test_style, ...). The safer style starts this program again, which an emulator cannot.
inline const char* death_test_style() noexcept { return emulated() ? "fast" : "threadsafe"; }

}  // namespace ramie::detail::testing
