// Why there is no stack: plain data where exceptions are not allowed, turned into a resource_error where they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

struct refusal {
  enum class call : std::uint8_t {
    none,  // nothing was refused
    map_stacks,
    map_descriptors,
    map_signal_stack,
    guard_by_madvise,
    guard_by_mprotect,
    guard_budget,  // not a call: vm.max_map_count leaves no room for one more guard of two mappings
  };

  call refused = call::none;
  int code = 0;          // errno
  std::size_t size = 0;  // bytes asked for in the last attempt

  explicit operator bool() const noexcept { return refused != call::none; }
};

/// Throws resource_error: what was refused, errno in words, and the limit in the way as far as /proc tells. `r` must be
/// a refusal. Takes milliseconds if the process has many thousands of mappings, for they are counted.
[[noreturn]] void throw_refusal(const refusal& r);

}  // namespace ramie::detail
