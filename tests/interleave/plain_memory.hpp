// Races on plain data, in the runs with the weak memory: two accesses of different threads to the same bytes, at least
// one a write and at least one not atomic, neither of which happened before the other in the sense of C++20.
//
//  D1 The programs are compiled with the compiler's instrumentation for ThreadSanitizer, and linked without its library:
//     plain_memory.cpp has the functions that are called before each access. They are no steps of the simulation.
//  D2 Each word of memory keeps its last accesses: which thread, at which of its events (weak_memory.hpp, K1), to which
//     bytes. One that is ordered before a later one of the same strength is forgotten, since what races with it also races
//     with the later one.
//  D3 An access that the accessing thread does not know of as earlier is a race: it fails the run, and both places are named.
//  D4 Giving memory back is a write to all of it. What is allocated has no past, nor has what another run has used.
//  D5 The simulator's own accesses do not count: `unwatched`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::interleave {

class engine;

struct plain_access {
  bool write;
  bool atomic;
};

/// Between the start and the end of a run. `watch`: it has clocks to tell the order by.
void begin_plain_memory(bool watch) noexcept;
void end_plain_memory() noexcept;

/// An access of the current thread by the code at `code`.
void note_access(std::uintptr_t at, std::size_t size, plain_access how, const void* code) noexcept;

/// True while the code under test runs in a run whose accesses count.
extern bool watching;
extern bool watched_run;

/// The simulator's own code (D5). Not to be nested.
class unwatched {
 public:
  unwatched() noexcept { watching = false; }
  unwatched(const unwatched&) = delete;
  unwatched& operator=(const unwatched&) = delete;
  ~unwatched() { watching = watched_run; }
};

}  // namespace ramie::interleave
