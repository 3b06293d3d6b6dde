// How much of their stacks fibers use, measured while they run: a debugging option, runtime_options::paint_stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ramie {

/// Of all fibers and actors of one name; of one function or actor class, where they have no name.
struct stack_use {
  std::string name;
  std::uint64_t measured = 0;    // fibers that ended, turns of actors, stolen fork jobs; those on a stack now
  std::size_t most_bytes = 0;    // from the top of the stack, ramie's own frames included
  std::size_t usable_bytes = 0;  // that stack's
};

/// The measurements of runtimes with `paint_stacks` since the process began, the deepest first; including fibers that
/// are still on a stack, as deep as they were until now. Figures below about 2 KiB may be due to the measurement
/// itself. Up to 1,000 names are kept apart; further ones are together in "(others)". Throws std::bad_alloc. Any
/// thread; does not suspend.
[[nodiscard]] std::vector<stack_use> stack_usage();

}  // namespace ramie
