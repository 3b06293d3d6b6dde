#include <ramie/sched/stealing.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/machine/backoff.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/task/timer_queue.hpp>
#include <ramie/worker/observing.hpp>

#include <algorithm>
#include <array>
#include <new>

namespace ramie::detail {

namespace {

constexpr std::uint32_t anywhere_every = 16;  // searches; a guess
constexpr std::uint64_t still_task_us = 5;    // of a single new task: nothing ties it to its worker. A guess

// The monitor and the system interrupt a worker for some 20 us each millisecond; with 20 us here, thieves took actors
// from home all the time.
constexpr std::uint64_t still_at_home_us = 100;

}  // namespace

work stealer::search(worker& w, bool woken) noexcept {
  w.stealing.begin_search(cycles(), all_.size());
  const work next = look_around(w, woken);
  w.stealing.end_search(cycles());
  if (next || w.ready.size() != 0 || !w.sent.empty()) w.stealing.found();
  return next;
}

work stealer::look_around(worker& w, bool woken) noexcept {
  thief& t = w.stealing;
  if (const std::uint64_t leave = t.judge.nothing_left(t.began(), w.dispatches.value()); leave != 0)
    t.last_victim->leave_new_until.store(t.began() + leave, std::memory_order_relaxed);
  // Now and then without regard to distance: else a worker far from all that are idle would only ever be helped when
  // those near them have nothing.
  const bool by_rings = all_.near_first && all_.steals && ++t.searches % anywhere_every != 0;
  if (by_rings) {
    all_.note_place(w);
    t.victims.arrange(all_.map, w.last_place(), w.number, static_cast<std::uint32_t>(all_.size()),
                      [this](std::uint32_t i) { return all_.at(i).last_place(); });
  }
  const std::uint64_t most = patience(w, woken);
  for (int round = 0; t.searching_for(cycles()) < most; ++round) {
    if (!w.sent.empty() || events_.poll()) return {};
    if (all_.options.policy != nullptr)
      if (work next = placing_.take_by_policy(w)) return next;
    if (work next = placing_.take_injected(w, false)) return next;
    if (by_rings) {
      if (work next = t.victims.try_all(w.random, [&](std::uint32_t number) { return try_victim(w, number); }))
        return next;
    } else {
      const auto n = all_.steals ? static_cast<std::uint32_t>(all_.size()) : 0u;
      const std::uint32_t start = n == 0 ? 0 : w.random.below(n);
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t number = (start + i) % n;
        if (number == w.number) continue;
        if (work next = try_victim(w, number)) return next;
      }
    }
    if (all_.ending.load(std::memory_order_relaxed)) return {};
    for (int pause = 0; pause < (round < 5 ? 1 << round : 32); ++pause) spin_pause();
  }
  return {};
}

RAMIE_ALWAYS_INLINE work stealer::try_victim(worker& w, std::uint32_t number) noexcept {
  worker& victim = all_.at(number);
  const std::uint64_t dispatches = victim.dispatches.value();
  const std::uint64_t spawned = victim.started.value();
  const thief::standstill seen = w.stealing.look_at(number, dispatches, spawned, cycles());
  // A worker that the system has interrupted continues soon, and what has its home there is better off waiting for it.
  const bool stands_still = seen.still > cycles_in_us(all_.way.at_home() ? still_at_home_us : still_us);
  work next;
  if (victim.has_fork_jobs()) next = steal_fork_job(w, victim);
  if (!next) next = steal_new_tasks(w, victim, seen.idle > cycles_in_us(still_task_us));
  if (!next) next = steal_ready(w, victim, stands_still);
  if (!next && stands_still && !victim.sent.empty()) next = steal_sent(w, victim);
  if (!next) return next;
  w.steals_done.add();
  if (w.observed.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_steal(&w, number, 1 + w.spawned.size() + w.ready.size());  // its own queues were empty
  return next;
}

/// T1 to T6 of fork_deque.hpp.
work stealer::steal_fork_job(worker& w, worker& victim) noexcept {
  if (!victim.thieves.try_lock()) return {};
  w.steals_tried.add();
  work next;
  if (fork_frame* f = fork_steal(victim); f != nullptr) {
    next.job = f;
    // The victim can neither leave the fiber that forked the job nor find it stolen without taking `thieves`.
    next.job_run = f->state.load_relaxed();
    next.job_owner = victim.running_task();
  }
  victim.thieves.unlock();
  return next;
}

work stealer::steal_new_tasks(worker& w, worker& victim, bool stands_still) noexcept {
  if (victim.spawned.size() < (stands_still ? 1u : 2u) || (!stands_still && leaves_new_tasks(victim))) return {};
  w.steals_tried.add();
  std::array<task*, spawn_deque::steal_most> tasks;
  const std::size_t n = victim.spawned.steal(tasks.data());
  if (n == 0) return {};
  if (!stands_still) {
    w.stealing.judge.stole(cycles(), w.dispatches.value(), n);
    w.stealing.last_victim = &victim;
  }
  // The oldest runs here; the others, oldest deepest, keep their order. A deque without memory to grow hands back to
  // all.
  for (std::size_t i = 1; i < n; ++i) {
    try {
      w.spawned.push(tasks[i]);
    } catch (const std::bad_alloc&) {
      placing_.inject_new(tasks[i]);
    }
  }
  return {.start = tasks[0]};
}

work stealer::steal_ready(worker& w, worker& victim, bool stands_still) noexcept {
  const std::size_t most = may_take(w, victim, stands_still);
  if (most == 0) return {};
  w.steals_tried.add();
  auto& stolen = w.stealing.stolen;
  const std::size_t n = victim.ready.steal_half(stolen.data(), most);
  if (n == 0) return {};
  w.migrations.add(n);
  if (all_.way.at_home()) w.stealing.begin_window(cycles(), all_.size(), searched_of());
  placer::take_mailboxes(w, stolen.data(), n);
  for (std::size_t i = 1; i < n; ++i) w.ready.push(stolen[i]);
  return to_work(stolen[0]);
}

work stealer::steal_sent(worker& w, worker& victim) noexcept {
  w.steals_tried.add();
  auto& stolen = w.stealing.stolen;
  std::size_t n = 0;
  const auto keep = [&] {
    placer::take_mailboxes(w, stolen.data(), n);
    w.migrations.add(n);
    for (std::size_t i = 0; i < n; ++i) placer::accept(w, stolen[i]);
    n = 0;
  };
  placing_.take_from_inbox(victim, [&](ready_item item) {
    stolen[n++] = item;
    if (n == stolen.size()) keep();
  });
  keep();
  if (const ready_item item = w.ready.pop()) return to_work(item);
  return {.start = w.spawned.pop()};
}

/// How many ready items, of a half, the thief may take. Where everything has a home it must be short of work in
/// earnest, and takes a quarter: else each moment of want would move what is well where it is.
std::size_t stealer::may_take(worker& by, const worker& victim, bool stands_still) noexcept {
  const std::size_t queued = victim.ready.size();
  if (queued == 0 || stands_still) return queued;
  if (!worth_moving(all_, victim, queued)) return 0;
  if (!all_.way.at_home()) return queued;
  return by.stealing.is_short_of_work(victim.number, cycles(), all_.size(), searched_of()) ? (queued + 3) / 4 : 0;
}

std::uint64_t stealer::patience(const worker& w, bool woken) const noexcept {
  const std::uint64_t most = w.stealing.patience(all_.way.at_home() || !all_.steals, woken);
  const std::int64_t due = w.timers.next_ns();
  if (due == timer_queue::never) return most;
  const std::int64_t left = due - now_ns();
  if (left <= 0) return 0;
  constexpr std::int64_t far_ns = thief::search_at_home_us * 1000;
  return std::min(most, cycles_in_ns(static_cast<std::uint64_t>(std::min(left, far_ns))));
}

bool stealer::lingers(worker& w, bool woken) noexcept {
  if (all_.steals && !all_.way.at_home()) return false;
  const std::uint64_t most = patience(w, woken);
  for (const std::uint64_t begun = cycles(); cycles() - begun < most; spin_pause()) {
    if (!w.sent.empty() || all_.injected.size() != 0 || events_.poll() || all_.ending.load(std::memory_order_relaxed)) {
      w.stealing.found();
      return true;
    }
  }
  return false;
}

}  // namespace ramie::detail
