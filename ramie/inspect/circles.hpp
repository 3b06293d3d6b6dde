// Fibers that wait for each other while the rest of the program goes on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

class scheduler;

/// Tells once (base/notice.hpp) of each circle of fibers and actors that has stood for a second. For
/// reporters::circles; any thread, one at a time.
void tell_of_circles(scheduler& of) noexcept;
/// How many circles there are of waits that began before `begun_before_ns`. For tests. Throws std::bad_alloc.
[[nodiscard]] std::size_t count_circles(std::int64_t begun_before_ns);

}  // namespace ramie::detail
