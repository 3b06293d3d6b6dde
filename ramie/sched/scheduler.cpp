// Where a worker's next work comes from, and the way a runtime starts and ends.
//
// The order: ready fibers first (they hold stacks), but for a loop that runs new tasks in place: it goes on with up to
// tasks_in_a_row of them (worker.cpp), so that a fiber they all report to is resumed once for many reports. Then the
// newest spawned task (depth first), then what came from outside, then other workers' work. Every `tick_every`
// dispatches (a tick) the injection queue goes first, by turns its new tasks and its woken fibers; every
// `oldest_every_ticks` ticks the oldest spawned task does. So on a worker with R ready fibers one that becomes ready
// runs within R * (1 + 1/tick_every) + 1 + tick_every + tasks_in_a_row dispatches (a fiber that yields to spawned tasks
// lets at most tick_every of them go first), the k-th in the injection queue within 2 * (k + 1) * tick_every, and the
// k-th oldest task of a spawn deque within (k + 1) * tick_every * oldest_every_ticks, about 4,000 for each older one.
// The last is rarer because each such task opens a new branch of a tree that is otherwise
// worked off depth first: with the oldest taken at every tick, sum's 20 million fibers needed 967 MB on one worker, so
// 10 MB.
//
// When to wake a sleeper for published work, and what a thief takes: two or more new tasks are a surplus
// (unless thefts of them were in vain: theft.hpp), and so is a fork job. Ready fibers and residents are another matter.
// They were woken by somebody on this worker, with whom they share what they talk about; a wake-up costs microseconds,
// their message some nanoseconds. They stay as long as this worker gets through them soon: less than `queued_us_most`
// of them, judged by how long its dispatches take (`slice`, taken at ticks, and by samples of how long an item that was
// left here waits). If the worker is stuck meanwhile, a thief sees that it dispatches nothing for `still_us`, or the
// monitor does, and then anything may be taken. Where the backlog lasts, the monitor tries what is better (spread.hpp):
// spread, two ready items are a surplus already, but where all that is woken goes home only who has been short of work
// for some time takes from it (stealing.cpp).
#include <ramie/sched/scheduler.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/context/sanitizer.hpp>
#include <ramie/sched/backoff.hpp>
#include <ramie/sched/cpu_count.hpp>
#include <ramie/sched/cycles.hpp>
#include <ramie/sched/environment.hpp>
#include <ramie/sched/futex.hpp>
#include <ramie/sched/live_schedulers.hpp>
#include <ramie/sched/policy.hpp>
#include <ramie/stack/overflow.hpp>

#include <algorithm>
#include <bit>
#include <system_error>
#include <utility>

namespace ramie::detail {

namespace {

constexpr std::uint32_t sample_every = 8;             // ready items left to their worker
constexpr std::int64_t idle_trim_ns = 1'000'000'000;  // asleep for so long: caches are given back

constexpr std::uint64_t long_wait_us = 20;  // a wake-up costs about that much, on both sides and with a margin
constexpr std::uint64_t queued_us_most = 1000;

guard_kind to_guard_kind(stack_guard guard) noexcept {
  switch (guard) {
    case stack_guard::madvise: return guard_kind::madvise;
    case stack_guard::mprotect: return guard_kind::mprotect;
    case stack_guard::none: return guard_kind::none;
    case stack_guard::fresh: return guard_kind::fresh;
    case stack_guard::automatic: break;
  }
  return guard_kind::automatic;
}

}  // namespace

// ---- what to do next -----------------------------------------------------------------------------------------------

work scheduler::find_work(worker* w) noexcept {
  for (;;) {
    if (w->until_tick <= 1) {
      w->until_tick = tick_every;
      ++w->ticks;
      measure_tick(w);
      if (together_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
        hand_over(w);
      if (work next = look_at_oldest(w)) return found(w, next);
    } else {
      --w->until_tick;
    }
    dispatching(w);
    open_inbox(w);
    if (w->spawn_turns != 0) {
      --w->spawn_turns;
      if (task* t = w->spawned.pop(); t != nullptr) return found(w, {.start = t});
      w->spawn_turns = 0;
    }
    if (const ready_item item = w->ready.pop()) return found(w, to_work(item));
    if (task* t = w->spawned.pop(); t != nullptr) return found(w, {.start = t});
    if (options_.policy != nullptr)
      if (work next = take_by_policy(w)) return found(w, next);
    if (work next = take_injected(w, false)) return found(w, next);
    fire_timers(w);
    if (w->ready.size() != 0 || !w->sent.empty()) continue;
    if (ending_.load(std::memory_order_acquire)) {
      if (w->searching) idle.end_search(*w);
      return {.stop = true};
    }
    const bool may_search = w->searching || idle.begin_search(*w, static_cast<std::uint32_t>(worker_count()));
    if (may_search) {
      const work next = search(w);
      w->dry.store(w->dry.load(std::memory_order_relaxed) + (cycles() - w->search_began), std::memory_order_relaxed);
      if (next) return found(w, next);
      if (!w->sent.empty()) continue;
    } else if (lingers(w)) {
      continue;
    }
    sleep(w);
  }
}

work scheduler::look_at_oldest(worker* w) noexcept {
  fire_timers(w);
  // Promoted jobs that their own fibers took back: nothing but memory by now, and no reason to wait for their turn.
  for (std::uint32_t i = 0; i < 2 * tick_every; ++i) {
    task* t = w->spawned.size() == 0 ? nullptr : w->spawned.pop_oldest(&is_spent_job);
    if (t == nullptr) break;
    run_promoted_job(w, t);
  }
  if (w->ticks % oldest_every_ticks == 0) {
    if (near_first_) note_place(w);
    if (task* t = w->spawned.pop_oldest(); t != nullptr) return {.start = t};
  }
  if (options_.policy != nullptr &&
      w->ticks % 4 == 1)  // else a pinned fiber that yields would keep it waiting for ever
    if (work next = take_by_policy(w)) return next;
  return take_injected(w, w->ticks % 2 == 0);
}

work scheduler::take_injected(worker* w, bool tasks_first) noexcept {
  if (injected_.size() == 0) return {};
  const bool migrate = options_.migrate_always && regular_ > 1;
  const injector::item item = injected_.pop(tasks_first, [&](const stack& s) {
    return !migrate ||
           static_cast<const task*>(s.occupant.load(std::memory_order_relaxed))->home.load(std::memory_order_relaxed) !=
               w;
  });
  if (item) w->injected.add();
  else if (migrate) idle.wake_one(true);  // what is there is for somebody else
  return {.resume = item.resume, .start = item.start};
}

work scheduler::found(worker* w, work next) noexcept {
  if (w->searching) [[unlikely]] {
    if (idle.end_search(*w) && work_in_sight(w)) idle.wake_one(false, near_first_ ? w : nullptr);
  }
  return next;
}

void scheduler::fire_timers(worker* w) noexcept {
  const std::int64_t next = w->timers.next_ns();
  if (next != timer_queue::never) {
    const std::int64_t now = now_ns();
    if (next <= now) w->timers.fire(now);
  }
}

// ---- sleeping and waking -------------------------------------------------------------------------------------------

void scheduler::published_slowly(worker* w, std::size_t queued) noexcept {
  if (!steals_) return;
  if (queued >= 2 ? !leaves_new_tasks(*w) : worth_moving(*w, queued)) {
    idle.wake_one(false, near_first_ ? w : nullptr);
    return;
  }
  sample(w);
}

void scheduler::published_ready_slowly(worker* w, std::size_t queued) noexcept {
  if (!steals_) return;
  if (worth_moving(*w, queued)) idle.wake_one(false, near_first_ ? w : nullptr);
  sample(w);  // all the same: the judgement must not outlive its reason
}

void scheduler::sample(worker* w) noexcept {
  if (++w->unsampled < sample_every) return;
  w->unsampled = 0;
  const std::uint64_t now = cycles();
  if (w->deferred_at == 0) w->deferred_at = now;
  else w->slice.store(now - w->deferred_at, std::memory_order_relaxed);  // no dispatch since: it takes at least so long
}

bool scheduler::worth_moving(const worker& w, std::size_t queued) const noexcept {
  if (queued >= 2 && spread_.load(std::memory_order_relaxed)) return true;
  const std::uint64_t slice = w.slice.load(std::memory_order_relaxed);
  return queued >= 2 ? queued * slice > cycles_in_us(queued_us_most)
                     : queued == 1 && slice > cycles_in_us(long_wait_us);
}

void scheduler::judge_deferral(worker* w) noexcept {
  w->slice.store(cycles() - w->deferred_at, std::memory_order_relaxed);
  w->deferred_at = 0;
}

void scheduler::measure_tick(worker* w) noexcept {
  const std::uint64_t now = cycles();
  if (w->tick_at != 0) w->slice.store((now - w->tick_at) / tick_every, std::memory_order_relaxed);
  w->tick_at = now;
}

bool scheduler::work_in_sight(worker* w) noexcept {
  if (injected_.size() != 0 || !w->sent.empty()) return true;
  if (options_.policy != nullptr && options_.policy->has_work(static_cast<int>(w->number))) return true;
  if (!steals_) return false;
  const std::size_t n = worker_count();
  for (std::size_t i = 0; i < n; ++i) {
    worker& other = at(i);
    if (&other != w && (worth_moving(other, other.ready.size()) || other.has_fork_jobs() ||
                        (other.spawned.size() >= 2 && !leaves_new_tasks(other))))
      return true;
  }
  return false;
}

void scheduler::sleep(worker* w) noexcept {
  w->parks.add();
  w->tick_at = 0;
  if (w->spare && retire_spare(w)) return;
  if (w->watched.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_sleep(w, true);
  sleep_until_woken(w);
  if (w->watched.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_sleep(w, false);
}

void scheduler::sleep_until_woken(worker* w) noexcept {
  idle.enter(*w);
  if (asymmetric_fences && steals_) {
    const std::size_t n = worker_count();
    for (std::size_t i = 0; i < n; ++i)
      if (&at(i) != w) at(i).limit.store_relaxed(nullptr);
  }
  if (!RAMIE_PLANT(sleep_no_fence)) heavy_fence();
  if (!RAMIE_PLANT(sleep_without_look) && (work_in_sight(w) || ending_.load(std::memory_order_acquire)) &&
      idle.leave(*w)) {
    w->clock_ns.store(now_ns(), std::memory_order_relaxed);
    rouse_monitor();  // it may have seen everybody idle
    return;
  }
  bool trimmed = false;
  while (w->wake_token.load(std::memory_order_acquire) == 0) {
    const std::int64_t deadline = w->timers.next_ns();
    std::int64_t left = -1;
    if (deadline != timer_queue::never) {
      const std::int64_t now = now_ns();
      left = deadline > now ? deadline - now : 0;  // it may be the least number there is
    }
    if (left == 0) {
      if (idle.leave(*w)) break;
      left = -1;  // somebody is about to set the token
    }
    const bool trial = !trimmed && (left < 0 || left > idle_trim_ns);
    futex_wait(w->wake_token, 0, trial ? idle_trim_ns : left);
    if (trial && w->wake_token.load(std::memory_order_acquire) == 0) {
      // A spare that fell asleep while it was still wanted is told by nobody that it is not: it looks again.
      if (w->spare && w->timers.next_ns() == timer_queue::never && idle.leave(*w)) break;
      trimmed = true;
      w->stacks.flush();
      w->blocks.flush();
      if (idle.sleeping() == regular_workers() + spares_active_.load(std::memory_order_relaxed)) {
        trim(stack_class_);
        trim_task_memory();
      }
    }
  }
  note_wake(w);
  w->wake_token.store(0, std::memory_order_relaxed);
  w->idle.store(false, std::memory_order_relaxed);
  w->clock_ns.store(now_ns(), std::memory_order_relaxed);
  if (near_first_) note_place(w);
  rouse_monitor();
}

void scheduler::wake_for_injection() noexcept {
  light_fence();
  if (idle.hint()) idle.wake_one();
}

void scheduler::submit_here(worker* w, task* t) {
  if (!w->spawns_here.load(std::memory_order_relaxed)) [[unlikely]]
    return submit_elsewhere(w, t);
  w->started.add();  // before anybody can run it: `live` must never see its end without its start
  if (w->watched_tasks.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_spawn(w, t);
  std::size_t queued;
  try {
    queued = w->spawned.push(t);
  } catch (...) {
    w->finished.add();
    throw;
  }
  published(w, queued);
}

void scheduler::refuse_spawn() const {
  throw usage_error{"ramie: spawn: runtime \"" + options_.name + "\" is shutting down"};
}

void scheduler::submit(task* t) {
  if (worker* w = current_worker(); w != nullptr && w->owner == this) {
    if ((t->flags.load(std::memory_order_relaxed) & task::pinned_flag) == 0) submit_here(w, t);
    else submit_elsewhere(w, t);
    return;
  }
  outsiders_.fetch_add(1, std::memory_order_acquire);
  started_outside_.fetch_add(1, std::memory_order_seq_cst);
  if (stopping_.load(std::memory_order_seq_cst)) {
    started_outside_.fetch_sub(1, std::memory_order_relaxed);
    outsiders_.fetch_sub(1, std::memory_order_release);
    refuse_spawn();
  }
  place(nullptr, ready_item{t});
  outsiders_.fetch_sub(1, std::memory_order_release);
}

void scheduler::submit_promoted(worker* w, task* t) noexcept {
  try {
    published(w, w->spawned.push(t));
  } catch (const std::bad_alloc&) {
    injected_.push_new(t);
    wake_for_injection();
  }
}

// ---- start and end -------------------------------------------------------------------------------------------------

scheduler::scheduler(const runtime_options& options)
    : options_{resolve(options)},
      regular_{static_cast<std::uint32_t>(options_.workers)},
      guard_{to_guard_kind(options_.guard)},
      stack_class_{stack_class_of(options_.stack_size, guard_)},
      blocking_{static_cast<std::size_t>(options_.blocking_threads), options_.name} {
  set_up_placement();
  set_up_topology();
  init_fences();
  sanitizer_begin();
  init_fork_marks();
  install_overflow_handler();
  workers_ = std::make_unique<atomic<worker*>[]>(workers_most);
  const std::size_t all = regular_ + static_cast<std::size_t>(options_.spare_workers);
  idle.reserve(all);
  watches_.resize(all);
  try {
    for (std::uint32_t i = 0; i < regular_; ++i) add_worker(false);
    if (begins_together_) together_.store(&at(0), std::memory_order_relaxed);
    start_threads();
    list_scheduler(*this);
  } catch (...) {
    end_threads();
    throw;
  }
}

worker* scheduler::add_worker(bool spare) {
  const auto n = static_cast<std::uint32_t>(worker_count());
  auto fresh = std::make_unique<worker>(*this, n, stack_class_);
  fresh->spare = spare;
  fresh->wakes_here = wakes_here_;
  fresh->spawns_here.store(spawns_here_ && !stopping(), std::memory_order_relaxed);
  fresh->on_duty.store(true,
                       std::memory_order_relaxed);  // from now on: the monitor must not take it for one that retired
  if (options_.paint_stacks) {
    fresh->measuring = std::make_unique<observer>();
    fresh->watched_tasks.store(fresh->measuring.get(), std::memory_order_relaxed);
  }
  fresh->first = acquire_stack(stack_class_);
  fresh->draining.store(stopping(), std::memory_order_relaxed);
  worker* w = fresh.release();
  const std::lock_guard watch_guard{watch_lock_};
  if (watching_) watch_worker(*w);
  workers_[n].store(w, std::memory_order_release);
  count_.store(n + 1, std::memory_order_release);
  return w;
}

void scheduler::start_threads() {
  std::uint32_t n = 0;
  try {
    for (; n < regular_; ++n) at(n).thread = os_thread{[w = &at(n)] { w->thread_main(); }};
    if (!RAMIE_UNMONITORED) monitor_ = os_thread{[this] { monitor_main(); }};
  } catch (const std::system_error& e) {
    throw resource_error{
        "ramie: cannot start " +
            (n < regular_ ? "worker thread " + std::to_string(n + 1) + " of " + std::to_string(regular_)
                          : std::string{"the monitor thread"}) +
            ": " + e.code().message() + " (limits: RLIMIT_NPROC, kernel.threads-max, the cgroup's pids.max)",
        e.code().value()};
  }
}

void scheduler::end_threads() noexcept {
  unlist_scheduler(*this);  // first: whoever looks at a listed one may rely on its threads
  ending_.store(true, std::memory_order_seq_cst);
  monitor_word_.store(1, std::memory_order_release);
  futex_wake(monitor_word_);
  monitor_ends_.store(1, std::memory_order_release);
  futex_wake(monitor_ends_);
  if (monitor_.joinable()) monitor_.join();  // first: it adds spares
  heavy_fence();
  for (std::size_t i = 0; i < worker_count(); ++i) {
    worker& w = at(i);
    // Again and again: one that is on its way to sleep has not yet entered the set.
    while (w.thread.joinable() && w.on_duty.load(std::memory_order_acquire)) {
      idle.wake_all();
      os_sleep(20'000);
    }
    w.wake_token.store(1, std::memory_order_release);  // a retired spare
    futex_wake(w.wake_token);
  }
  for (std::size_t i = 0; i < worker_count(); ++i) {
    worker* w = &at(i);
    if (w->thread.joinable()) w->thread.join();
    else release_stack(w->first);  // never started
  }
  for (int round = 0; outsiders_.load(std::memory_order_acquire) != 0;) pause_a_little(round);
  for (std::size_t i = 0; i < worker_count(); ++i) delete &at(i);
  count_.store(0, std::memory_order_release);
  trim_task_memory();
}

scheduler::~scheduler() { stop(); }

std::uint64_t scheduler::live() noexcept {
  // Ends first: then equality means that at the moment between the two reads nothing was alive.
  std::uint64_t finished = 0;
  for (std::size_t i = 0; i < worker_count(); ++i) finished += at(i).finished.value();
  std::uint64_t started = started_outside_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < worker_count(); ++i) started += at(i).started.value();
  return started - finished;
}

void scheduler::cancel_all() noexcept {
  struct all_of {
    scheduler* self;
    inspection here{};
  } with{this};
  for_each_stack(
      [](void* opaque, stack& s) {
        const auto& of = *static_cast<const all_of*>(opaque);
        inspect_and_cancel(
            of.here, s,
            [](const void* context, const void* occupant) {
              const worker* home = static_cast<const task*>(occupant)->home.load(std::memory_order_relaxed);
              return home != nullptr && home->owner == context;
            },
            of.self);
      },
      &with);
}

void scheduler::stop() {
  // Before the lock: another thread may hold it, waiting for this very fiber.
  if (worker* w = current_worker(); w != nullptr && w->owner == this)
    throw usage_error{"ramie: shutdown: runtime \"" + options_.name +
                      "\" cannot be shut down from one of its own fibers"};
  std::lock_guard guard{stop_lock_};
  if (stopped_) return;
  stopping_.store(true, std::memory_order_seq_cst);
  for (std::size_t i = 0; i < worker_count(); ++i) {
    at(i).draining.store(true, std::memory_order_relaxed);
    at(i).spawns_here.store(false, std::memory_order_relaxed);
  }
  heavy_fence();
  // Fibers that were just arming a wait when asked, or wait anew in a handler, are met in the next round.
  for (std::int64_t pause_ns = 20'000; live() != 0; pause_ns = std::min<std::int64_t>(2 * pause_ns, 2'000'000)) {
    for (std::size_t i = 0; i < worker_count(); ++i) at(i).residents.shut_down();
    cancel_all();
    os_sleep(pause_ns);
  }
  end_threads();
  stopped_ = true;
}

}  // namespace ramie::detail
