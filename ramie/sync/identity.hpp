// Who is running, cheap enough for each lock of a mutex: the stack. A fiber has the same from its start to its end, and
// no other fiber has it meanwhile. A fork job that another worker took runs on a stack of its own, and so counts as
// somebody else than the fiber that forked it, as it must: both run at the same time.
#pragma once

#include <ramie/sched/current.hpp>
#include <ramie/sched/fork_deque.hpp>

#include <cstdint>

namespace ramie::detail {

/// That of a plain thread: an odd address, as no stack descriptor has.
[[nodiscard]] const void* thread_identity() noexcept;

[[nodiscard]] inline bool is_thread(const void* who) noexcept {
  return (reinterpret_cast<std::uintptr_t>(who) & 1) != 0;
}

[[nodiscard]] RAMIE_ALWAYS_INLINE const void* identity_on(const fork_deque* w) noexcept {
  return w != nullptr ? static_cast<const void*>(w->running) : thread_identity();
}
[[nodiscard]] RAMIE_ALWAYS_INLINE const void* identity() noexcept { return identity_on(current_forks()); }

}  // namespace ramie::detail
