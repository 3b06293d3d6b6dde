// Fork jobs that leave their fiber, because it waits or because a thief took one.
#pragma once

#include <ramie/task/fork_frame.hpp>
#include <ramie/task/task.hpp>
#include <ramie/worker/worker.hpp>

#include <cstdint>

namespace ramie::detail {

/// Moves the pending fork jobs of the running fiber to where any fiber may run them.
void promote_fork_jobs(worker* w) noexcept;

/// Runs a job that was stolen or promoted, in place, for the fiber `parent`. `run`: its `state` when it was taken,
/// before the parent could know. `in_flight`: R6. The frame may be gone when it returns.
void run_fork_job(worker* w, fork_frame* f, std::uint64_t run, task* parent, std::uint32_t in_flight) noexcept;

/// What a promoted job's task does: claims and runs it, or finds that its parent did.
void run_promoted_job(worker* w, task* t) noexcept;

}  // namespace ramie::detail
