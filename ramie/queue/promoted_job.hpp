// A fork job that was taken out of its deque, so that any fiber may run it: promotion, steps R1 to R5 in
// sched/fork_jobs.cpp.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/task/fork_frame.hpp>
#include <ramie/task/task.hpp>

#include <cstdint>

namespace ramie::detail {

struct promoted_job : task {
  fork_frame* frame = nullptr;
  std::uint64_t run = 0;        // the value of `state` then: the parent may put its reference there at any time
  task* owner = nullptr;        // the fiber that forked it
  std::uint32_t in_flight = 0;  // exceptions of the owner, when it was promoted (R6)
  atomic<std::uint32_t> claims{0};
};

/// Stands for a job if there was no memory for one: only the parent can run the frame.
[[nodiscard]] promoted_job* kept_back() noexcept;

/// R2, of `f`, forked by `owner`, which has that many exceptions in flight. Null if there is no memory.
[[nodiscard]] promoted_job* make_promoted(fork_frame* f, task* owner, std::uint32_t in_flight) noexcept;

/// R4. True: the caller was the first, and runs the frame. False: it was the second, and the job is gone.
[[nodiscard]] bool claim_promoted(promoted_job* job) noexcept;

/// A promoted job that its parent has claimed already.
[[nodiscard]] bool is_spent_job(const task& t) noexcept;

}  // namespace ramie::detail
