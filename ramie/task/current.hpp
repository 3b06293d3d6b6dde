// The worker that runs the calling code, or null on a plain thread; and what that code sees of it.
//
// The scheduler knows a worker as a `worker` (worker/worker.hpp), with its queues. Code that waits, locks or allocates
// needs none of these: it sees the `worker_base`, the first base of every worker. So the floors below the scheduler
// include nothing of it; the few functions that they call there are declared in scheduling.hpp.
//
// A fiber may resume on another thread after any suspension, so the compiler must never keep the address of a
// thread-local across one, as it would with a plain `thread_local` access. Hence the accessor is one volatile
// piece of assembly that reads the variable afresh each time; its two instructions become one move after linking into
// an executable.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/config.hpp>
#include <ramie/base/random.hpp>
#include <ramie/base/word.hpp>
#include <ramie/stack/stack.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

struct exception_state;
struct favour_cell;
struct task;
class task_cache;
class timer_queue;

/// A worker as seen by the code that runs on it. Written by that code, unless said otherwise.
struct alignas(128) worker_base {
  stack* running = nullptr;               // the stack the worker runs on; null: its thread's own
  std::uint64_t session = 0;              // changes at every switch; unique in the process (scope.hpp)
  exception_state* exceptions = nullptr;  // of the thread
  task_cache* blocks_here = nullptr;      // task and message blocks
  timer_queue* timers_here = nullptr;
  favour_cell* favours = nullptr;
  random_source random{1};
  /// The steady clock as of the last millisecond in which a worker was awake, for waits to note when they began: the
  /// monitor sets it at its rounds, the worker when it wakes up.
  std::atomic<std::int64_t> clock_ns{0};
  word<std::uint64_t> locks{0};      // adaptive locks, except those held in vain, and mutexes: what gets done
  word<std::uint64_t> contended{0};  // mutexes found locked
  word<std::uint64_t> seized{0};     // adaptive locks that were another worker's
  word<std::uint64_t> moved{0};      // adaptive locks of what it moved to another worker, or here
  word<std::uint64_t> crossed{0};    // wake-ups across workers, and adaptive locks that another worker used last
  atomic<bool> draining{false};      // the runtime shuts down: cancellable waits end at once; written by the scheduler
  bool alone = false;                // the only worker of its runtime, except spares

  /// The task on the running stack: a fiber's, an actor's, a fork job's; null in the worker's own code. `running` must
  /// not be null.
  [[nodiscard]] task* task_on_stack() const noexcept {
    return static_cast<task*>(running->occupant.load(std::memory_order_relaxed));
  }
  /// The same, also null on the thread's own stack.
  [[nodiscard]] task* running_task() const noexcept { return running == nullptr ? nullptr : task_on_stack(); }

  RAMIE_ALWAYS_INLINE void count_lock() noexcept { locks.store_relaxed(locks.load_relaxed() + 1); }
  /// A lock held in vain does not count as work done: otherwise threads that obstruct each other would look
  /// like threads that do much.
  void uncount_lock() noexcept { locks.store_relaxed(locks.load_relaxed() - 1); }
  void count_seized() noexcept { seized.store_relaxed(seized.load_relaxed() + 1); }
  void count_moved(std::size_t n) noexcept { moved.store_relaxed(moved.load_relaxed() + n); }
  void count_crossed() noexcept { crossed.store_relaxed(crossed.load_relaxed() + 1); }
  void count_contended() noexcept { contended.store_relaxed(contended.load_relaxed() + 1); }
};

}  // namespace ramie::detail

// The initial-exec model keeps the access free of calls; it fits libraries loaded at program start.
extern "C" __thread ramie::detail::worker_base* ramie_current_worker __attribute__((tls_model("initial-exec")));

namespace ramie::detail {

/// Null on a plain thread.
RAMIE_ALWAYS_INLINE worker_base* current_worker() noexcept {
  worker_base* w;
#if defined(__x86_64__)
  asm volatile(
      "movq ramie_current_worker@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(w));
#else
  void* offset;
  asm volatile(
      "mrs %0, tpidr_el0\n\t"
      "adrp %1, :gottprel:ramie_current_worker\n\t"
      "ldr %1, [%1, :gottprel_lo12:ramie_current_worker]\n\t"
      "ldr %0, [%0, %1]"
      : "=&r"(w), "=&r"(offset));
#endif
  return w;
}

/// The task that the calling code is part of: a fiber, an actor, a fork job; null in a plain thread's, or a worker's
/// own, code.
[[nodiscard]] RAMIE_ALWAYS_INLINE task* running_task_here() noexcept {
  const worker_base* const w = current_worker();
  return w == nullptr ? nullptr : w->running_task();
}

}  // namespace ramie::detail
