// Fork jobs that leave their fiber: promotion, and the running of those that were stolen or promoted.
//
// Promotion, step by step. Before a fiber parks or yields, with frames in the deque (or takes one back that is not the
// youngest):
//  R1 Its worker takes `thieves`. Frames below `top` are stolen already: their `promoted` is null.
//  R2 Each frame from `top` to `bottom` gets a promoted_job, a task that names the frame; if there is no memory for one, it gets
//     the mark `kept_back`, and only its parent can run it.
//  R3 All frames' deque becomes dead_forks; bottom = top = base; `thieves` is released; the jobs go to the spawn deque.
//  R4 The parent's join finds dead_forks. It adds one to the job's `claims`; so does the worker that takes the job's task. The one that
//     finds 0 runs the frame; the one that finds 1 frees the job: no thread looks at it afterwards.
//  R5 A worker that won runs the frame, whose parent cannot pass its join before `state` is `done`. One that lost never
//     touches the frame.
//  R6 Jobs that are promoted while exceptions are in flight are clean-up (region.hpp): the number goes with them, as it
//     is at least that of the fork, which is not kept. It is too high for a frame that is older than an exception; its
//     join has the number of the fork. So a parent that lost leaves that number in the frame, where nobody looks for
//     the job any more, heavy fence (inspection), and looks at the waits of its strands. A strand arms its wait, light
//     fence, and then reads the number. It was linked before (N1 of strands.hpp), so N3 holds.
#include <ramie/sched/fork_jobs.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/queue/promoted_job.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/worker/stack_use_table.hpp>

#include <mutex>

namespace ramie::detail {

void fork_attention(fork_deque& d) noexcept {
  auto* w = static_cast<worker*>(&d);
  fork_slot* b = d.bottom.load_relaxed() - 1;
  if (!asymmetric_fences) {
    // Joins then need a full fence: the frame says so itself, and the limit stays null.
    b->load_relaxed()->deque.store_relaxed(&fenced_forks);
    full_fence();
    if (b + 1 >= d.end) promote_fork_jobs(w);
    else if (w->owner->sleeping.hint()) w->owner->sleeping.wake_one();
    return;
  }
  d.limit.store_relaxed(d.end - 1);
  if (b >= d.end - 1) promote_fork_jobs(w);
  w->owner->sleeping.wake_one();
}

void fork_uncover(const fork_frame& f) noexcept {
  if (f.deque.load_relaxed() != &dead_forks) promote_fork_jobs(static_cast<worker*>(current_forks()));
}

void promote_fork_jobs(worker* w) noexcept {
  promoted_job* first = nullptr;
  promoted_job* last = nullptr;
  task* owner = w->task_on_stack();
  const std::uint32_t in_flight = w->exceptions->in_flight();
  {
    std::lock_guard guard{w->thieves};
    fork_slot* const stolen_end = w->top.load_relaxed();
    fork_slot* const end = w->bottom.load_relaxed();
    for (fork_slot* at = w->base; at < end; ++at) {
      fork_frame* f = at->load_relaxed();
      f->promoted.store_relaxed(nullptr);
      if (at >= stolen_end) {
        promoted_job* job = make_promoted(f, owner, in_flight);
        f->promoted.store_relaxed(job == nullptr ? kept_back() : job);
        if (job != nullptr) {
          if (last == nullptr) first = job;
          else last->next = job;
          last = job;
        }
      }
      f->deque.store_relaxed(&dead_forks);
    }
    w->bottom.store_relaxed(w->base);
    w->top.store_relaxed(w->base);
  }
  while (first != nullptr) {
    promoted_job* job = first;
    first = static_cast<promoted_job*>(job->next);
    w->owner->submit_promoted(w, job);
  }
}

void run_fork_job(worker* w, fork_frame* f, std::uint64_t run, task* parent, std::uint32_t in_flight) noexcept {
  stack* here = w->running;
  strand_task strand;
  strand.frame = f;
  strand.run = run;
  strand.in_flight = in_flight;
  strand.parent = parent;
  strand.flags.store(task::strand_flag, std::memory_order_relaxed);
  strand.where.store(here, std::memory_order_relaxed);
  strand.home.store(w, std::memory_order_relaxed);
  here->occupant.store(&strand, std::memory_order_release);
  if (parent != nullptr) begin_strand(strand);
  if (w->observed_tasks.load(std::memory_order_relaxed) != nullptr && w->owner->options().paint_stacks) [[unlikely]]
    begin_stack_use(strand, *here);
  reinterpret_cast<fork_frame::function>(run)(*f);
  unlink_strand(strand.link);
  here->occupant.store(nullptr, std::memory_order_relaxed);
  if (task_extras* extras = strand.extras.load(std::memory_order_relaxed); extras != nullptr) [[unlikely]] {
    end_stack_use(strand, *here);
    delete extras;
  }
  // Once `done` is there the frame may vanish. The parent may have put its reference in place of `run`.
  const std::uint64_t waiting = f->shared_state().exchange(fork_frame::done, std::memory_order_acq_rel);
  if (waiting != run) wake(waiter_ref::from_bits(waiting));
}

void run_promoted_job(worker* w, task* t) noexcept {
  auto* job = static_cast<promoted_job*>(t);
  fork_frame* f = job->frame;
  const std::uint64_t run = job->run;
  task* owner = job->owner;
  const std::uint32_t in_flight = job->in_flight;
  if (!claim_promoted(job) && !RAMIE_PLANT(promoted_job_unclaimed)) return;
  run_fork_job(w, f, run, owner, in_flight);
}

}  // namespace ramie::detail
