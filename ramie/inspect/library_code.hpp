// Which code is the user's, and which the library's or the compiler's, told by names alone.
#pragma once

namespace ramie::detail {

/// Is it a function of ramie:: or std::? By its name as the linker knows it. Async-signal-safe.
[[nodiscard]] bool is_library_function(const char* linker_name) noexcept;

/// Is it a header of the standard library, or a file of ramie's own library? By the path that a std::source_location
/// has. Async-signal-safe.
[[nodiscard]] bool is_of_library(const char* file) noexcept;

}  // namespace ramie::detail
