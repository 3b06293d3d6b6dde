// Mutants without a compiler: an order that is made relaxed, or a fence that is left out, at the addresses in
// RAMIE_WEAKEN, for scripts/mutants.py. RAMIE_SITES names a file to which the addresses of all others are appended that
// the runs came by. Both count from where the program was loaded.
#pragma once

#include <atomic>

namespace ramie::interleave {

/// Reads the variables. Before the first run.
void read_mutants();
/// Appends the addresses seen since.
void tell_sites();

extern bool mutating;
/// The runs with the weak memory notice whatever the others do, if an order or a fence is missing.
bool only_weak_runs() noexcept;
std::memory_order mutated(std::memory_order o, const char* what, const void* code) noexcept;

[[gnu::always_inline]] inline std::memory_order as_mutated(std::memory_order o, const char* what,
                                                           const void* code) noexcept {
  return mutating && o != std::memory_order_relaxed ? mutated(o, what, code) : o;
}
bool is_left_out(const char* what, const void* code) noexcept;

}  // namespace ramie::interleave
