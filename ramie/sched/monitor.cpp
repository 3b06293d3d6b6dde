// The monitor: one thread per runtime that looks, once a millisecond while a worker is awake and every ten while none
// is, whether
//  M1 work lies in a queue that does not move while others sleep, or new tasks in one for which no worker is woken any more:
//     it wakes one;
//  M2 timers of a busy worker are due, for a millisecond unless it stands still: it fires them, and wakes the worker if
//     that has fallen asleep meanwhile;
//  M3 a worker has dispatched nothing for a millisecond: what others send it to run goes elsewhere from now on, and so
//     does what they have sent already. If it is stalled (blocked in the kernel for a millisecond, or no dispatch for
//     `stall_after`: a long computation; not one that merely waits for a processor) with work in its queues, while others are busy, that is
//     moved to the injection queue, where those find it who are busy but not stalled. They steal only when they run dry;
//  M4 every worker on duty is stalled while work waits: it calls a spare worker, which retires when fewer are stalled.
//     Where none is left to call, deadlock.cpp may have something to tell. What woke has a worker of its own before that,
//     the reserve (reserve.cpp);
//  M5 no worker has looked for events from outside for a millisecond: it does (event_source.hpp, E6).
// M1, M3 and M4 are for placements that steal. Under the others what is behind a stalled worker waits: `dedicated`
// promises where things run, and moving them in the rare case of a stall would break that when it is least expected.
// Only what is in the injection queue for other reasons is looked after there. If two looks in a row find no worker
// awake it sleeps until a worker wakes up, so that an idle process uses no CPU:
//  monitor: word = 0, heavy fence, is a worker awake?      worker: idle = false, light fence, word == 0? wake the monitor
// What it reads of the workers are numbers: an old one lasts a tick. The fences of this pair see to it that those
// before its sleep are not old; neither the word nor the flags that end it carry anything. The idea is sysmon's, of
// Go's runtime (D. Vyukov, 2012).
#include <ramie/sched/monitor.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/machine/cpu_time.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/machine/futex.hpp>
#include <ramie/machine/signal_mask.hpp>
#include <ramie/sched/policy.hpp>
#include <ramie/sched/scheduler.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <system_error>

namespace ramie::detail {

namespace {
constexpr std::int64_t busy_tick_ns = spread_control::round_ns;
// Guesses.
constexpr std::int64_t quiet_tick_ns = 10'000'000;
constexpr std::int64_t lenient_most = 10;  // times stall_after: see is_stalled

/// Does the thread run, or wait for a processor? If not it is blocked in the kernel.
bool is_runnable(const worker& w) noexcept {
  const int thread = w.thread_id.load(std::memory_order_relaxed);
  if (thread == 0) return true;  // it has not begun
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[128];
  const ssize_t n = ::read(file, text, sizeof text);
  ::close(file);
  // "id (name) S ...": the name may hold anything, but is short.
  const char* end = n <= 0 ? nullptr : static_cast<const char*>(::memrchr(text, ')', static_cast<std::size_t>(n)));
  return end != nullptr && end + 2 < text + n && end[2] == 'R';
}

/// Is the worker, which has dispatched nothing for `still_ns` and had used `cpu_ns` by then, stalled? One that is
/// blocked in the kernel is so at once: a processor is free. Two kinds are given more time. One that spawns fibers in a
/// loop gets on, and they are for the same worker to run, where they were made. One that waits for a processor does so
/// because the machine is overloaded, and one more thread would make that worse. Not forever: what waits behind a
/// computation that gets little of a processor must run as well.
bool is_stalled(worker& w, std::int64_t still_ns, std::int64_t cpu_ns, bool spawns, std::int64_t stall_ns) noexcept {
  if (still_ns >= lenient_most * stall_ns) return true;
  if (still_ns < busy_tick_ns) return false;
  const std::int64_t used_ns = cpu_time_ns(w.thread.native_handle()) - cpu_ns;
  if (still_ns < stall_ns) return 2 * used_ns < still_ns && !is_runnable(w);
  return !spawns && (used_ns >= stall_ns || !is_runnable(w));
}
}  // namespace

monitor::monitor(scheduler& of, crew& all, sleeper& sleeping, placer& placing)
    : of_{of},
      all_{all},
      sleeping_{sleeping},
      placing_{placing},
      looks_(all.most()),
      spread_control_{all.options.placement == placement::work_stealing} {}

monitor::~monitor() = default;

void monitor::start() {
  thread_ = os_thread{[this] { run(); }};
}

void monitor::end() noexcept {
  ends_.store(1, std::memory_order_seq_cst);
  futex_wake(ends_);
  word_.store(1, std::memory_order_seq_cst);
  futex_wake(word_);
  if (thread_.joinable()) thread_.join();
}

void monitor::rouse() noexcept {
  light_fence();
  if (word_.load(std::memory_order_relaxed) != 0) return;
  if (word_.exchange(1, std::memory_order_relaxed) == 0) futex_wake(word_);
}

void monitor::run() noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "%.10s/mon", all_.options.name.c_str());
  ::pthread_setname_np(::pthread_self(), name);
  // A handler may wait for the monitor (inspect/dump_signal.cpp, B2), so it must not interrupt it. A spare is started
  // by the monitor and runs the user's code, so it takes back what was there before.
  block_signals(usual_signals_);
  bool was_busy = true;
  word_.store(1, std::memory_order_relaxed);
  while (ends_.load(std::memory_order_relaxed) == 0) {
    const bool busy = round(now_ns());
    const bool rests = !busy && !was_busy;
    was_busy = busy || rests;
    if (busy) deadlocks_.reset();
    deadlocks_.look_for_circles(of_);
    if (const reporters* report = known_reporters(); report != nullptr) report->requested();
    if (rests) {
      word_.store(0, std::memory_order_relaxed);
      heavy_fence();
      if (ends_.load(std::memory_order_relaxed) == 0 && !round(now_ns()))
        futex_wait(word_, 0,
                   deadlocks_.before_sleep(
                       of_,
                       [](const void* self) {
                         return static_cast<const monitor*>(self)->word_.load(std::memory_order_acquire) == 0;
                       },
                       this));
      word_.store(1, std::memory_order_relaxed);
      continue;
    }
    futex_wait(ends_, 0, busy ? busy_tick_ns : quiet_tick_ns);
  }
}

/// What a round finds out for spread.hpp.
struct monitor::spread_look {
  // In a round; guesses. A seized lock costs a heavy fence.
  static constexpr std::uint64_t locks_many = 32, thefts_many = 3, moved_many = 512;
  spread_control::observation seen{};
  worker* busiest = nullptr;
  std::uint64_t seized = 0;
  std::uint64_t moved = 0;
  std::uint64_t thefts = 0;
  std::int64_t most = 0;
  std::size_t awake = 0;

  /// `before`: a round ago.
  void add(worker& w, last_look& before, bool is_awake) noexcept {
    const std::uint64_t progress = w.dispatches.value() + w.locks.load_relaxed();
    const auto made = static_cast<std::int64_t>(progress - std::exchange(before.progress, progress));
    seen.progress += progress;
    // Fibers that wait for each other's mutexes are ready only while they are on their way.
    const std::uint64_t contended = w.contended.load_relaxed();
    if (contended - std::exchange(before.contended, contended) >= locks_many) seen.backlog = true;
    seen.crossed += contended + w.crossed.load_relaxed();
    const std::uint64_t seized_ever = w.seized.load_relaxed();
    seized += seized_ever - std::exchange(before.seized, seized_ever);
    const std::uint64_t moved_ever = w.moved.load_relaxed();
    moved += moved_ever - std::exchange(before.moved, moved_ever);
    const std::uint64_t thefts_ever = w.steals_done.value();
    thefts += thefts_ever - std::exchange(before.thefts, thefts_ever);
    if (!is_awake) return;
    ++awake;
    if (made > most && !w.spare) {
      most = made;
      busiest = &w;
    }
    seen.backlog |= w.ready.size() >= 2;
    seen.other_work |= w.spawned.size() >= 2 || w.has_fork_jobs();
  }
};

void monitor::look_at_spread(const spread_look& around) noexcept {
  spread_control::observation seen = around.seen;
  seen.alone = around.awake <= 1;
  seen.settling = around.seized >= spread_look::locks_many || around.moved >= spread_look::moved_many ||
                  (spread_control_.now() == spread_control::mode::at_home && around.thefts >= spread_look::thefts_many);
  const spread_control::mode before = spread_control_.now();
  const spread_control::mode after = spread_control_.observe(seen);
  if (after == before) return;
  all_.way.set(after, around.busiest);
  if (all_.way.pairs_move()) sleeping_.wake_one();
}

bool monitor::round(std::int64_t now) noexcept {
  const std::int64_t stall_ns = std::chrono::nanoseconds{all_.options.stall_after}.count();
  bool busy = false;
  bool somebody_sleeps = false;
  bool stuck_queue = all_.injected.size() != 0;
  bool work_waits = all_.injected.size() > (reserve_ != nullptr ? all_.injected.woken() : 0);
  bool new_tasks_wait = false;  // no worker was woken for them while thefts were off (theft_judge.hpp)
  std::uint32_t stalled = 0;    // these two without the reserve
  std::uint32_t on_duty = 0;
  reserve_look urgent;
  spread_look around;
  around.seen.now_ns = now;
  const std::size_t n = all_.size();
  for (std::size_t i = 0; i < n; ++i) {
    worker& w = all_.at(i);
    last_look& seen = looks_[i];
    const bool was_stalled = std::exchange(seen.stalled, false);
    const bool has_duty = w.on_duty.load(std::memory_order_acquire);
    const bool sleeps = w.idle.load(std::memory_order_relaxed);
    const bool is_reserve = w.reserve.load(std::memory_order_relaxed);
    if (placing_.adapts()) around.add(w, seen, has_duty && !sleeps);
    if (!has_duty) {
      if (w.timers.next_ns() != timer_queue::never) call_back(w, false);
      continue;
    }
    if (sleeps) {
      seen.since_ns = 0;  // it stands still because it has nothing to do
      somebody_sleeps |= !is_reserve;
      continue;
    }
    w.clock_ns.store(now, std::memory_order_relaxed);
    busy = true;
    const std::uint64_t dispatches = w.dispatches.value();
    const bool dispatched = seen.since_ns == 0 || seen.dispatches != dispatches;
    if (dispatched) {
      seen.dispatches = dispatches;
      seen.since_ns = now;
      seen.cpu_ns = cpu_time_ns(w.thread.native_handle());
    }
    const std::int64_t still_ns = now - seen.since_ns;
    const bool still = still_ns >= busy_tick_ns;
    w.still.store(still, std::memory_order_relaxed);
    if (still && all_.steals) rescue_inbox(w);
    const std::uint64_t started = w.started.value();
    const bool spawned = std::exchange(seen.started, started) != started;
    if (spawned) seen.spawned_ns = now;
    const bool spawns = now - seen.spawned_ns <= stall_ns;
    if (is_reserve) {
      urgent.reserve_still = still;
    } else {
      // What was stalled stays so until it does something.
      seen.stalled = (was_stalled && !dispatched && !spawns) || is_stalled(w, still_ns, seen.cpu_ns, spawns, stall_ns);
      ++on_duty;
      if (seen.stalled) ++stalled;
      urgent.held_up &= still && !spawned;
    }
    // Fork jobs are offered to sleeping workers, but are no reason to call a spare: their own fiber will run them.
    const bool queued =
        (all_.steals && (w.spawned.size() != 0 || (still ? w.ready.has_movable() : w.ready.size() != 0))) ||
        (seen.stalled && all_.options.policy && all_.options.policy->has_work(static_cast<int>(w.number)));
    work_waits |= queued;
    if ((queued || (all_.steals && w.has_fork_jobs())) && still) stuck_queue = true;
    if (all_.steals && w.spawned.size() >= 2 && !leaves_new_tasks(w)) new_tasks_wait = true;
    // A periodic timer goes back there, and its worker may have fallen asleep meanwhile without a deadline.
    const std::int64_t late = still ? now : now - busy_tick_ns;
    if (w.timers.next_ns() <= late && w.timers.fire(now) != 0) sleeping_.published_to(w);
  }
  if (busy) poll();
  urgent.held_up &= on_duty != 0 && !somebody_sleeps;
  urgent.somebody_sleeps = somebody_sleeps;
  urgent.others_stalled = stalled == on_duty;
  look_at_reserve(urgent);
  if (placing_.adapts() && busy) look_at_spread(around);
  if (all_.steals && stalled != 0 && stalled != on_duty)
    for (std::size_t i = 0; i < n; ++i)
      if (looks_[i].stalled) rescue(all_.at(i));
  const bool stuck = busy && !somebody_sleeps && stalled == on_duty && work_waits;
  const bool spares_left = stalled < all_.regular + static_cast<std::uint32_t>(all_.options.spare_workers);
  deadlocks_.look_at_stall(of_, stuck && !spares_left, now);
  if (somebody_sleeps) {
    if (stuck_queue || new_tasks_wait) sleeping_.wake_one();
  } else if (stuck && spares_left) {
    spares_wanted_.store(stalled, std::memory_order_relaxed);
    call_spare();
    return busy;
  }
  spares_wanted_.store(stalled, std::memory_order_relaxed);
  return busy;
}

/// E6
void monitor::poll() noexcept {
  if (of_.events.poll_if_late(cycles(), busy_tick_ns / 1000) && !RAMIE_PLANT(monitor_leaves_source))
    sleeping_.wake_one();
}

/// What others sent a worker that stands still; what is pinned stays.
void monitor::rescue_inbox(worker& w) noexcept {
  std::size_t moved = 0;
  placing_.take_from_inbox(w, [&](ready_item item) {
    all_.injected.push(item);
    ++moved;
  });
  if (moved != 0) sleeping_.published_to_all();
}

void monitor::rescue(worker& w) noexcept {
  std::array<task*, spawn_deque::steal_most> tasks;
  std::array<ready_item, ready_queue::steal_most> items;
  std::size_t moved = 0;
  for (std::size_t n; (n = w.spawned.steal(tasks.data())) != 0; moved += n)
    for (std::size_t i = 0; i < n; ++i) all_.injected.push_new(tasks[i]);
  for (std::size_t n; (n = w.ready.steal_half(items.data())) != 0; moved += n)
    for (std::size_t i = 0; i < n; ++i) all_.injected.push(items[i]);
  if (moved != 0) sleeping_.published_to_all();
}

void monitor::call_spare() noexcept {
  if (spares_active_.load(std::memory_order_relaxed) < static_cast<std::uint32_t>(all_.options.spare_workers))
    static_cast<void>(call(false));
}

/// Null if there is no thread or no memory: what is stalled stays stalled. The next round tries again.
worker* monitor::call(bool as_reserve) noexcept {
  // One that retired before?
  const std::size_t n = all_.size();
  if (RAMIE_PLANT(monitor_ends_late) && n > all_.regular) os_sleep(200 * busy_tick_ns);  // the end falls into it
  for (std::size_t i = all_.regular; i < n; ++i) {
    worker& w = all_.at(i);
    if (w.on_duty.load(std::memory_order_acquire)) continue;
    call_back(w, as_reserve);
    return &w;
  }
  if (n >= all_.most()) return nullptr;
  // The thread first: a worker that cannot run must not be seen by the others.
  try {
    worker& w = of_.hire(true);
    w.reserve.store(as_reserve, std::memory_order_relaxed);
    if (!as_reserve) spares_active_.fetch_add(1, std::memory_order_relaxed);
    looks_[w.number] = {};
    try {
      w.thread = os_thread{[&w, &signals = usual_signals_] {
        ::pthread_sigmask(SIG_SETMASK, &signals, nullptr);
        run_worker(w);
      }};
      return &w;
    } catch (...) {
      if (!as_reserve) spares_active_.fetch_sub(1, std::memory_order_relaxed);
      all_.workers.shrink(w.number);
      release_stack(w.first);
      never_started_.push_back(std::unique_ptr<worker>{&w});  // a thief may still be looking at its queues
      throw;
    }
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// A spare that retired is wanted again, or had a timer put back that was being fired when it retired. Not after the
/// end: one that has left its loop for good would be waited for.
void monitor::call_back(worker& w, bool as_reserve) noexcept {
  RAMIE_ASSERT(!all_.ending.load(std::memory_order_relaxed), "a spare is called back after the end");
  // These carry nothing; the token keeps them before the next retirement.
  w.reserve.store(as_reserve, std::memory_order_relaxed);
  w.on_duty.store(true, std::memory_order_relaxed);
  if (!as_reserve) spares_active_.fetch_add(1, std::memory_order_relaxed);
  w.wake_token.store(1, std::memory_order_release);
  futex_wake(w.wake_token);
}

bool monitor::retire(worker& w) noexcept {
  if (all_.ending.load(std::memory_order_relaxed) || w.timers.next_ns() != timer_queue::never) return false;
  std::uint32_t active = spares_active_.load(std::memory_order_relaxed);
  do {
    if (active <= spares_wanted_.load(std::memory_order_relaxed)) return false;
  } while (!spares_active_.compare_exchange_weak(active, active - 1, std::memory_order_relaxed));
  if (w.searching) sleeping_.end_search(w);
  leave_duty(w);
  return true;
}

/// Returns when it was called back, or the runtime ended. Others may have gone to sleep while this one had the role of
/// the event source (E5), so one of them looks whether it is free.
void monitor::leave_duty(worker& w) noexcept {
  w.stacks.flush();
  w.blocks.flush();
  if (!RAMIE_PLANT(call_back_missed)) w.wake_token.store(0, std::memory_order_relaxed);
  w.on_duty.store(false, std::memory_order_release);
  if (RAMIE_PLANT(call_back_missed)) {
    os_sleep(3 * busy_tick_ns);  // so that a round of the monitor falls into it
    w.wake_token.store(0, std::memory_order_relaxed);
  }
  if (!RAMIE_PLANT(source_left_alone)) sleeping_.wake_one();
  // The reserve may be called in the moment in which it leaves (V4): that alone does not end it.
  do {
    while (w.wake_token.exchange(0, std::memory_order_acquire) == 0) futex_wait(w.wake_token, 0);
  } while (!w.on_duty.load(std::memory_order_relaxed) && !all_.ending.load(std::memory_order_relaxed));
}

}  // namespace ramie::detail
