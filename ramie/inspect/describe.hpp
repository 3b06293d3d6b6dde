// How reports name fibers, actors and functions.
#pragma once

#include <ramie/inspect/dump_facts.hpp>
#include <ramie/inspect/symbols.hpp>
#include <ramie/inspect/text_writer.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/pool.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace ramie::detail {

/// How long a notice may wait for its receiver in all; one that takes nothing for a second is given up before.
inline constexpr int notice_seconds_most = 60;

/// As `fiber "name" 0x1234` or `actor account "bank" 0x1234`. Async-signal-safe.
void write_title(text_writer& out, const task_facts& t) noexcept;

/// The function with the distance from its beginning, as `main+12`. Demangling allocates; else async-signal-safe.
void write_function(text_writer& out, const code_place& place, bool demangled) noexcept;
/// A function's C++ name. Throws std::bad_alloc.
[[nodiscard]] std::string readable_function(const char* linker_name);
/// The file, and the offset that addr2line takes, as `(/usr/bin/bank 0x1234)`. `program`: the path of the program.
void write_offset(text_writer& out, const code_place& place, const char* program) noexcept;

/// The calls of the calling fiber or thread, innermost first: returns how many. Any thread.
std::size_t own_calls(std::uintptr_t* pcs, std::size_t most) noexcept;
/// Writes `before` and `in FUNCTION (FILE OFFSET)` of the first of them that is neither ramie's nor the standard
/// library's; false if there is none. Allocates. Any thread.
bool write_caller(text_writer& out, const char* before, const std::uintptr_t* pcs, std::size_t count) noexcept;
/// Writes where the fiber waits, as `, at FILE:LINE in FUNCTION`. If that is a place in a library, and its frames are
/// known, its caller instead. Allocates. Any thread.
void write_place(text_writer& out, const fiber_facts& f) noexcept;

/// Writes ` (descriptor 7, to 127.0.0.1:80, to be writable)`: its peer if it has one, else where it is bound. Of a file
/// or pipe only the number. Async-signal-safe. Any thread.
void write_descriptor(text_writer& out, int fd, bool writes) noexcept;
/// The address of its peer if it has one, else its own; "" if it has none. Throws std::bad_alloc. Any thread.
[[nodiscard]] std::string address_of_descriptor(int fd);

constexpr std::size_t report_frames_most = 24;  // of a fiber; a guess
/// Calls visit(facts) for each fiber, actor and child of `of` that has begun and not ended. Any thread.
template <class Visit>
void for_each_on_stack(const scheduler& of, std::size_t frames_most, Visit visit) {
  struct look {
    const scheduler& of;
    std::size_t frames_most;
    Visit& visit;
    inspection during{};
    fiber_facts found{};
  } with{of, frames_most, visit};
  for_each_stack(
      [](void* opaque, stack& s) {
        auto& to = *static_cast<look*>(opaque);
        bool runs = false;
        for (std::size_t i = 0; i < to.of.worker_count(); ++i) runs |= peek(to.of.at(i).running) == &s;
        to.found = {};
        if (!look_at_stack(to.during, s, runs, to.frames_most, to.found) || !to.found.who.known) return;
        for (std::size_t i = 0; i < to.of.worker_count(); ++i)
          if (&to.of.at(i) == to.found.who.home) return to.visit(to.found);
      },
      &with);
}

}  // namespace ramie::detail
