// Fibers that wait for each other while the rest of the program goes on.
#pragma once

namespace ramie::detail {

class scheduler;

/// Tells once (base/notice.hpp) of each circle of fibers and actors that has stood for a second. For
/// reporters::circles; any thread, one at a time.
void tell_of_circles(scheduler& of) noexcept;

}  // namespace ramie::detail
