// Assertions that stay on in release builds, for states that would otherwise corrupt memory silently.
#pragma once

#include <ramie/base/config.hpp>

namespace ramie::detail {

/// Writes "ramie: <what> (file:line)" to standard error and aborts. Async-signal-safe.
[[noreturn]] RAMIE_COLD void fatal(const char* what, const char* file, int line) noexcept;

}  // namespace ramie::detail

#define RAMIE_ASSERT(condition, what)                   \
  do {                                                  \
    if (!(condition)) [[unlikely]]                      \
      ::ramie::detail::fatal(what, __FILE__, __LINE__); \
  } while (false)
