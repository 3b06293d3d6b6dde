// A runtime's workers and the owners of its parts: which workers there are (crew.hpp), where work goes (placement.hpp),
// how it is stolen (stealing.hpp), how workers sleep and are woken (sleeping.hpp), and what supervises them
// (monitor.hpp). Here is the way in and out, and what a worker does next.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/blocking_pool.hpp>
#include <ramie/sched/crew.hpp>
#include <ramie/sched/monitor.hpp>
#include <ramie/sched/options.hpp>
#include <ramie/sched/placement.hpp>
#include <ramie/sched/recorder.hpp>
#include <ramie/sched/sleeping.hpp>
#include <ramie/sched/stealing.hpp>
#include <ramie/worker/work.hpp>
#include <ramie/worker/worker.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ramie::detail {

class scheduler {
 public:
  /// Dispatches between two looks at the oldest work. Go's number; a fairness bound follows from it
  /// (docs/scheduler.md).
  static constexpr std::uint32_t tick_every = 61;
  /// Ticks between two starts of the oldest spawned task. Picked so that its price, an open branch, stays small.
  static constexpr std::uint32_t oldest_every_ticks = 64;

  explicit scheduler(const runtime_options& options);  // throws invalid_argument, resource_error
  ~scheduler();                                        // stop() first
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  /// A new task, from any thread. After shutdown began: throws usage_error, or, from one of the scheduler's own fibers,
  /// `cancelled` (refuse_when_draining). Throws std::bad_alloc. The task was then not taken.
  void submit(task* t);
  /// The same from `w`, a worker of this scheduler and the caller's own.
  void submit_here(worker* w, task* t);
  /// A promoted fork job of the running fiber. Never fails.
  void submit_promoted(worker* w, task* t) noexcept;
  /// What is ready, from a thread that is no worker of this scheduler's, goes where it should.
  void place_outside(ready_item item) noexcept;

  /// Stops accepting, cancels, waits until nothing is left, ends the threads. Once; later calls return at once. Not
  /// from a worker of this scheduler.
  void stop();

  /// The next thing to do; sleeps until there is one. Worker's own thread.
  work find_work(worker* w) noexcept;

  [[nodiscard]] std::uint32_t regular_workers() const noexcept { return all_.regular; }
  [[nodiscard]] std::size_t worker_count() const noexcept { return all_.size(); }
  [[nodiscard]] worker& at(std::size_t i) const noexcept { return all_.at(i); }
  [[nodiscard]] const crew& all() const noexcept { return all_; }
  [[nodiscard]] const runtime_options& options() const noexcept { return all_.options; }
  [[nodiscard]] guard_kind stacks_guard() const noexcept { return guard_; }
  [[nodiscard]] blocking_pool& blocking() noexcept { return blocking_; }
  [[nodiscard]] bool stopping() const noexcept { return all_.stopping.load(std::memory_order_relaxed); }
  /// Fibers spawned from other threads than this scheduler's workers.
  [[nodiscard]] std::uint64_t started_outside() const noexcept {
    return started_outside_.load(std::memory_order_acquire);
  }
  [[nodiscard]] recorder& recording() noexcept { return recorder_; }
  /// How many threads it has, its helpers for blocking calls included, if fibers are left but nothing of its own can
  /// wake one: nothing is queued, sent or on its way here, no timer runs, no blocking call, no wait for input or
  /// output. Else 0. Any thread.
  [[nodiscard]] std::size_t threads_if_at_rest() noexcept;
  /// Has its monitor look at everything soon. Any thread, signal handlers too.
  void rouse_monitor() noexcept { monitor_.rouse(); }
  /// Adds a worker that has no thread yet. One thread at a time. Throws resource_error, std::bad_alloc.
  worker& hire(bool spare);
  /// Fibers spawned and not ended. Exact while no thread spawns.
  [[nodiscard]] std::uint64_t live() noexcept;
  /// Is one worker to run all that is ready (spread.hpp)? Then a waiter should go there rather than wait actively.
  [[nodiscard]] bool keeps_together() const noexcept { return all_.way.together() != nullptr; }

 private:
  friend struct debug_access;
  crew all_;
  recorder recorder_{all_.workers};

 public:
  event_desk events;
  sleeper sleeping{all_, events};
  placer placing{all_, sleeping, recorder_};

 private:
  [[noreturn]] RAMIE_COLD void refuse_spawn() const;
  void submit_elsewhere(worker* w, task* t);
  work look_at_oldest(worker* w) noexcept;
  RAMIE_NOINLINE work find_urgent(worker& w) noexcept;
  work found(worker* w, work what) noexcept;
  void sleep(worker* w) noexcept;
  void fire_timers(worker* w) noexcept;

  void start_threads();
  void end_threads() noexcept;
  void cancel_all() noexcept;

  guard_kind guard_;
  stack_class& stack_class_;
  blocking_pool blocking_;
  stealer stealing_{all_, placing, events};
  atomic<std::uint64_t> started_outside_{0};
  atomic<std::uint32_t> outsiders_{0};  // threads inside place_outside or submit; the destructor waits for them
  os_mutex stop_lock_;
  bool stopped_ = false;
  monitor monitor_{*this, all_, sleeping, placing};
};

/// The life of a worker's thread: returns when the runtime ends (loop.cpp).
void run_worker(worker& w) noexcept;

}  // namespace ramie::detail
