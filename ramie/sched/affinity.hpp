// Whether a woken resident is better run by its waker's worker or at its home.
#pragma once

#include <ramie/sched/resident.hpp>

namespace ramie::detail {

/// Asked when a resident is woken by another worker than its home, by who makes it ready.
[[nodiscard]] inline bool goes_home(resident&) noexcept { return false; }

}  // namespace ramie::detail
