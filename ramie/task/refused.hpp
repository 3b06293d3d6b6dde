// Waits that are refused because the fiber was asked to stop before.
#pragma once

#include <ramie/task/wait.hpp>

namespace ramie::detail {

/// Counts; tells once (base/notice.hpp) of a fiber that goes on and on: it swallows `cancelled`. The fiber itself, or a
/// strand of it; any number of them at once. Does not suspend.
void note_refused_wait(const task& t, const wait_site& site) noexcept;
/// Counts one less: the fiber is in clean-up, and swallows nothing. By the fiber itself.
void take_back_refused_wait(const task& t) noexcept;

}  // namespace ramie::detail
