// One line on standard error about a program that does what is seldom meant, with the place and the remedy. Each place
// is told once. docs/debugging.md lists them all.
#pragma once

#include <cstdint>
#include <source_location>

namespace ramie::detail {

/// runtime_options::notices: none are told from now on. Any thread.
void switch_off_notices() noexcept;
/// Are they on? Any thread; async-signal-safe.
[[nodiscard]] bool notices_are_on() noexcept;

/// May the caller tell of `place` now? False if it was told of before, or too many others were, or notices are
/// switched off. `place` is not zero: an address of code, or the key of a source location. Any thread.
[[nodiscard]] bool may_notice(std::uintptr_t place) noexcept;
[[nodiscard]] std::uintptr_t key_of(const std::source_location& where) noexcept;

/// Writes "ramie: notice: ", the text and a newline at once, as printf has it. Cut to about a thousand bytes. Any
/// thread.
[[gnu::format(printf, 1, 2)]] void notice(const char* format, ...) noexcept;

}  // namespace ramie::detail
