// A worker: an OS thread's share of the scheduler. It owns three queues (ready, spawned, fork deque), timers, and
// caches of stacks and task blocks. Its loop runs on pooled stacks; see worker.cpp.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/random.hpp>
#include <ramie/sched/adaptive_lock.hpp>
#include <ramie/sched/current.hpp>
#include <ramie/sched/favour_cell.hpp>
#include <ramie/sched/fork_deque.hpp>
#include <ramie/sched/inbox.hpp>
#include <ramie/sched/observer.hpp>
#include <ramie/sched/ready_queue.hpp>
#include <ramie/sched/resident.hpp>
#include <ramie/sched/spawn_deque.hpp>
#include <ramie/sched/suspend.hpp>
#include <ramie/sched/task.hpp>
#include <ramie/sched/task_memory.hpp>
#include <ramie/sched/theft.hpp>
#include <ramie/sched/timer_queue.hpp>
#include <ramie/sched/victims.hpp>
#include <ramie/stack/pool.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <thread>

namespace ramie::detail {

class scheduler;

/// Written by the worker alone, read by anybody: a plain add, not an atomic one.
class counter {
 public:
  RAMIE_ALWAYS_INLINE void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  atomic<std::uint64_t> value_{0};
};

struct alignas(128) worker : fork_deque {
  // Written by the owner, at nearly every dispatch.
  std::uint32_t until_tick = 1;  // dispatches left until the oldest of everything is looked at
  std::uint32_t ticks = 0;
  std::uint32_t spawn_turns = 0;  // so many spawned tasks go before ready fibers: somebody yielded to them
  std::uint32_t unsampled = 0;
  std::uint64_t deferred_at = 0;                  // cycle count when a ready item was left to this worker alone, or 0
  std::uint64_t tick_at = 0;                      // cycle count of the last tick, or 0
  atomic<std::uint64_t> slice{0};                 // cycles that a dispatch takes, roughly
  atomic<bool> draining{false};                   // the runtime shuts down: cancellable waits end at once
  atomic<bool> spawns_here{true};                 // new tasks go into its own spawn deque, and are welcome
  std::atomic<observer*> watched{nullptr};        // observer.hpp; null: nobody wants to know
  std::atomic<observer*> watched_tasks{nullptr};  // the same, if new tasks are to be seen too
  bool searching = false;                         // counted in idle_set
  bool spare = false;                             // stands in for stalled workers
  bool wakes_here = true;                         // what it wakes and ran itself goes into its own ready queue
  exception_state* exceptions = nullptr;          // of the thread
  scheduler* owner = nullptr;
  stack_cache stacks;
  task_cache blocks;
  spawn_deque spawned;
  std::uint32_t dealt = 0;  // turns given out, where placement goes by turns
  counter dispatches, started, finished, steals_tried, steals_done, parks, wakes, wakes_elsewhere, migrations, injected,
      time_slices;

  // Shared with thieves, the monitor and wakers.
  alignas(128) ready_queue ready;
  inbox sent;  // by others, to be run here
  timer_queue timers;
  resident_list residents;               // made here, wherever they run
  atomic<std::uint32_t> wake_token{0};   // futex: 1 means go on
  atomic<std::uint64_t> wake_called{0};  // cycle count when that was last set by another
  atomic<bool> idle{false};              // sleeps, or is about to
  atomic<bool> still{false};             // the monitor has seen no dispatch for a millisecond
  atomic<bool> on_duty{false};           // the loop runs (spares: not retired)

  stack* first = nullptr;      // for the first loop
  context native;              // the thread's own stack while the loop runs
  char* native_low = nullptr;  // its bounds, for sanitizers
  std::size_t native_size = 0;
  void* native_fiber = nullptr;
  /// The steady clock as of the last millisecond in which anybody worked, for waits to note when they began: the
  /// monitor sets it at its rounds, the worker when it wakes up.
  std::atomic<std::int64_t> clock_ns{0};
  std::unique_ptr<observer> eyes;       // made at the first watch
  std::unique_ptr<observer> measuring;  // paint_stacks: `watched_tasks` while there is no other
  std::unique_ptr<fork_slot[]> fork_slots;
  own_favour_cell favour;
  lock_identity identity;
  std::array<ready_item, ready_queue::steal_most>
      loot{};  // what was stolen at once; here to keep the loop's stack small
  struct look {
    std::uint64_t dispatches = ~std::uint64_t{0};
    std::uint64_t since = 0;  // cycle count when that was first seen
    std::uint64_t spawned = ~std::uint64_t{0};
    std::uint64_t spawned_since = 0;
    std::uint64_t dry_then = 0;  // its `dry` when the window began; outlives the search

    void forget() noexcept { *this = {.dry_then = dry_then}; }
  };
  std::unique_ptr<look[]> looks;  // while searching: what the others were doing, by number
  victim_order victims;           // in whose order it looks, where some are nearer than others
  std::uint32_t searches = 0;
  theft_judge thefts;
  std::uint64_t wake_cycles = 0;             // what it takes to be woken, on average
  std::uint64_t search_began = 0;            // cycle count
  atomic<std::uint64_t> dry{0};              // cycles of all searches that ended
  std::uint64_t dry_since = 0;               // stealing.cpp: cycle count, begin of a window
  std::uint64_t dry_then = 0;                // `dry` at that time
  worker* robbed = nullptr;                  // by the latest theft
  atomic<std::uint64_t> leave_new_until{0};  // cycle count: its new tasks are not worth a theft; written by thieves
  atomic<std::uint64_t> place{std::bit_cast<std::uint64_t>(cpu_place{})};  // where it was last seen
  std::uint32_t number = 0;
  random_source random;
  os_thread thread;
  atomic<int> thread_id{0};  // the kernel's; 0: not known yet

  worker(scheduler& s, std::uint32_t n, stack_class& c);

  [[nodiscard]] cpu_place last_place() const noexcept {
    return std::bit_cast<cpu_place>(place.load(std::memory_order_relaxed));
  }
  [[nodiscard]] task* current() const noexcept {
    return running == nullptr ? nullptr : static_cast<task*>(running->occupant.load(std::memory_order_relaxed));
  }
  [[nodiscard]] bool has_fork_jobs() const noexcept { return top.load_acquire() < bottom.load_acquire(); }

  void thread_main() noexcept;
};

[[nodiscard]] RAMIE_ALWAYS_INLINE worker* current_worker() noexcept { return static_cast<worker*>(current_forks()); }

/// A fiber goes on: `s` is parked and claimed. Any thread.
void make_ready(stack* s) noexcept;

/// Residents: tasks that run again and again, such as actors. A resident is idle, ready (in a queue) or running;
/// whoever makes it ready must know that it is idle, so it is never in two queues or run twice at once.
///  R1 It runs like a new task, in place on the loop's stack (`type->turn`), and may suspend like any fiber.
///  R2 When that returns, the worker takes the stack away from it: its occupant is nobody.
///  R3 `type->rest` is called as the last thing: it makes the resident ready again, lets it be idle, or ends its life.
/// Where `turn` is given the stack, it may see to R2 and R3 itself, in this order, and returns true; then the resident
/// may already run elsewhere.
/// Any thread; does not suspend.
void make_resident_ready(task& t) noexcept;

/// Moves the pending fork jobs of the running fiber to where any fiber may run them.
void promote_fork_jobs(worker* w) noexcept;

/// Runs a job that was stolen or promoted, in place, for the fiber `parent`. `run`: its `state` when it was taken,
/// before the parent could know. The frame may be gone when it returns.
void run_fork_job(worker* w, fork_frame* f, std::uint64_t run, task* parent) noexcept;

/// A promoted job that its parent has claimed already.
bool is_spent_job(const task& t) noexcept;

/// What a promoted job's task does: claims and runs it, or finds that its parent did.
void run_promoted_job(worker* w, task* t) noexcept;

}  // namespace ramie::detail
