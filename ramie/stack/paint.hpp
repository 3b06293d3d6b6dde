// How deep a stack was used: what is not used is painted, and afterwards one looks how far down the paint is gone. For
// debugging. Pages that nobody has touched need no paint, and stay untouched.
#pragma once

#include <ramie/stack/stack.hpp>

#include <cstddef>

namespace ramie::detail {

/// Fills the pages that hold memory, from above the guard to the top, or if the caller runs on `s` to just below its
/// frame. Nobody else may run on `s`.
void paint(stack& s) noexcept;

/// Bytes from the top down to the lowest that was written since the last paint(), or since the stack was made. What
/// looked like paint or, on a page that was touched first, like zeros is not seen at the lower end. If somebody runs on
/// `s` meanwhile it is a guess. Any thread; async-signal-safe.
std::size_t painted_depth(const stack& s) noexcept;

}  // namespace ramie::detail
