// Who runs what: where a new or a woken piece of work goes.
//
// The hot paths decide two cases by themselves: what a worker wakes and ran itself goes into its own ready queue
// (`worker::wakes_here`), and what it spawns goes into its own spawn deque (`worker::spawns_here`). All else comes
// here. By placement:
//
//   work_stealing         new: here. Woken: at its home or here, as spread.hpp has it, or affinity.hpp has learned; from
//                         outside: injected.
//   stealing_no_affinity  new and woken: here; from outside: injected.
//   shared_queue          all goes through the injection queue, and everybody takes from there.
//   round_robin           new and woken: to the workers in turn, into their inboxes. Nobody steals.
//   dedicated             new: to the workers in turn; woken: to the same worker for ever. Nobody steals.
//   a policy of the user's own: it gets all.
//
// Before all that: what is pinned goes to its worker. Who takes from an inbox puts it back there, and thieves leave a
// ready queue alone while something pinned is next.
#include <ramie/sched/affinity.hpp>
#include <ramie/sched/policy.hpp>
#include <ramie/sched/scheduler.hpp>

#include <ramie/base/error.hpp>
#include <ramie/sched/cycles.hpp>

#include <sched.h>

#include <bit>
#include <new>
#include <string>

namespace ramie {

int runnable::priority() const noexcept {
  const detail::task_extras* extras = detail::task_of(item_)->extras.load(std::memory_order_acquire);
  return extras == nullptr ? 0 : extras->priority;
}

std::string_view runnable::name() const noexcept { return detail::name_of(detail::task_of(item_)); }

int runnable::last_worker() const noexcept {
  const detail::worker* home = detail::task_of(item_)->home.load(std::memory_order_relaxed);
  return home == nullptr ? -1 : static_cast<int>(home->number);
}

namespace detail {

namespace {

/// A fiber that has not begun.
bool is_new(ready_item item) noexcept {
  if (!item.is_resident()) return false;
  const task& t = *item.as_resident();
  return t.type->kind == task_kind::fiber && t.where.load(std::memory_order_relaxed) == nullptr;
}

/// The learner is not even asked: a comparison counts and times what was done as it said.
void call_off(resident& r) noexcept {
  if (!r.learner.is_watching()) return;
  r.learner.call_off();
  r.flags.fetch_and(~task::timed_flag, std::memory_order_relaxed);
}

bool learned_to_go_home(resident& r) noexcept {
  const bool goes = r.learner.goes_home();
  if (r.learner.is_watching()) r.flags.fetch_or(task::timed_flag, std::memory_order_relaxed);
  return goes;
}

}  // namespace

/// Woken by another worker than its home. The caller is the one to make it ready.
bool scheduler::goes_home(ready_item item, const worker& home) const noexcept {
  const bool all_do = at_home_.load(std::memory_order_relaxed);
  const bool can =
      !home.spare && !home.idle.load(std::memory_order_relaxed) && !home.still.load(std::memory_order_relaxed);
  resident* r = as_long_lived(item);
  if (r == nullptr) return can && all_do;
  if (can && !all_do && together_.load(std::memory_order_relaxed) == nullptr) return learned_to_go_home(*r);
  call_off(*r);
  return can && all_do;
}

void scheduler::set_up_placement() noexcept {
  const bool by_policy = options_.policy != nullptr;
  const placement p = options_.placement;
  steals_ = by_policy || (p != placement::round_robin && p != placement::dedicated);
  const bool moves = !by_policy && !options_.migrate_always && regular_ > 1 &&
                     (p == placement::work_stealing || p == placement::stealing_no_affinity);
  const bool is_told = moves && p == placement::work_stealing && options_.spreading != spreading::automatic;
  adapts_ = moves && !is_told;
  begins_together_ = is_told && options_.spreading == spreading::together;
  if (is_told) {
    at_home_.store(options_.spreading == spreading::at_home, std::memory_order_relaxed);
    spread_.store(options_.spreading != spreading::together, std::memory_order_relaxed);
  }
  wakes_here_ = !by_policy && !options_.migrate_always && p != placement::shared_queue && p != placement::round_robin;
  spread_control_ = spread_control{p == placement::work_stealing};
  spawns_here_ = !by_policy && (p == placement::work_stealing || p == placement::stealing_no_affinity);
}

void scheduler::set_up_topology() {
  // Of two workers neither has a choice. The simulated scheduler's workers are nowhere.
  const bool described = !options_.topology.empty();
  if (described) topology_ = topology::of_text(options_.topology);
  if (regular_ <= 2 || RAMIE_INTERLEAVE) return;
  if (!described) topology_ = topology::of_machine();
  near_first_ = topology_.has_rings();
}

worker& scheduler::next_in_turn(worker* here) noexcept {
  const std::uint32_t turn =
      here != nullptr ? here->number + ++here->dealt : dealt_outside_.fetch_add(1, std::memory_order_relaxed);
  return at(turn % regular_);
}

void scheduler::post(worker& to, ready_item item) noexcept {
  if (RAMIE_PLANT(inbox_announced_early) && !to.idle.load(std::memory_order_relaxed)) return to.sent.push(item);
  to.sent.push(item);
  light_fence();
  if (to.idle.load(std::memory_order_relaxed)) idle.wake(to);
}

void scheduler::place_outside(ready_item item) noexcept {
  // Once pushed, it may run, end, and let the runtime end: `outsiders_` keeps this object until we are through.
  outsiders_.fetch_add(1, std::memory_order_acquire);
  place(nullptr, item);
  outsiders_.fetch_sub(1, std::memory_order_release);
}

void scheduler::place(worker* here, ready_item item) noexcept {
  if (here != nullptr ? here->watched.load(std::memory_order_relaxed) != nullptr
                      : watched_outside_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (here != nullptr) observe_wake(here, item);
    else observe_outside(outside_, item);
  }
  task& t = *task_of(item);
  const std::uint32_t flags = t.flags.load(std::memory_order_relaxed);
  worker* home = t.home.load(std::memory_order_relaxed);
  const bool fresh = is_new(item);
  const auto keep = [&] {
    if (fresh) {
      accept(here, item);
      return published_ready(here);
    }
    here->wakes.add();
    if (home != here) {
      here->migrations.add();
      here->count_crossed();
    }
    here->ready.push(item);
    published_ready(here);
  };
  const auto send = [&](worker& to) {
    if (&to == here) return keep();
    if (here != nullptr && !fresh) {
      here->wakes_elsewhere.add();
      here->count_crossed();
    }
    post(to, item);
  };
  if ((flags & task::pinned_flag) != 0) return send(*home);
  if (options_.policy != nullptr) {
    options_.policy->put(runnable{item}, here == nullptr ? -1 : static_cast<int>(here->number));
    wake_for_injection();
    return;
  }
  switch (options_.placement) {
    case placement::round_robin: return send(next_in_turn(here));
    case placement::dedicated:
      if (home == nullptr || home->spare) t.home.store(home = &next_in_turn(here), std::memory_order_relaxed);
      return send(*home);
    case placement::work_stealing:
    case placement::stealing_no_affinity:
      if (here == nullptr || options_.migrate_always) break;
      if (options_.placement == placement::work_stealing && home != nullptr && home != here && !fresh &&
          (flags & task::homeless_flag) == 0 && goes_home(item, *home))
        return send(*home);
      return keep();
    case placement::shared_queue: break;
  }
  if (RAMIE_PLANT(injection_unannounced)) wake_for_injection();
  if (fresh) injected_.push_new(&t);
  else injected_.push(item);
  if (!RAMIE_PLANT(injection_unannounced)) wake_for_injection();
}

void scheduler::submit_elsewhere(worker* w, task* t) {
  if (w->draining.load(std::memory_order_relaxed)) refuse_spawn();
  w->started.add();
  place(w, ready_item{t});
}

void scheduler::pin(task& t, int to, const char* option) const {
  if (to < 0 || to >= static_cast<int>(regular_))
    throw invalid_argument{"ramie: " + std::string{option} + " is " + std::to_string(to) + "; runtime \"" +
                           options_.name + "\" has workers 0 to " + std::to_string(regular_ - 1)};
  t.home.store(workers_[static_cast<std::size_t>(to)].load(std::memory_order_acquire), std::memory_order_relaxed);
  t.flags.fetch_or(task::pinned_flag, std::memory_order_relaxed);
}

void scheduler::give_home(task& t, worker* here) noexcept {
  t.home.store(options_.placement == placement::dedicated ? &next_in_turn(here) : here, std::memory_order_relaxed);
}

void scheduler::hand_over(worker* w) noexcept {
  worker* to = together_.load(std::memory_order_relaxed);
  // Those who compute for long need not be together.
  if (to == nullptr || to == w || to->still.load(std::memory_order_relaxed) ||
      w->slice.load(std::memory_order_relaxed) > cycles_in_us(still_us))
    return;
  open_inbox(w);
  std::size_t moved = 0;
  const auto send = [&] {
    take_mailboxes(to, w->loot.data(), moved);
    w->migrations.add(moved);
    for (std::size_t i = 0; i < moved; ++i) post(*to, w->loot[i]);
    moved = 0;
  };
  for (std::size_t left = w->ready.size(); left != 0; --left) {
    const ready_item item = w->ready.pop();
    if (!item) break;
    if (is_movable(item)) w->loot[moved++] = item;
    else w->ready.push(item);
    if (moved == w->loot.size()) send();
  }
  send();
}

bool scheduler::leaves_new_tasks(const worker& of) noexcept {
  const std::uint64_t until = of.leave_new_until.load(std::memory_order_relaxed);
  return until != 0 && cycles() < until;
}

void scheduler::note_place(worker* w) const noexcept {
  const int cpu = options_.topology.empty() ? ::sched_getcpu() : static_cast<int>(w->number % topology_.cpus());
  w->place.store(std::bit_cast<std::uint64_t>(topology_.at(cpu)), std::memory_order_relaxed);
}

void scheduler::open_inbox(worker* w) noexcept {
  if (w->sent.empty()) return;
  for (ready_item item = w->sent.take_all(); item;) {
    const ready_item next = item.next();
    accept(w, item);
    item = next;
  }
  published_ready(w);
}

void scheduler::accept(worker* w, ready_item item) noexcept {
  // New tasks are worked off depth first, like a worker's own; but nobody may steal what is pinned.
  if (is_new(item) && is_movable(item)) {
    try {
      w->spawned.push(item.as_resident());
      return;
    } catch (const std::bad_alloc&) {
      // The ready queue always has room.
    }
  }
  w->ready.push(item);
}

work scheduler::take_by_policy(worker* w) noexcept {
  if (const runnable r = options_.policy->take(static_cast<int>(w->number)))
    return r.item_.is_resident() ? work{.start = r.item_.as_resident()} : work{.resume = r.item_.as_stack()};
  return {};
}

}  // namespace detail

}  // namespace ramie
