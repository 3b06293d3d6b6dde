// How reports name fibers, actors and functions.
#pragma once

#include <ramie/inspect/dump_facts.hpp>
#include <ramie/inspect/symbols.hpp>
#include <ramie/inspect/text_writer.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// As `fiber "name" 0x1234` or `actor account "bank" 0x1234`. Async-signal-safe.
void write_title(text_writer& out, const task_facts& t) noexcept;

/// The function with the distance from its beginning, as `main+12`. Demangling allocates; else async-signal-safe.
void write_function(text_writer& out, const code_place& place, bool demangled) noexcept;
/// The file, and the offset that addr2line takes, as `(/usr/bin/bank 0x1234)`. `program`: the path of the program.
void write_offset(text_writer& out, const code_place& place, const char* program) noexcept;

/// The calls of the calling fiber or thread, innermost first: returns how many. Any thread.
std::size_t own_calls(std::uintptr_t* pcs, std::size_t most) noexcept;
/// Writes ` in FUNCTION (FILE OFFSET)` of the first of them that is neither ramie's nor the standard library's, if
/// there is one. Allocates. Any thread.
void write_caller(text_writer& out, const std::uintptr_t* pcs, std::size_t count) noexcept;

}  // namespace ramie::detail
