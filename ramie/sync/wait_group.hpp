// How many pieces of work are under way, as Go's sync.WaitGroup.
#pragma once

#include <ramie/sync/zero_count.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace ramie {

/// A counter that goes up and down; waiters continue when it is zero. It may be used again then. Fibers and plain
/// threads may use all of it alike. A waiter may destroy it as soon as its wait has returned. The waiting functions are
/// in zero_count and timed_waits: try_wait, wait, wait_for, wait_until.
class wait_group : public detail::zero_count<wait_group> {
 public:
  /// Starts with a counter of `n`. Throws invalid_argument if that is negative.
  constexpr explicit wait_group(std::ptrdiff_t n = 0)
      : zero_count{detail::checked_count(kind, n, std::numeric_limits<std::ptrdiff_t>::max())} {}

  /// Adds `n`, which may be negative, to the counter, and wakes all waiters if that makes it zero. Call it before the
  /// work that it counts starts. Does not suspend. Throws usage_error, and changes nothing, if the counter would be
  /// negative.
  void add(std::ptrdiff_t n = 1);
  /// One piece of work is done: add(-1).
  void done() { add(-1); }

 private:
  friend zero_count;
  static constexpr const char* kind = "wait_group";
};

}  // namespace ramie
