// The slow half of fork_deque.hpp that needs no scheduler: a join that does not find its frame as it left it.
#include <ramie/queue/fork_deque.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/machine/fence.hpp>
#include <ramie/queue/promoted_job.hpp>
#include <ramie/task/region.hpp>
#include <ramie/task/wait.hpp>

#include <chrono>
#include <exception>
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
fork_deque fenced_forks;

void init_fork_marks() noexcept {
  dead_forks.top.store_relaxed(no_slot());
  fenced_forks.top.store_relaxed(no_slot());
}

namespace {

constexpr std::uint8_t promoted_list = task_cache::list_of(sizeof(promoted_job));
constexpr task_type promoted_type{nullptr, nullptr, nullptr, task_kind::promoted_job};

char kept_back_place;

void free_promoted(promoted_job* job) noexcept {
  job->~promoted_job();
  free_task_memory(job, promoted_list);
}

}  // namespace

promoted_job* kept_back() noexcept { return reinterpret_cast<promoted_job*>(&kept_back_place); }

promoted_job* make_promoted(fork_frame* f, task* owner, std::uint32_t in_flight) noexcept {
  try {
    auto* job = new (allocate_task(promoted_list)) promoted_job;
    job->type = &promoted_type;
    job->frame = f;
    job->run = f->state.load_relaxed();
    job->owner = owner;
    job->in_flight = in_flight;
    return job;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool claim_promoted(promoted_job* job) noexcept {
  if (job->claims.fetch_add(1, std::memory_order_acq_rel) == 0) return true;
  free_promoted(job);
  return false;
}

bool is_spent_job(const task& t) noexcept {
  // A hint: the claim that follows decides, and orders.
  return t.type->kind == task_kind::promoted_job &&
         static_cast<const promoted_job&>(t).claims.load(std::memory_order_relaxed) != 0;
}

bool fork_take_back_slowly(fork_frame& f, fork_slot* b) noexcept {
  fork_deque* d = f.deque.load_relaxed();
  if (d == &dead_forks) {
    promoted_job* job = f.promoted.load_relaxed();
    if (job == nullptr) return false;
    if (job == kept_back()) return true;
    const std::uint32_t in_flight = job->in_flight;
    if (claim_promoted(job)) return true;
    f.keep_in_flight(in_flight);
    return false;
  }
  if (d == &fenced_forks) {
    d = current_forks();
    d->bottom.store_release(b);  // older frames, which a thief that reads this may take
    full_fence();
    if (d->top.load_relaxed() <= b) return true;
  }
  std::lock_guard guard{d->thieves};
  if (d->top.load_relaxed() <= b) return true;
  // Stolen, and so is everything older. The next job to steal will be the next one pushed here.
  d->top.store_relaxed(b);
  return false;
}

fork_frame* fork_steal(fork_deque& victim) noexcept {
  fork_slot* const t = victim.top.load_relaxed();
  if (t >= victim.bottom.load_relaxed()) return nullptr;
  victim.top.store_relaxed(t + 1);
  if (!RAMIE_PLANT(fork_deque_no_fence)) heavy_fence();
  if (victim.bottom.load_acquire() > t &&
      (victim.exceptions->in_flight_elsewhere() == 0 || RAMIE_PLANT(fork_stolen_in_clean_up)))
    return t->load_relaxed();
  victim.top.store_relaxed(t);
  return nullptr;
}

namespace {

constexpr wait_site join_site{"fork_join", {}};

/// Lets `pause` take the place of `run`. False: the thief has run the frame.
bool await_done(fork_frame& f, wait& pause, std::uint64_t run) noexcept {
  if (f.shared_state().compare_exchange_strong(run, pause.ref().bits(), std::memory_order_acq_rel,
                                               std::memory_order_acquire))
    return true;
  pause.withdraw();
  return false;
}

void cancel_what_is_over() noexcept {
  const inspection here;
  cancel_strands_if_over(here, *current_worker()->running);
}

/// What bounds the frame's run from outside.
limits limits_around(const fork_frame& f, std::uint32_t in_flight) noexcept {
  strand_task run;
  run.frame = &f;
  run.in_flight = in_flight;
  run.parent = current_worker()->running_task();
  run.flags.store(task::strand_flag, std::memory_order_relaxed);
  return limits_of(run, 0);
}

/// R6, for a frame that began as clean-up and is none any more. What waits there has no timer for the deadlines around
/// the fork: this one stands in, until the frame has been run or a deadline has passed.
void lead_out_of_clean_up(fork_frame& f, std::uint64_t run, std::uint32_t in_flight) noexcept {
  cancel_what_is_over();
  const std::int64_t deadline_ns = limits_around(f, in_flight).deadline_ns;
  if (deadline_ns == region::never) return;
  wait pause{wait::kind::uninterruptible, join_site};
  if (!await_done(f, pause, run)) return;
  try {
    const steady::time_point deadline{std::chrono::nanoseconds{deadline_ns}};
    if (pause.suspend_until(deadline) != wake_reason::timeout) return;
  } catch (const std::exception&) {  // no memory for the timer
  }
  std::uint64_t seen = pause.ref().bits();
  if (f.shared_state().compare_exchange_strong(seen, run, std::memory_order_acq_rel, std::memory_order_acquire))
    cancel_what_is_over();
}

}  // namespace

void wait_for_thief(fork_frame& f, std::uint32_t in_flight) noexcept {
  const std::uint64_t run = f.state.load_acquire();
  if (run == fork_frame::done) return;
  if (f.deque.load_relaxed() == &dead_forks && f.in_flight_or(0) > in_flight) [[unlikely]] {
    f.keep_in_flight(in_flight);
    lead_out_of_clean_up(f, run, in_flight);
  }
  wait pause{wait::kind::uninterruptible, join_site};
  // The thief writes `done` before it wakes us; nothing else claims an uninterruptible wait.
  if (await_done(f, pause, run)) pause.suspend();
}

void wait_for_thief(fork_frame& f) noexcept { wait_for_thief(f, exceptions_in_flight()); }

}  // namespace ramie::detail
