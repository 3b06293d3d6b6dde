// What a worker reports to its observer, at the places that are observed.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/task/ready_item.hpp>
#include <ramie/task/task.hpp>
#include <ramie/worker/observer.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ramie::detail {

struct stack;
struct worker;

// Called by the worker, with `w->observed`, or `w->observed_tasks`, not null.

/// Before a switch. `parks`: the fiber that is left waits.
RAMIE_NOINLINE void observe_go(worker* w, stack* from, stack* to, bool parks) noexcept;
RAMIE_NOINLINE void observe_begin(worker* w, task* t) noexcept;
RAMIE_NOINLINE void observe_end(worker* w) noexcept;
RAMIE_NOINLINE void observe_spawn(worker* w, task* t) noexcept;
RAMIE_NOINLINE void observe_wake(worker* w, ready_item ready) noexcept;
RAMIE_NOINLINE void observe_steal(worker* w, std::uint32_t victim, std::size_t count) noexcept;
RAMIE_NOINLINE void observe_sleep(worker* w, bool sleeps) noexcept;
/// A message to the actor `to`. `type` is kept: a constant.
RAMIE_NOINLINE void observe_message(worker* w, task* to, std::string_view type) noexcept;

/// A wake-up by a thread that is not a worker.
RAMIE_NOINLINE void observe_outside(outside_observer& o, ready_item ready) noexcept;

}  // namespace ramie::detail
