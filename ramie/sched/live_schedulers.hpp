// Which schedulers there are, for reports: readable at any time, in a signal handler too.
//
//  V1 A visitor counts itself in, and only then reads the list (both sequentially consistent).
//  V2 A scheduler that ends takes itself out of the list, and only then waits until no visitor is counted in.
// So one of the two sees the other, and what a visitor finds stays until it has counted itself out.
// Visits are short and never wait. A visitor in a signal handler may have interrupted the very thread
// that is in V2: it finds the list without that scheduler, or the scheduler not yet touched.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

class scheduler;

inline constexpr std::size_t schedulers_listed_most = 64;  // more are not shown

void list_scheduler(scheduler& s) noexcept;
/// V2. Does nothing if it is not in the list.
void unlist_scheduler(scheduler& s) noexcept;

/// Where a debugger begins: a table of names and numbers (offsets of members, addresses of lists) that lets it find
/// workers, fibers and actors in a program or a core file without debugging information of this library. Ends with a
/// null name. Filled when the first scheduler is listed.
struct debug_entry {
  const char* name;
  std::uint64_t value;
};
inline constexpr std::size_t debug_entries_most = 64;
extern "C" debug_entry ramie_debug_layout[debug_entries_most];

/// V1. Async-signal-safe.
class scheduler_visit {
 public:
  scheduler_visit() noexcept;
  ~scheduler_visit();
  scheduler_visit(const scheduler_visit&) = delete;
  scheduler_visit& operator=(const scheduler_visit&) = delete;

  /// Null if there is none at this place. `place` is below schedulers_listed_most.
  [[nodiscard]] scheduler* at(std::size_t place) const noexcept;
};

}  // namespace ramie::detail
