// What the workers of one runtime share: the injection queue, the set of sleepers, the monitor, and the way in and out.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/blocking_pool.hpp>
#include <ramie/sched/idle_set.hpp>
#include <ramie/sched/injector.hpp>
#include <ramie/sched/options.hpp>
#include <ramie/sched/spread.hpp>
#include <ramie/sched/topology.hpp>
#include <ramie/sched/work.hpp>
#include <ramie/sched/worker.hpp>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ramie::detail {

struct waiting_threads;

class scheduler {
 public:
  /// Dispatches between two looks at the oldest work. Go's number; a fairness bound follows from it
  /// (docs/scheduler.md).
  static constexpr std::uint32_t tick_every = 61;
  /// Ticks between two starts of the oldest spawned task. Picked so that its price, an open branch, stays small.
  static constexpr std::uint32_t oldest_every_ticks = 64;
  /// How many workers, spares included, a runtime may have.
  static constexpr std::size_t workers_most = 1024 + 256;

  explicit scheduler(const runtime_options& options);  // throws invalid_argument, resource_error
  ~scheduler();                                        // stop() first
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  /// A new task, from any thread. Throws usage_error after shutdown began, std::bad_alloc; the task was then not taken.
  void submit(task* t);
  /// The same from `w`, a worker of this scheduler and the caller's own.
  void submit_here(worker* w, task* t);
  /// A promoted fork job of the running fiber. Never fails.
  void submit_promoted(worker* w, task* t) noexcept;
  /// What is ready goes to whom it should (placement.cpp). `here`: the calling worker of this scheduler, or null, while
  /// the caller keeps the scheduler from ending.
  RAMIE_NOINLINE void place(worker* here, ready_item item) noexcept;
  /// The same from any other thread.
  void place_outside(ready_item item) noexcept;
  /// Has to run on worker `to`. Before it is submitted. Throws invalid_argument, naming `option`.
  void pin(task& t, int to, const char* option) const;
  /// The worker that a new resident belongs to.
  void give_home(task& t, worker* here) noexcept;

  /// Stops accepting, cancels, waits until nothing is left, ends the threads. Once; later calls return at once. Not
  /// from a worker of this scheduler.
  void stop();

  /// The next thing to do; sleeps until there is one. Worker's own thread.
  work find_work(worker* w) noexcept;

  /// Work was put into a queue of `w`, which now holds `queued`: wakes a sleeper if that pays. Owner of `w`.
  RAMIE_ALWAYS_INLINE void published(worker* w, std::size_t queued) noexcept {
    light_fence();
    if (idle.hint()) [[unlikely]]
      published_slowly(w, queued);
  }

  /// The same for the ready queue, whose items talk to each other more often than not.
  RAMIE_ALWAYS_INLINE void published_ready(worker* w) noexcept {
    light_fence();
    if (idle.hint()) [[unlikely]]
      published_ready_slowly(w, w->ready.size());
  }

  /// Before dispatching from an own queue: learns what leaving a single item to this worker cost.
  RAMIE_ALWAYS_INLINE void dispatching(worker* w) noexcept {
    if (w->deferred_at != 0) [[unlikely]]
      judge_deferral(w);
  }

  [[nodiscard]] std::uint32_t regular_workers() const noexcept { return regular_; }
  /// With all spares.
  [[nodiscard]] std::size_t workers_possible() const noexcept {
    return regular_ + static_cast<std::size_t>(options_.spare_workers);
  }
  [[nodiscard]] std::size_t worker_count() const noexcept { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] worker& at(std::size_t i) noexcept { return *workers_[i].load(std::memory_order_acquire); }
  [[nodiscard]] const runtime_options& options() const noexcept { return options_; }
  [[nodiscard]] stack_class& stacks() const noexcept { return stack_class_; }
  [[nodiscard]] guard_kind stacks_guard() const noexcept { return guard_; }
  [[nodiscard]] blocking_pool& blocking() noexcept { return blocking_; }
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  /// Fibers spawned from other threads than this scheduler's workers.
  [[nodiscard]] std::uint64_t started_outside() const noexcept {
    return started_outside_.load(std::memory_order_acquire);
  }
  /// Woken or spawned by other threads and not yet taken up.
  [[nodiscard]] std::size_t injected() const noexcept { return injected_.size(); }
  /// Of the processor's clock, as measured since the start; any thread.
  [[nodiscard]] double cycles_per_us() const noexcept;
  /// Has its workers observed from now on. False if that is so already. Throws std::bad_alloc. Any thread.
  bool observe(const watch_options& options);
  /// Ends that. What was seen stays until the next `observe`. Any thread.
  void stop_observing() noexcept;
  /// What was seen in the last watch, worker by worker, and last by all other threads: visit(context, number,
  /// observer), with the watch's lock held. Any thread.
  void for_each_observer(void (*visit)(void* context, std::size_t number, const observer& seen), void* context);
  /// Fibers spawned and not ended. Exact when nobody spawns meanwhile.
  [[nodiscard]] std::uint64_t live() noexcept;

  /// Is one worker to run all that is ready (spread.hpp)? Then who waits had better go there than wait actively.
  [[nodiscard]] bool keeps_together() const noexcept { return together_.load(std::memory_order_relaxed) != nullptr; }

  /// Are some workers nearer to each other than others, so that thieves and wakers had better look?
  [[nodiscard]] bool near_first() const noexcept { return near_first_; }
  [[nodiscard]] const topology& map() const noexcept { return topology_; }
  /// `w` notes where it is, for thieves and wakers. Its own thread; if near_first().
  void note_place(worker* w) const noexcept;

  idle_set idle;

 private:
  friend struct debug_access;
  [[noreturn]] RAMIE_COLD void refuse_spawn() const;
  // Placement (placement.cpp).
  void set_up_placement() noexcept;
  void set_up_topology();  // throws invalid_argument, std::bad_alloc
  [[nodiscard]] bool goes_home(ready_item item, const worker& home) const noexcept;
  worker& next_in_turn(worker* here) noexcept;
  void post(worker& to, ready_item item) noexcept;
  void submit_elsewhere(worker* w, task* t);
  void open_inbox(worker* w) noexcept;
  /// Puts what `w` shall run into its own queues.
  static void accept(worker* w, ready_item item) noexcept;
  template <class Take>
  void take_from_inbox(worker& victim, Take take) noexcept;  // all that may be moved; inbox_theft.hpp
  work take_by_policy(worker* w) noexcept;

  RAMIE_COLD void published_slowly(worker* w, std::size_t queued) noexcept;
  RAMIE_NOINLINE void published_ready_slowly(worker* w, std::size_t queued) noexcept;
  RAMIE_COLD void judge_deferral(worker* w) noexcept;
  /// Would a sleeper be worth waking, or a thief its way, for the `queued` ready items of `w`?
  [[nodiscard]] bool worth_moving(const worker& w, std::size_t queued) const noexcept;
  [[nodiscard]] std::size_t may_take(worker* thief, std::uint32_t victim, bool stands_still) noexcept;
  [[nodiscard]] bool is_short_of_work(worker* w, std::uint32_t than) noexcept;
  void begin_dry_window(worker* w, std::uint64_t now) noexcept;
  static void take_mailboxes(worker* to, const ready_item* items, std::size_t n) noexcept;
  static void measure_tick(worker* w) noexcept;
  static void sample(worker* w) noexcept;
  work look_at_oldest(worker* w) noexcept;
  work take_injected(worker* w, bool tasks_first) noexcept;
  [[nodiscard]] static bool leaves_new_tasks(const worker& of) noexcept;
  static constexpr std::uint64_t still_us = 20;  // without a dispatch: then others take what is ready there
  work search(worker* w) noexcept;
  work try_victim(worker* w, std::uint32_t number) noexcept;
  /// `still_cycles`: for how long it has not dispatched anything; `idle_cycles`: nor spawned.
  work steal_from(worker* w, std::uint32_t victim, std::uint64_t still_cycles, std::uint64_t idle_cycles) noexcept;
  work found(worker* w, work what) noexcept;
  [[nodiscard]] std::uint64_t search_cycles_most(worker* w) const noexcept;
  static void note_wake(worker* w) noexcept;
  [[nodiscard]] bool lingers(worker* w) noexcept;
  void sleep(worker* w) noexcept;
  void sleep_until_woken(worker* w) noexcept;
  void watch_worker(worker& w);  // under watch_lock_; throws std::bad_alloc
  bool work_in_sight(worker* w) noexcept;
  void wake_for_injection() noexcept;
  void fire_timers(worker* w) noexcept;

  worker* add_worker(bool spare);  // throws resource_error, std::bad_alloc
  void start_threads();
  void end_threads() noexcept;
  bool retire_spare(worker* w) noexcept;
  void cancel_all() noexcept;

  // The monitor (monitor.cpp).
  void monitor_main() noexcept;
  bool monitor_round(std::int64_t now) noexcept;
  struct spread_look;
  void look_at_spread(const spread_look& around) noexcept;
  void hand_over(worker* w) noexcept;
  void call_spare() noexcept;
  std::int64_t before_long_sleep(std::int64_t asleep_ns) noexcept;
  void rescue(worker& w) noexcept;
  void rescue_inbox(worker& w) noexcept;
  void rouse_monitor() noexcept;

  // Deadlocks (deadlock.cpp).
  bool nothing_can_wake_a_fiber(const waiting_threads& outside) noexcept;
  [[noreturn]] void report_deadlock() noexcept;

  runtime_options options_;
  std::uint32_t regular_;
  topology topology_;  // if it is needed at all
  bool near_first_ = false;
  bool steals_ = true;
  bool adapts_ = true;            // spread.hpp
  bool begins_together_ = false;  // and stays so
  bool wakes_here_ = true, spawns_here_ = true;
  atomic<std::uint32_t> dealt_outside_{0};
  guard_kind guard_;
  stack_class& stack_class_;
  blocking_pool blocking_;
  injector injected_;
  std::unique_ptr<atomic<worker*>[]> workers_;
  atomic<std::size_t> count_{0};
  atomic<bool> stopping_{false};  // accept nothing, cancel
  atomic<bool> ending_{false};    // workers leave their loops
  atomic<std::uint64_t> started_outside_{0};
  const std::uint64_t started_cycles_ = cycles();
  const std::int64_t started_ns_ = now_ns();
  // Observers (watch.cpp).
  outside_observer outside_;
  std::atomic<bool> watched_outside_{false};
  std::mutex watch_lock_;
  bool watching_ = false;  // below: under the lock
  watch_options watch_options_;
  std::unique_ptr<ready_times> ready_times_;
  std::vector<std::unique_ptr<observer>> earlier_;  // of earlier watches: a worker may not have noticed their end

  atomic<std::uint32_t> outsiders_{0};  // threads inside inject/submit; the destructor waits for them
  os_mutex stop_lock_;
  bool stopped_ = false;

  // Monitor and spares.
  struct watch {
    std::uint64_t dispatches = 0;
    std::int64_t since_ns = 0;
    std::int64_t cpu_ns = 0;                                         // of the worker's thread, then
    std::uint64_t started = 0;                                       // fibers that it has spawned, a round ago
    std::int64_t spawned_ns = 0;                                     // when that was last seen to change
    std::uint64_t progress = 0;                                      // spread.hpp, a round ago
    std::uint64_t contended = 0, seized = 0, moved = 0, thefts = 0;  // the same
    bool stalled = false;
  };
  std::vector<watch> watches_;
  spread_control spread_control_;
  atomic<bool> spread_{false};             // spread.hpp
  atomic<bool> at_home_{false};            // the same, and who is woken goes home
  atomic<worker*> together_{nullptr};      // who runs all that is ready, if somebody shall
  atomic<std::uint32_t> monitor_word_{0};  // futex: 0 sleeps for ever, 1 ticks
  atomic<std::uint32_t> monitor_ends_{0};  // futex: on which it waits for a tick; 1 ends that at once
  atomic<std::uint32_t> spares_wanted_{0};
  atomic<std::uint32_t> spares_active_{0};
  std::vector<std::unique_ptr<worker>> retired_for_good_;  // spares whose thread could not be started
  os_thread monitor_;
};

}  // namespace ramie::detail
