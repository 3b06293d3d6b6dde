#include <ramie/sched/placement.hpp>

#include <ramie/base/error.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/queue/adaptive_lock.hpp>
#include <ramie/sched/policy.hpp>
#include <ramie/worker/observing.hpp>
#include <ramie/worker/resident.hpp>

#include <array>
#include <new>
#include <string>

namespace ramie {

int runnable::priority() const noexcept {
  // A strand that was given none has that of the fiber for which it runs.
  for (const detail::task* t = detail::task_of(item_); t != nullptr; t = t->parent) {
    const detail::task_extras* extras = t->extras.load(std::memory_order_acquire);
    if (extras != nullptr && extras->priority != 0) return extras->priority;
    if ((t->flags.load(std::memory_order_relaxed) & detail::task::strand_flag) == 0) break;
  }
  return 0;
}

std::string_view runnable::name() const noexcept { return detail::name_of(detail::task_of(item_)); }

int runnable::last_worker() const noexcept {
  const detail::worker* home = detail::home_of(*detail::task_of(item_));
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

}  // namespace

/// What another worker than its home woke.
bool placer::goes_home(const worker& home) const noexcept {
  return all_.way.at_home() && !home.spare && !home.idle.load(std::memory_order_relaxed) &&
         !home.still.load(std::memory_order_relaxed);
}

placer::placer(crew& all, sleeper& sleeping, recorder& seen) noexcept : all_{all}, sleeping_{sleeping}, seen_{seen} {
  const bool by_policy = all.options.policy != nullptr;
  const placement p = all.options.placement;
  const bool moves = !by_policy && !all.test.migrate_always && all.regular > 1 && p != placement::dedicated;
  const bool is_told = moves && p == placement::work_stealing && all.test.spreading != spreading::automatic;
  begins_together_ = is_told && all.test.spreading == spreading::together;
  if (is_told) {
    if (all.test.spreading == spreading::at_home) all.way.set(spread_control::mode::at_home, nullptr);
    if (all.test.spreading == spreading::by_waker) all.way.set(spread_control::mode::spread, nullptr);
  }
  wakes_here_ = !by_policy && !all.test.migrate_always;
  spawns_here_ = !by_policy && p != placement::dedicated;
  adapts_ = moves && !is_told;
}

worker& placer::next_in_turn(worker* here) noexcept {
  const std::uint32_t turn =
      here != nullptr ? here->number + ++here->dealt : dealt_outside_.fetch_add(1, std::memory_order_relaxed);
  return all_.at(turn % all_.regular);
}

void placer::post(worker& to, ready_item item) noexcept {
  if (RAMIE_PLANT(inbox_announced_early) && !to.idle.load(std::memory_order_relaxed)) return to.sent.push(item);
  to.sent.push(item);
  sleeping_.published_to(to);
}

void placer::inject(ready_item item) noexcept {
  if (RAMIE_PLANT(injection_unannounced)) sleeping_.published_to_all();
  all_.injected.push(item);
  if (!RAMIE_PLANT(injection_unannounced)) sleeping_.published_to_all();
}

void placer::inject_new(task* t) noexcept {
  if (RAMIE_PLANT(injection_unannounced)) sleeping_.published_to_all();
  all_.injected.push_new(t);
  if (!RAMIE_PLANT(injection_unannounced)) sleeping_.published_to_all();
}

void placer::keep(worker& here, ready_item item, const worker* home) noexcept {
  if (is_new(item)) {
    accept(here, item);
  } else {
    here.wakes.add();
    if (home != &here) {
      here.migrations.add();
      here.count_crossed();
    }
    here.ready.push(item);
  }
  sleeping_.published_ready(&here);
}

void placer::send(worker* here, worker& to, ready_item item) noexcept {
  if (&to == here) return keep(to, item, &to);
  if (here != nullptr && !is_new(item)) {
    here->wakes_elsewhere.add();
    here->count_crossed();
  }
  post(to, item);
}

void placer::place(worker* here, ready_item item) noexcept {
  if (here == nullptr) seen_.woken_outside(item);
  else if (here->observed.load(std::memory_order_relaxed) != nullptr) [[unlikely]] observe_wake(here, item);
  task& t = *task_of(item);
  const std::uint32_t flags = t.flags.load(std::memory_order_relaxed);
  worker* home = home_of(t);
  if ((flags & task::pinned_flag) != 0) return send(here, *home, item);
  if (all_.options.policy != nullptr) {
    all_.options.policy->put(runnable{item}, here == nullptr ? -1 : static_cast<int>(here->number));
    return sleeping_.published_to_policy();
  }
  if (all_.options.placement == placement::dedicated) {
    if (home == nullptr || home->spare) t.home.store(home = &next_in_turn(here), std::memory_order_relaxed);
    return send(here, *home, item);
  }
  const bool fresh = is_new(item);
  if (here != nullptr && !all_.test.migrate_always) {
    if (all_.options.placement == placement::work_stealing && home != nullptr && home != here && !fresh &&
        (flags & task::homeless_flag) == 0 && goes_home(*home))
      return send(here, *home, item);
    return keep(*here, item, home);
  }
  if (fresh) inject_new(&t);
  else inject(item);
}

void placer::pin(task& t, int to, const char* option) const {
  if (to < 0 || to >= static_cast<int>(all_.regular))
    throw invalid_argument{"ramie: " + std::string{option} + " is " + std::to_string(to) + "; runtime \"" +
                           all_.options.name + "\" has workers 0 to " + std::to_string(all_.regular - 1)};
  t.home.store(&all_.at(static_cast<std::size_t>(to)), std::memory_order_relaxed);
  t.flags.fetch_or(task::pinned_flag, std::memory_order_relaxed);
}

void placer::give_home(task& t, worker* here) noexcept {
  t.home.store(all_.options.placement == placement::dedicated ? &next_in_turn(here) : here, std::memory_order_relaxed);
}

void placer::hand_over(worker& w) noexcept {
  worker* to = all_.way.together();
  // Fibers that compute for long need not be together.
  if (to == nullptr || to == &w || to->still.load(std::memory_order_relaxed) ||
      w.slice.load(std::memory_order_relaxed) > cycles_in_us(still_us))
    return;
  open_inbox(w);
  std::size_t moved = 0;
  const auto send_some = [&] {
    take_mailboxes(*to, w.stealing.stolen.data(), moved);
    w.migrations.add(moved);
    for (std::size_t i = 0; i < moved; ++i) post(*to, w.stealing.stolen[i]);
    moved = 0;
  };
  for (std::size_t left = w.ready.size(); left != 0; --left) {
    const ready_item item = w.ready.pop();
    if (!item) break;
    if (is_movable(item)) w.stealing.stolen[moved++] = item;
    else w.ready.push(item);
    if (moved == w.stealing.stolen.size()) send_some();
  }
  send_some();
}

void placer::take_mailboxes(worker& to, const ready_item* items, std::size_t n) noexcept {
  std::array<adaptive_lock*, adaptive_lock::deprived_most> locks;  // few: it is a loop's stack
  std::size_t residents = 0;
  const auto take = [&] {
    if (residents > 1) worker::current()->count_moved(adaptive_lock::deprive_all(locks.data(), residents, &to));
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

// ---- taking it up --------------------------------------------------------------------------------------------------

void placer::open_inbox(worker& w) noexcept {
  if (w.sent.empty()) return;
  for (ready_item item = w.sent.take_all(); item;) {
    const ready_item next = item.next();
    accept(w, item);
    item = next;
  }
  sleeping_.published_ready(&w);
}

void placer::accept(worker& w, ready_item item) noexcept {
  // New tasks are worked off depth first, like a worker's own; but what is pinned may not be stolen.
  if (is_new(item) && is_movable(item)) {
    try {
      w.spawned.push(item.as_resident());
      return;
    } catch (const std::bad_alloc&) {
      // The ready queue always has room.
    }
  }
  w.ready.push(item);
}

work placer::take_injected(worker& w, bool tasks_first) noexcept {
  if (all_.injected.size() == 0) return {};
  const bool migrate = all_.test.migrate_always && all_.regular > 1;
  const injector::item item = all_.injected.pop(tasks_first, [&](const stack& s) {
    return !migrate || home_of(*static_cast<const task*>(s.occupant.load(std::memory_order_relaxed))) != &w;
  });
  if (item) w.injected.add();
  else if (migrate) sleeping_.wake_another();  // what is there is for another worker
  return {.resume = item.resume, .start = item.start};
}

work placer::take_woken(worker& w) noexcept {
  const injector::item item = all_.injected.pop_woken();
  if (item) w.injected.add();
  return {.resume = item.resume, .start = item.start};
}

void placer::give_away(worker& w) noexcept {
  bool any = false;
  while (const ready_item item = w.ready.pop()) {
    all_.injected.push(item);
    any = true;
  }
  while (task* const t = w.spawned.pop()) {
    all_.injected.push_new(t);
    any = true;
  }
  if (any) sleeping_.published_to_all();
}

work placer::take_by_policy(worker& w) noexcept {
  if (const runnable r = all_.options.policy->take(static_cast<int>(w.number)))
    return r.item_.is_resident() ? work{.start = r.item_.as_resident()} : work{.resume = r.item_.as_stack()};
  return {};
}

}  // namespace detail

}  // namespace ramie
