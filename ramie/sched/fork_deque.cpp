// The slow half of fork and join: steals seen from the owner, promotion, and the running of jobs that left their fiber.
//
// Promotion, step by step. Before a fiber parks or yields, with frames in the deque (or takes one back that is not the
// youngest):
//  R1 Its worker takes `thieves`. Frames below `top` are stolen already: their `promoted` is null.
//  R2 Each frame from `top` to `bottom` gets a promoted_job, a task that names the frame; if there is no memory for one, it gets
//     the mark `kept_back`, and only its parent can run it.
//  R3 All frames' deque becomes dead_forks; bottom = top = base; `thieves` is released; the jobs go to the spawn deque.
//  R4 The parent's join finds dead_forks. It adds one to the job's `claims`; so does the worker that takes the job's task. Whoever
//     finds 0 runs the frame, and whoever finds 1 frees the job: nobody looks at it afterwards.
//  R5 A worker that won runs the frame, whose parent cannot pass its join before `state` is `done`. One that lost never
//     touches the frame.
#include <ramie/sched/fork_deque.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/sched/stack_use_table.hpp>
#include <ramie/sched/worker.hpp>

#include <mutex>
#include <new>

namespace ramie::detail {

namespace {

constexpr std::uintptr_t above_everything = ~std::uintptr_t{0};

fork_slot* no_slot() noexcept { return reinterpret_cast<fork_slot*>(above_everything); }

}  // namespace

// Both refuse every J3, which sends the join into fork_take_back_slowly.
fork_deque dead_forks;
fork_deque thread_forks;
static fork_deque fenced_forks;

void init_fork_marks() noexcept {
  dead_forks.top.store_relaxed(no_slot());
  fenced_forks.top.store_relaxed(no_slot());
}

struct promoted_job : task {
  fork_frame* frame = nullptr;
  std::uint64_t run = 0;  // what `state` said then: the parent may put its reference there at any time
  task* owner = nullptr;  // the fiber that forked it
  atomic<std::uint32_t> claims{0};
};

namespace {

constexpr std::uint8_t promoted_list = task_cache::list_of(sizeof(promoted_job));
constexpr task_type promoted_type{nullptr, nullptr, nullptr, task_kind::promoted_job};

char kept_back_place;
promoted_job* kept_back() noexcept { return reinterpret_cast<promoted_job*>(&kept_back_place); }

void free_promoted(promoted_job* job) noexcept {
  job->~promoted_job();
  free_task_memory(job, promoted_list);
}

promoted_job* make_promoted(fork_frame* f, task* owner) noexcept {
  try {
    auto* job = new (allocate_task(promoted_list)) promoted_job;
    job->type = &promoted_type;
    job->frame = f;
    job->run = f->state.load_relaxed();
    job->owner = owner;
    return job;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

void fork_attention(fork_deque& d) noexcept {
  auto* w = static_cast<worker*>(&d);
  fork_slot* b = d.bottom.load_relaxed() - 1;
  if (!asymmetric_fences) {
    // Joins then need a full fence: the frame says so itself, and the limit stays null.
    b->load_relaxed()->deque.store_relaxed(&fenced_forks);
    full_fence();
    if (b + 1 >= d.end) promote_fork_jobs(w);
    else if (w->owner->idle.hint()) w->owner->idle.wake_one();
    return;
  }
  d.limit.store_relaxed(d.end - 1);
  if (b >= d.end - 1) {
    promote_fork_jobs(w);
    return;
  }
  w->owner->idle.wake_one();
}

bool fork_take_back_slowly(fork_frame& f, fork_slot* b) noexcept {
  fork_deque* d = f.deque.load_relaxed();
  if (d == &dead_forks) {
    promoted_job* job = f.promoted;
    if (job == nullptr) return false;
    if (job == kept_back()) return true;
    if (job->claims.fetch_add(1, std::memory_order_acq_rel) == 0) return true;
    free_promoted(job);
    return false;
  }
  if (d == &fenced_forks) {
    d = current_forks();
    d->bottom.store_relaxed(b);
    full_fence();
    if (d->top.load_acquire() <= b) return true;
  }
  std::lock_guard guard{d->thieves};
  if (d->top.load_relaxed() <= b) return true;
  // Stolen, and so is everything older. The next job to steal will be the next one pushed here.
  d->top.store_relaxed(b);
  return false;
}

void fork_uncover(const fork_frame& f) noexcept {
  if (f.deque.load_relaxed() != &dead_forks) promote_fork_jobs(static_cast<worker*>(current_forks()));
}

void wait_for_thief(fork_frame& f) noexcept {
  std::uint64_t seen = f.state.load_acquire();
  if (seen == fork_frame::done) return;
  static constexpr wait_site site{"fork_join", {}};
  wait pause{wait::kind::uninterruptible, site};
  if (f.shared_state().compare_exchange_strong(seen, pause.ref().bits(), std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
    pause.suspend();
    // The thief has written `done` before it woke us; nobody else claims an uninterruptible wait.
  } else {
    pause.withdraw();
  }
}

void promote_fork_jobs(worker* w) noexcept {
  promoted_job* first = nullptr;
  promoted_job* last = nullptr;
  task* owner = w->current();
  {
    std::lock_guard guard{w->thieves};
    fork_slot* const stolen_end = w->top.load_relaxed();
    fork_slot* const end = w->bottom.load_relaxed();
    for (fork_slot* at = w->base; at < end; ++at) {
      fork_frame* f = at->load_relaxed();
      f->promoted = nullptr;
      if (at >= stolen_end) {
        promoted_job* job = make_promoted(f, owner);
        f->promoted = job == nullptr ? kept_back() : job;
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

void run_fork_job(worker* w, fork_frame* f, std::uint64_t run, task* parent) noexcept {
  stack* here = w->running;
  task* root = parent;
  while (root != nullptr && (root->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0) root = root->parent;
  if (root != nullptr) root->flags.fetch_or(task::forked_flag, std::memory_order_acq_rel);
  strand_task strand;
  strand.frame = f;
  strand.parent = parent;
  strand.flags.store(task::strand_flag, std::memory_order_relaxed);
  strand.where.store(here, std::memory_order_relaxed);
  strand.home.store(w, std::memory_order_relaxed);
  here->occupant.store(&strand, std::memory_order_release);
  if (w->watched_tasks.load(std::memory_order_relaxed) != nullptr && w->owner->options().paint_stacks) [[unlikely]]
    begin_stack_use(strand, *here);
  reinterpret_cast<fork_frame::function>(run)(*f);
  here->occupant.store(nullptr, std::memory_order_release);
  if (task_extras* extras = strand.extras.load(std::memory_order_relaxed); extras != nullptr) [[unlikely]] {
    end_stack_use(strand, *here);
    delete extras;
  }
  // Once `done` is there the frame may vanish. The parent may have put its reference in place of `run`.
  const std::uint64_t waiting = f->shared_state().exchange(fork_frame::done, std::memory_order_acq_rel);
  if (waiting != run) wake(waiter_ref::from_bits(waiting));
}

bool is_spent_job(const task& t) noexcept {
  return t.type->kind == task_kind::promoted_job &&
         static_cast<const promoted_job&>(t).claims.load(std::memory_order_acquire) != 0;
}

void run_promoted_job(worker* w, task* t) noexcept {
  auto* job = static_cast<promoted_job*>(t);
  fork_frame* f = job->frame;
  const std::uint64_t run = job->run;
  task* owner = job->owner;
  if (job->claims.fetch_add(1, std::memory_order_acq_rel) != 0 && !RAMIE_PLANT(promoted_job_unclaimed)) {
    free_promoted(job);
    return;
  }
  run_fork_job(w, f, run, owner);
}

}  // namespace ramie::detail
