// How deep a stack was used: unused memory is painted, and a later look finds how far down the paint is gone. For
// debugging. Untouched pages need no paint, and stay untouched.
#pragma once

#include <ramie/stack/stack.hpp>

#include <cstddef>

namespace ramie::detail {

/// Fills the pages that hold memory, from above the guard to the top, or if the caller runs on `s` to just below its
/// frame. Nothing else may run on `s`.
void paint(stack& s) noexcept;

/// Bytes from the top down to the lowest that was written since the last paint(), or since the stack was made. Written
/// bytes that look like paint or, on a page that was touched first, like zeros are not seen at the lower end. If code
/// runs on `s` meanwhile the result is a guess. Any thread; async-signal-safe.
std::size_t painted_depth(const stack& s) noexcept;

}  // namespace ramie::detail
