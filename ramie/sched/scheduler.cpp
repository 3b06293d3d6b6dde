// What a worker does next (the order, and the bounds that follow: next_work.hpp), and the way into a runtime and out.
#include <ramie/sched/scheduler.hpp>
#include <ramie/worker/observing.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/base/notice.hpp>
#include <ramie/context/sanitizer.hpp>
#include <ramie/machine/backoff.hpp>
#include <ramie/machine/cpu_count.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/machine/futex.hpp>
#include <ramie/queue/promoted_job.hpp>
#include <ramie/sched/fork_jobs.hpp>
#include <ramie/sched/live_schedulers.hpp>
#include <ramie/sched/next_work.hpp>
#include <ramie/sched/residents.hpp>
#include <ramie/stack/overflow.hpp>
#include <ramie/task/region.hpp>

#include <algorithm>
#include <bit>
#include <system_error>
#include <utility>

namespace ramie::detail {

namespace {

guard_kind to_guard_kind(stack_guard guard) noexcept {
  switch (guard) {
    case stack_guard::madvise: return guard_kind::madvise;
    case stack_guard::mprotect: return guard_kind::mprotect;
    case stack_guard::none: return guard_kind::none;
    case stack_guard::automatic: break;
  }
  return guard_kind::automatic;
}

}  // namespace

// ---- what to do next -----------------------------------------------------------------------------------------------

work scheduler::find_work(worker* w) noexcept {
  for (bool has_slept = false;; has_slept = true) {
    if (w->reserve.load(std::memory_order_relaxed)) [[unlikely]] {
      if (const work next = find_urgent(*w)) return next;
    }
    if (has_slept && options().policy != nullptr) {
      const work next = placing.take_by_policy(*w);
      if (!RAMIE_PLANT(policy_wake_not_passed_on)) sleeping.published_to_policy();
      if (next) return found(w, next);
    }
    if (w->until_tick <= 1) {
      w->until_tick = tick_every;
      ++w->ticks;
      measure_tick(*w, tick_every);
      if (keeps_together()) [[unlikely]]
        placing.hand_over(*w);
      if (work next = look_at_oldest(w)) return found(w, next);
    } else {
      --w->until_tick;
    }
    note_dispatch(*w);
    placing.open_inbox(*w);
    const own_work own = next_own<runnable_kind::any>(*w, 0);
    if (own.ready) return found(w, to_work(own.ready));
    if (own.spawned != nullptr) return found(w, {.start = own.spawned});
    if (options().policy != nullptr)
      if (work next = placing.take_by_policy(*w)) return found(w, next);
    if (work next = placing.take_injected(*w, false)) return found(w, next);
    fire_timers(w);
    events.poll();
    if (w->ready.size() != 0 || !w->sent.empty()) continue;
    if (all_.ending.load(std::memory_order_relaxed)) {
      if (w->searching) sleeping.end_search(*w);
      return {.stop = true};
    }
    if (events.source() != nullptr && sleeping.is_alone(*w)) {
      // What comes next comes from outside, and is seen in the source as soon as by a search, for less of the
      // processor.
    } else if (w->searching || sleeping.begin_search(*w)) {
      if (work next = stealing_.search(*w, has_slept)) return found(w, next);
      if (w->ready.size() != 0 || !w->sent.empty()) continue;
    } else if (stealing_.lingers(*w, has_slept)) {
      continue;
    }
    sleep(w);
  }
}

/// The reserve's (reserve.cpp, V3 to V5). Empty if it is the reserve no more.
work scheduler::find_urgent(worker& w) noexcept {
  while (w.reserve.load(std::memory_order_relaxed)) {
    const bool tick = w.until_tick <= 1;
    if (tick) {
      w.until_tick = tick_every;
      ++w.ticks;
    } else {
      --w.until_tick;
    }
    note_dispatch(w);
    events.poll();
    fire_timers(&w);
    if (all_.hogged.load(std::memory_order_relaxed)) {
      if (tick)
        if (const work next = placing.take_woken(w)) return next;
      if (const own_work own = next_own<runnable_kind::any>(w, 0); own.ready || own.spawned != nullptr)
        return own.ready ? to_work(own.ready) : work{.start = own.spawned};
      if (const work next = placing.take_woken(w)) return next;
    } else if (!RAMIE_PLANT(reserve_keeps_all)) {
      placing.give_away(w);
    }
    if (all_.ending.load(std::memory_order_relaxed)) return {.stop = true};
    if (!all_.hogged.load(std::memory_order_relaxed) && monitor_.release_reserve(w)) continue;
    sleeping.rest(w);
  }
  return {};
}

work scheduler::look_at_oldest(worker* w) noexcept {
  fire_timers(w);
  events.poll_at_tick(w->tick_at);
  // Promoted jobs that their own fibers took back: nothing but memory by now, and no reason to wait for their turn.
  for (std::uint32_t i = 0; i < 2 * tick_every; ++i) {
    task* t = w->spawned.size() == 0 ? nullptr : w->spawned.pop_oldest(&is_spent_job);
    if (t == nullptr) break;
    run_promoted_job(w, t);
  }
  if (w->ticks % oldest_every_ticks == 0) {
    if (all_.near_first) all_.note_place(*w);
    if (task* t = w->spawned.pop_oldest(); t != nullptr) return {.start = t};
  }
  if (options().policy != nullptr &&
      w->ticks % 4 == 1)  // else a pinned fiber that yields would keep it waiting forever
    if (work next = placing.take_by_policy(*w)) return next;
  return placing.take_injected(*w, w->ticks % 2 == 0);
}

work scheduler::found(worker* w, work next) noexcept {
  if (w->searching) [[unlikely]]
    sleeping.end_search(*w);
  return next;
}

void scheduler::sleep(worker* w) noexcept {
  w->parks.add();
  w->tick_at = 0;
  if (w->spare && monitor_.retire(*w)) return;
  const std::uint64_t asleep = cycles();
  sleeping.sleep(*w);
  w->stealing.slept(cycles() - asleep);
  monitor_.rouse();  // it may have seen all workers idle
}

void scheduler::fire_timers(worker* w) noexcept {
  const std::int64_t next = w->timers.next_ns();
  if (next != timer_queue::never) {
    const std::int64_t now = now_ns();
    if (next <= now) w->timers.fire(now);
  }
}

// ---- the way in -----------------------------------------------------------------------------------------------------

void scheduler::submit_here(worker* w, task* t) {
  if (!w->spawns_here.load(std::memory_order_relaxed)) [[unlikely]]
    return submit_elsewhere(w, t);
  w->started.add();  // before it can run: `live` must never see its end without its start
  if (w->observed_tasks.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_spawn(w, t);
  std::size_t queued;
  try {
    queued = w->spawned.push(t);
  } catch (...) {
    w->finished.add();
    throw;
  }
  sleeping.published(w, queued);
}

void scheduler::submit_elsewhere(worker* w, task* t) {
  if (w->draining.load(std::memory_order_relaxed) && (t->flags.load(std::memory_order_relaxed) & task::child_flag) == 0)
    refuse_when_draining(*w);
  w->started.add();
  placing.place(w, ready_item{t});
}

void scheduler::place_outside(ready_item item) noexcept {
  // Once pushed, it may run, end, and let the runtime end: `outsiders_` keeps this object until we are through. The
  // queue's release publishes the addition together with the item.
  outsiders_.fetch_add(1, std::memory_order_relaxed);
  placing.place(nullptr, item);
  outsiders_.fetch_sub(1, std::memory_order_release);
}

void scheduler::refuse_spawn() const {
  throw usage_error{"ramie: spawn: runtime \"" + options().name + "\" is shutting down"};
}

void scheduler::submit(task* t) {
  if (worker* w = worker::current(); w != nullptr && w->owner == this) {
    if ((t->flags.load(std::memory_order_relaxed) & task::pinned_flag) == 0) submit_here(w, t);
    else submit_elsewhere(w, t);
    return;
  }
  outsiders_.fetch_add(1, std::memory_order_relaxed);
  started_outside_.fetch_add(1, std::memory_order_seq_cst);
  if (all_.stopping.load(std::memory_order_seq_cst)) {
    started_outside_.fetch_sub(1, std::memory_order_relaxed);
    outsiders_.fetch_sub(1, std::memory_order_relaxed);
    refuse_spawn();
  }
  placing.place(nullptr, ready_item{t});
  outsiders_.fetch_sub(1, std::memory_order_release);
}

void scheduler::submit_promoted(worker* w, task* t) noexcept {
  try {
    sleeping.published(w, w->spawned.push(t));
  } catch (const std::bad_alloc&) {
    placing.inject_new(t);
  }
}

// ---- start and end -------------------------------------------------------------------------------------------------

scheduler::scheduler(const runtime_options& given)
    : all_{given},
      guard_{to_guard_kind(options().guard)},
      stack_class_{stack_class_of(options().stack_size, guard_)},
      blocking_{static_cast<std::size_t>(options().blocking_threads), options().name} {
  if (!options().notices) switch_off_notices();
  init_fences();
  sanitizer_begin();
  init_fork_marks();
  install_overflow_handler();
  try {
    for (std::uint32_t i = 0; i < all_.regular; ++i) hire(false);
    if (placing.begins_together()) all_.way.set(spread_control::mode::together, &at(0));
    start_threads();
    list_scheduler(*this);
  } catch (...) {
    end_threads();
    throw;
  }
}

worker& scheduler::hire(bool spare) {
  const worker_facts facts{.number = static_cast<std::uint32_t>(all_.size()),
                           .stacks = stack_class_,
                           .workers_most = all_.most(),
                           .near_first = all_.near_first,
                           .alone = all_.regular == 1};
  auto fresh = std::make_unique<worker>(this, facts);
  fresh->spare = spare;
  fresh->wakes_here = placing.wakes_here();
  fresh->spawns_here.store(placing.spawns_here() && !stopping(), std::memory_order_relaxed);
  fresh->on_duty.store(true,
                       std::memory_order_relaxed);  // from now on: the monitor must not take it for one that retired
  if (options().paint_stacks) {
    fresh->paints_stacks = true;
    fresh->painting = std::make_unique<observer>();
    fresh->observed_tasks.store(fresh->painting.get(), std::memory_order_relaxed);
  }
  fresh->first = acquire_stack(stack_class_);
  fresh->draining.store(stopping(), std::memory_order_relaxed);
  recorder_.admit(*fresh);
  return *fresh.release();
}

void scheduler::start_threads() {
  std::uint32_t n = 0;
  try {
    for (; n < all_.regular; ++n) at(n).thread = os_thread{[w = &at(n)] { run_worker(*w); }};
    if (!RAMIE_UNMONITORED) monitor_.start();
  } catch (const std::system_error& e) {
    throw resource_error{
        "ramie: cannot start " +
            (n < all_.regular ? "worker thread " + std::to_string(n + 1) + " of " + std::to_string(all_.regular)
                              : std::string{"the monitor thread"}) +
            ": " + e.code().message() + " (limits: RLIMIT_NPROC, kernel.threads-max, the cgroup's pids.max)",
        e.code().value()};
  }
}

void scheduler::end_threads() noexcept {
  unlist_scheduler(*this);  // first: a visitor of a listed one may rely on its threads
  // Before `ending`: it adds spares, and calls back any that are off duty.
  if (!RAMIE_PLANT(monitor_ends_late)) monitor_.end();
  all_.ending.store(true, std::memory_order_seq_cst);
  if (RAMIE_PLANT(monitor_ends_late)) monitor_.end();
  for (std::size_t i = 0; i < worker_count(); ++i) {
    worker& w = at(i);
    // Again and again: one that is on its way to sleep has not yet entered the set, and may have looked at `ending`
    // before. The token of those that are woken carries it.
    while (w.thread.joinable() && w.on_duty.load(std::memory_order_acquire)) {
      sleeping.wake_all();
      if (w.reserve.load(std::memory_order_relaxed)) sleeping.call(w);
      for (int round = 0; round <= pauses_most && w.on_duty.load(std::memory_order_relaxed);) pause_a_little(round);
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
  events.end();
  all_.workers.shrink(0);
  trim_task_memory();
}

scheduler::~scheduler() { stop(); }

std::size_t scheduler::threads_if_at_rest() noexcept {
  if (stopping() || all_.ending.load(std::memory_order_acquire)) return 0;
  if (outsiders_.load(std::memory_order_acquire) != 0 || all_.injected.size() != 0) return 0;
  const std::size_t n = worker_count();
  for (std::size_t i = 0; i < n; ++i) {
    worker& w = at(i);
    if (!w.on_duty.load(std::memory_order_acquire)) continue;
    if (!w.idle.load(std::memory_order_acquire) || w.ready.size() + w.spawned.size() != 0 || w.has_fork_jobs() ||
        w.timers.next_ns() != timer_queue::never)
      return 0;
  }
  if (live() == 0 || events.is_waited_for()) return 0;
  const std::size_t helpers = blocking_.threads_if_idle();
  if (helpers == blocking_pool::busy) return 0;
  return n + 1 + helpers;  // the monitor
}

std::uint64_t scheduler::live() noexcept {
  // Ends first: then equality means that at the moment between the two reads nothing was alive.
  std::uint64_t finished = 0;
  for (std::size_t i = 0; i < worker_count(); ++i) finished += at(i).finished.value();
  std::uint64_t started = started_outside_.load(std::memory_order_relaxed);
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
              const worker* home = home_of(*static_cast<const task*>(occupant));
              return home != nullptr && home->owner == context && !limits_of_wait(occupant).shielded;
            },
            of.self);
      },
      &with);
}

/// Residents that are told again in each round of `stop`, of each worker: a guess.
static constexpr std::size_t told_again_most = 1024;

void scheduler::stop() {
  // Before the lock: another thread may hold it, waiting for this very fiber.
  if (worker* w = worker::current(); w != nullptr && w->owner == this)
    throw usage_error{"ramie: shutdown: runtime \"" + options().name +
                      "\" cannot be shut down from one of its own fibers"};
  std::lock_guard guard{stop_lock_};
  if (stopped_) return;
  all_.stopping.store(true, std::memory_order_seq_cst);
  // In this order: a fiber that sees that its worker drains starts nothing more there.
  for (std::size_t i = 0; i < worker_count(); ++i) at(i).spawns_here.store(false, std::memory_order_relaxed);
  for (std::size_t i = 0; i < worker_count(); ++i) at(i).draining.store(true, std::memory_order_release);
  heavy_fence();
  // All are told once. Fibers that were just arming a wait when asked, or wait again in a handler, are met in the next
  // round; of residents, so many in a round that millions can end between two.
  for (std::size_t i = 0; i < worker_count(); ++i) at(i).residents.shut_down(at(i).residents.size());
  std::int64_t since_ns = now_ns();
  bool slow = false;
  int round = 0;
  std::uint64_t least = live();
  for (std::int64_t pause_ns = 20'000; live() != 0; pause_ns = std::min<std::int64_t>(2 * pause_ns, 2'000'000)) {
    for (std::size_t i = 0; i < worker_count(); ++i) at(i).residents.shut_down(told_again_most);
    cancel_all();
    for (const std::int64_t until_ns = now_ns() + pause_ns; live() != 0 && now_ns() < until_ns;) pause_a_little(round);
    if (const std::uint64_t left = live(); left < least) {  // a million that end take their time, and are no notice
      least = left;
      since_ns = now_ns();
    }
    if (!slow && now_ns() - since_ns > end_is_slow_ns) {
      slow = true;
      if (const reporters* report = known_reporters(); report != nullptr) report->slow_end(*this);
    }
  }
  end_threads();
  stopped_ = true;
}

}  // namespace ramie::detail
