// The identity of the caller, cheap enough for each lock of a mutex: its stack. A fiber has the same one from start to
// end, and no other fiber has it meanwhile. A fork job that another worker took runs on a stack of its own, so it has
// another identity than the fiber that forked it, as it must: both run at the same time.
#pragma once

#include <ramie/task/current.hpp>

#include <cstdint>

namespace ramie::detail {

/// The identity of a plain thread: an odd address, as no stack descriptor has.
[[nodiscard]] const void* thread_identity() noexcept;

[[nodiscard]] inline bool is_thread(const void* who) noexcept {
  return (reinterpret_cast<std::uintptr_t>(who) & 1) != 0;
}

[[nodiscard]] RAMIE_ALWAYS_INLINE const void* identity_on(const worker_base* w) noexcept {
  return w != nullptr ? static_cast<const void*>(w->running) : thread_identity();
}
[[nodiscard]] RAMIE_ALWAYS_INLINE const void* identity() noexcept { return identity_on(current_worker()); }

}  // namespace ramie::detail
