// The slow half of fork_deque.hpp that needs no scheduler: a join that does not find its frame as it left it.
#include <ramie/queue/fork_deque.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/machine/fence.hpp>
#include <ramie/queue/promoted_job.hpp>
#include <ramie/task/wait.hpp>

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
    promoted_job* job = f.promoted;
    if (job == nullptr) return false;
    if (job == kept_back()) return true;
    return claim_promoted(job);
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
  if (victim.bottom.load_acquire() > t) return t->load_relaxed();
  victim.top.store_relaxed(t);
  return nullptr;
}

void wait_for_thief(fork_frame& f) noexcept {
  std::uint64_t seen = f.state.load_acquire();
  if (seen == fork_frame::done) return;
  static constexpr wait_site site{"fork_join", {}};
  wait pause{wait::kind::uninterruptible, site};
  if (f.shared_state().compare_exchange_strong(seen, pause.ref().bits(), std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
    pause.suspend();
    // The thief has written `done` before it woke us; nothing else claims an uninterruptible wait.
  } else {
    pause.withdraw();
  }
}

}  // namespace ramie::detail
