// A worker: an OS thread's share of the scheduler. It owns three queues (ready, spawned, fork deque), timers, and
// caches of stacks and task blocks. What it does with them: sched/loop.cpp.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/queue/adaptive_lock.hpp>
#include <ramie/queue/favour_cell.hpp>
#include <ramie/queue/fork_deque.hpp>
#include <ramie/queue/inbox.hpp>
#include <ramie/queue/ready_queue.hpp>
#include <ramie/queue/spawn_deque.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/scheduling.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/task_memory.hpp>
#include <ramie/task/timer_queue.hpp>
#include <ramie/worker/observer.hpp>
#include <ramie/worker/resident.hpp>
#include <ramie/worker/thief.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <thread>

namespace ramie::detail {

class event_source;
class scheduler;

/// Written by the worker alone, read by any thread: a plain add, not an atomic one.
class counter {
 public:
  RAMIE_ALWAYS_INLINE void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  atomic<std::uint64_t> value_{0};
};

/// The fiber that runs, as far as it makes calls that may wait for events. What was noted during an earlier dispatch is
/// another's.
struct io_streak {
  std::uint64_t counted_in = 0;  // `dispatches` when `calls` began
  std::uint32_t calls = 0;       // in a row
  std::uint64_t resumed_in = 0;  // `dispatches` when a fiber went on after a wait for events
  std::uint64_t started = 0;     // `started` then
};

/// What a new worker is told.
struct worker_facts {
  std::uint32_t number;
  stack_class& stacks;
  std::size_t workers_most;  // of its scheduler, spares included
  bool near_first;           // some of these are nearer to each other than others
  bool alone;                // the only one, except spares
};

struct alignas(128) worker : fork_deque {
  // Written by the owner, at nearly every dispatch.
  std::uint32_t until_tick = 1;  // dispatches left until the oldest of everything is looked at
  std::uint32_t ticks = 0;
  std::uint32_t spawn_turns = 0;   // this many spawned tasks at most run before ready fibers (next_work.hpp, N2) ...
  std::uint32_t turns_end_at = 0;  // ... while more than this many are there
  std::uint32_t unsampled = 0;
  std::uint64_t deferred_at = 0;                   // cycle count when a ready item was left to this worker alone, or 0
  std::uint64_t tick_at = 0;                       // cycle count of the last tick, or 0
  atomic<std::uint64_t> slice{0};                  // cycles that a dispatch takes, roughly
  atomic<bool> spawns_here{true};                  // new tasks go into its own spawn deque, and are welcome
  std::atomic<observer*> observed{nullptr};        // observer.hpp; null: not observed
  std::atomic<observer*> observed_tasks{nullptr};  // the same, if new tasks are observed too
  bool searching = false;                          // counted in idle_set
  bool spare = false;                              // stands in for stalled workers
  bool paints_stacks = false;                      // runtime_options::paint_stacks
  bool wakes_here = true;                          // what it wakes and ran itself goes into its own ready queue
  scheduler* owner = nullptr;
  stack_cache stacks;
  task_cache blocks;
  spawn_deque spawned;
  std::uint32_t dealt = 0;  // turns given out, where placement goes round
  counter dispatches, started, finished, steals_tried, steals_done, parks, wakes, wakes_elsewhere, migrations, injected,
      time_slices, io_waits, bytes_read, bytes_written;
  io_streak streak;

  // Shared with thieves, the monitor and wakers.
  alignas(128) ready_queue ready;
  inbox sent;  // by other threads, to be run here
  timer_queue timers;
  resident_list residents;                   // made here, wherever they run
  atomic<std::uint32_t> wake_token{0};       // futex: 1 means wake up
  atomic<event_source*> sleeps_in{nullptr};  // instead of on the futex (event_source.hpp)
  atomic<bool> idle{false};                  // sleeps, or is about to
  atomic<bool> still{false};                 // the monitor has seen no dispatch for a millisecond
  atomic<bool> on_duty{false};               // the loop runs (spares: not retired)
  atomic<bool> reserve{false};               // runs only what woke (sched/reserve.cpp); written by the monitor

  stack* first = nullptr;      // for the first loop
  context native;              // the thread's own stack while the loop runs
  char* native_low = nullptr;  // its bounds, for sanitizers
  std::size_t native_size = 0;
  void* native_fiber = nullptr;
  std::unique_ptr<observer> recording;  // made at the first recording
  std::unique_ptr<observer> painting;   // paint_stacks: `observed_tasks` while there is no other
  std::unique_ptr<fork_slot[]> fork_slots;
  own_favour_cell favour;
  thief stealing;
  atomic<std::uint64_t> leave_new_until{0};  // cycle count: its new tasks are not worth a theft; written by thieves
  atomic<std::uint64_t> place{std::bit_cast<std::uint64_t>(cpu_place{})};  // where it was last seen
  std::uint32_t number = 0;
  os_thread thread;
  atomic<int> thread_id{0};  // the kernel's; 0: not known yet

  worker(scheduler* s, const worker_facts& facts);

  [[nodiscard]] cpu_place last_place() const noexcept {
    return std::bit_cast<cpu_place>(place.load(std::memory_order_relaxed));
  }
  /// The calling worker, of any scheduler, or null on a plain thread.
  [[nodiscard]] static RAMIE_ALWAYS_INLINE worker* current() noexcept { return static_cast<worker*>(current_worker()); }
  [[nodiscard]] bool has_fork_jobs() const noexcept { return top.load_relaxed() < bottom.load_relaxed(); }

  // Two ends of what a fiber does between two waits for events (next_work.hpp, N2). The worker's own thread.
  static constexpr std::uint32_t turns_most = 64;
  void goes_on_after_events() noexcept {
    streak.resumed_in = dispatches.value();
    streak.started = started.value();
  }
  void leaves_for_events() noexcept {
    if (streak.resumed_in != dispatches.value()) return;
    const std::uint64_t now = started.value();
    const std::uint64_t fresh = std::min<std::uint64_t>(now - streak.started, spawned.size());
    streak.started = now;
    if (fresh == 0) return;
    const auto older = static_cast<std::uint32_t>(spawned.size() - fresh);
    turns_end_at = spawn_turns == 0 ? older : std::min(turns_end_at, older);
    spawn_turns = turns_most;
  }
};

/// The worker where `t` ran last, or is to run; null before that.
[[nodiscard]] RAMIE_ALWAYS_INLINE worker* home_of(const task& t) noexcept {
  return static_cast<worker*>(t.home.load(std::memory_order_relaxed));
}

}  // namespace ramie::detail
