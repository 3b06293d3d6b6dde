// How a worker that has nothing left looks for work: its inbox, the injection queue, the others' queues.
//
// What a thief takes: the oldest fork job, new tasks, a half of what is ready (when that is worth it, and when ready
// work has a home: see scheduler.cpp and spread.hpp), and what lies in the inbox of a worker that stands still.
#include <ramie/sched/scheduler.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/sched/adaptive_lock.hpp>
#include <ramie/sched/backoff.hpp>
#include <ramie/sched/cycles.hpp>
#include <ramie/sched/inbox_theft.hpp>
#include <ramie/sched/policy.hpp>
#include <ramie/sched/resident.hpp>
#include <ramie/sched/timer_queue.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace ramie::detail {

namespace {

constexpr int search_rounds_most = 1000;
constexpr std::uint32_t anywhere_every = 16;  // searches; a guess
constexpr std::uint64_t search_us = 40;       // long enough to see a worker stand still
constexpr std::uint64_t search_us_most = 200;
constexpr std::int64_t longest_look_ns = 1'000'000;
constexpr std::uint64_t still_task_us = 5;  // of a single new task: nobody waits for its worker in particular

constexpr std::uint64_t still_at_home_us = 100;
constexpr std::uint64_t search_at_home_us = 150;  // long enough to see that

// Where everything has a home (is_short_of_work). Guesses: eight actors on two workers are then moved when they are
// divided as five and three, and not when one worker loses some tens of microseconds to the monitor.
constexpr std::uint64_t dry_window_us = 2000;
constexpr std::uint64_t dry_us_least = 100;
constexpr std::uint64_t dry_share_least = 8;  // an eighth of the window

}  // namespace

work scheduler::search(worker* w) noexcept {
  if (const std::uint64_t now = cycles(), leave = w->thefts.nothing_left(now, w->dispatches.value()); leave != 0)
    w->robbed->leave_new_until.store(now + leave, std::memory_order_relaxed);
  for (std::size_t i = 0; i < worker_count(); ++i) w->looks[i].forget();
  // Now and then without regard to distance: else a worker far from all that are idle would only ever be helped when
  // those near them have nothing.
  const bool by_rings = near_first_ && steals_ && ++w->searches % anywhere_every != 0;
  if (by_rings) {
    note_place(w);
    w->victims.arrange(topology_, w->last_place(), w->number, static_cast<std::uint32_t>(worker_count()),
                       [this](std::uint32_t i) { return at(i).last_place(); });
  }
  w->search_began = cycles();
  const std::uint64_t most = search_cycles_most(w);
  for (int round = 0; round < search_rounds_most && cycles() - w->search_began < most; ++round) {
    if (!w->sent.empty()) return {};
    if (options_.policy != nullptr)
      if (work next = take_by_policy(w)) return next;
    if (work next = take_injected(w, false)) return next;
    if (by_rings) {
      if (work next = w->victims.try_all(w->random, [&](std::uint32_t number) { return try_victim(w, number); }))
        return next;
    } else {
      const auto n = steals_ ? static_cast<std::uint32_t>(worker_count()) : 0u;
      const std::uint32_t start = n == 0 ? 0 : w->random.below(n);
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t number = (start + i) % n;
        if (number == w->number) continue;
        if (work next = try_victim(w, number)) return next;
      }
    }
    if (ending_.load(std::memory_order_relaxed)) return {};
    for (int pause = 0; pause < (round < 5 ? 1 << round : 32); ++pause) spin_pause();
  }
  return {};
}

RAMIE_ALWAYS_INLINE work scheduler::try_victim(worker* w, std::uint32_t number) noexcept {
  worker& victim = at(number);
  worker::look& last = w->looks[number];
  const std::uint64_t dispatches = victim.dispatches.value();
  const std::uint64_t spawned = victim.started.value();
  const std::uint64_t now = cycles();
  if (std::exchange(last.dispatches, dispatches) != dispatches) last.since = now;
  if (std::exchange(last.spawned, spawned) != spawned) last.spawned_since = now;
  work next = steal_from(w, number, now - last.since, now - std::max(last.since, last.spawned_since));
  if (next && w->watched.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_steal(w, number, 1 + w->spawned.size() + w->ready.size());  // its own queues were empty
  return next;
}

work scheduler::steal_from(worker* w, std::uint32_t number, std::uint64_t still_cycles,
                           std::uint64_t idle_cycles) noexcept {
  worker& victim = at(number);
  if (victim.has_fork_jobs() && victim.thieves.try_lock()) {
    // T1 to T6 of fork_deque.hpp.
    w->steals_tried.add();
    fork_slot* const t = victim.top.load_relaxed();
    work next;
    if (t < victim.bottom.load_acquire()) {
      victim.top.store_release(t + 1);
      if (!RAMIE_PLANT(fork_deque_no_fence)) heavy_fence();
      if (victim.bottom.load_acquire() > t) {
        next.job = t->load_relaxed();
        // The victim can neither leave the fiber that forked the job nor find it stolen without taking `thieves`.
        next.job_run = next.job->state.load_relaxed();
        next.job_owner = victim.current();
      } else {
        victim.top.store_release(t);
      }
    }
    victim.thieves.unlock();
    if (next) {
      w->steals_done.add();
      return next;
    }
  }
  if (const bool stands_still = idle_cycles > cycles_in_us(still_task_us);
      victim.spawned.size() >= (stands_still ? 1u : 2u) && (stands_still || !leaves_new_tasks(victim))) {
    w->steals_tried.add();
    std::array<task*, spawn_deque::steal_most> loot;
    const std::size_t n = victim.spawned.steal(loot.data());
    if (n > 0) {
      w->steals_done.add();
      if (!stands_still) {
        w->thefts.stole(cycles(), w->dispatches.value(), n);
        w->robbed = &victim;
      }
      // The oldest runs here; the others, oldest deepest, keep their order. A deque without memory to grow hands back
      // to all.
      for (std::size_t i = 1; i < n; ++i) {
        try {
          w->spawned.push(loot[i]);
        } catch (const std::bad_alloc&) {
          injected_.push_new(loot[i]);
        }
      }
      return {.start = loot[0]};
    }
  }
  // A worker that the system has interrupted goes on soon, and what has its home there is better off waiting for it.
  const std::uint64_t still_limit =
      cycles_in_us(at_home_.load(std::memory_order_relaxed) ? still_at_home_us : still_us);
  if (const std::size_t most = may_take(w, number, still_cycles > still_limit); most != 0) {
    w->steals_tried.add();
    const std::size_t n = victim.ready.steal_half(w->loot.data(), most);
    if (n > 0) {
      w->steals_done.add();
      w->migrations.add(n);
      if (at_home_.load(std::memory_order_relaxed)) begin_dry_window(w, cycles());
      take_mailboxes(w, w->loot.data(), n);
      for (std::size_t i = 1; i < n; ++i) w->ready.push(w->loot[i]);
      return to_work(w->loot[0]);
    }
  }
  if (still_cycles > still_limit && !victim.sent.empty()) {
    w->steals_tried.add();
    std::size_t n = 0;
    const auto keep = [&] {
      take_mailboxes(w, w->loot.data(), n);
      w->migrations.add(n);
      for (std::size_t i = 0; i < n; ++i) accept(w, w->loot[i]);
    };
    bool any = false;
    take_from_inbox(victim, [&](ready_item item) {
      any = true;
      w->loot[n++] = item;
      if (n < w->loot.size()) return;
      keep();
      n = 0;
    });
    keep();
    if (any) {
      w->steals_done.add();
      if (const ready_item item = w->ready.pop()) return to_work(item);
      if (task* t = w->spawned.pop(); t != nullptr) return {.start = t};
    }
  }
  return {};
}

/// How many ready items, of a half, the thief may take. Where everything has a home it must be short of work in
/// earnest, and takes a quarter: else each moment of want would move somebody who is well where it is.
std::size_t scheduler::may_take(worker* thief, std::uint32_t number, bool stands_still) noexcept {
  const worker& victim = at(number);
  const std::size_t queued = victim.ready.size();
  if (queued == 0 || stands_still) return queued;
  if (!worth_moving(victim, queued)) return 0;
  if (!at_home_.load(std::memory_order_relaxed)) return queued;
  return is_short_of_work(thief, number) ? (queued + 3) / 4 : 0;
}

/// Has it looked for work for so much longer than the other, of late, that this is more than chance, or than what the
/// system takes from one of them now and then? Of what is alike a part must stay unlike: of eight actors none can be
/// moved where one half of an actor is too much.
bool scheduler::is_short_of_work(worker* w, std::uint32_t than) noexcept {
  const std::uint64_t now = cycles();
  if (now - w->dry_since > cycles_in_us(dry_window_us)) {
    begin_dry_window(w, now);
    return false;
  }
  const std::uint64_t own = w->dry.load(std::memory_order_relaxed) + (now - w->search_began) - w->dry_then;
  const std::uint64_t other = at(than).dry.load(std::memory_order_relaxed) - w->looks[than].dry_then;
  return own > other + cycles_in_us(dry_us_least) + (now - w->dry_since) / dry_share_least;
}

void scheduler::begin_dry_window(worker* w, std::uint64_t now) noexcept {
  w->dry_since = now;
  w->dry_then = w->dry.load(std::memory_order_relaxed) + (now - w->search_began);
  for (std::uint32_t i = 0; i < worker_count(); ++i) w->looks[i].dry_then = at(i).dry.load(std::memory_order_relaxed);
}

/// Each mailbox that its former worker owned would cost a heavy fence at its first use by `to`.
void scheduler::take_mailboxes(worker* to, const ready_item* items, std::size_t n) noexcept {
  std::array<adaptive_lock*, adaptive_lock::deprived_most> locks;  // few: it is a loop's stack
  std::size_t residents = 0;
  const auto take = [&] {
    if (residents > 1) current_forks()->count_moved(adaptive_lock::deprive_all(locks.data(), residents, to));
    residents = 0;
  };
  for (std::size_t i = 0; i < n; ++i) {
    resident* r = as_long_lived(items[i]);
    if (r == nullptr) continue;
    locks[residents++] = &r->lock;
    if (residents == locks.size()) take();
  }
  take();
}

// ---- falling asleep ------------------------------------------------------------------------------------------------

/// Where work goes home, whoever sends something to a sleeping worker waits for it to wake up, and had better not fall
/// asleep over that: else two that send each other what they do sleep in turns, for ever.
std::uint64_t scheduler::search_cycles_most(worker* w) const noexcept {
  const bool at_home = at_home_.load(std::memory_order_relaxed);
  std::uint64_t most = cycles_in_us(search_us);
  if (!steals_ || at_home)
    most = std::clamp(2 * w->wake_cycles, cycles_in_us(at_home ? search_at_home_us : search_us),
                      cycles_in_us(search_us_most));
  const std::int64_t due = w->timers.next_ns();
  if (due == timer_queue::never) return most;
  const std::int64_t left = due - now_ns();
  return left <= 0 ? 0 : std::min(most, cycles_in_ns(static_cast<std::uint64_t>(std::min(left, longest_look_ns))));
}

void scheduler::note_wake(worker* w) noexcept {
  if (w->wake_token.load(std::memory_order_acquire) == 0) return;
  const std::uint64_t took = cycles() - w->wake_called.load(std::memory_order_relaxed);
  // That was another program's doing: to look for longer would take even more of the processor from it.
  if (took > cycles_in_us(search_us_most)) return;
  w->wake_cycles = (3 * w->wake_cycles + took) / 4;
}

/// For who may not search, since others do. Where work goes home something may be on its way here all the same, sent by
/// one of them.
bool scheduler::lingers(worker* w) noexcept {
  if (steals_ && !at_home_.load(std::memory_order_relaxed)) return false;
  const std::uint64_t most = search_cycles_most(w);
  for (const std::uint64_t begun = cycles(); cycles() - begun < most; spin_pause())
    if (!w->sent.empty() || injected_.size() != 0 || ending_.load(std::memory_order_relaxed)) return true;
  return false;
}

}  // namespace ramie::detail
