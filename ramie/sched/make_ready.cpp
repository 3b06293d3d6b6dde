// Where what was woken goes: the ready queue of the calling worker, if it ran there last; else placement.cpp decides.
// And how residents come to a scheduler, and go (residents.hpp).
#include <ramie/task/clean_up.hpp>
#include <ramie/task/scheduling.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/machine/fence.hpp>
#include <ramie/sched/residents.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/worker/observing.hpp>
#include <ramie/worker/worker.hpp>

namespace ramie::detail {

namespace {
RAMIE_ALWAYS_INLINE void make_item_ready(ready_item item, worker* home) noexcept {
  worker* w = worker::current();
  if (w == home && w->wakes_here) [[likely]] {
    if (w->observed.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      observe_wake(w, item);
    w->wakes.add();
    if (!w->ready.try_push(item)) [[unlikely]]
      w->ready.push(item);
    w->owner->sleeping.published_ready(w);
  } else if (w != nullptr && w->owner == home->owner) {
    home->owner->placing.place(w, item);
  } else {
    home->owner->place_outside(item);
  }
}
}  // namespace

void make_ready(stack* s) noexcept {
  make_item_ready(s, home_of(*static_cast<task*>(s->occupant.load(std::memory_order_relaxed))));
}

void make_resident_ready(task& t) noexcept { make_item_ready(&t, home_of(t)); }

void make_resident_ready_from(task& t, worker_base* me) noexcept {
  auto* w = static_cast<worker*>(me);
  if (t.home.load(std::memory_order_relaxed) != me || !w->wakes_here ||
      w->observed.load(std::memory_order_relaxed) != nullptr || !w->ready.try_push(&t)) [[unlikely]]
    return make_resident_ready(t);
  w->wakes.add();
  compiler_fence();  // I2: try_push does nothing where fences are not asymmetric
  if (w->owner->sleeping.hint()) [[unlikely]]
    w->owner->sleeping.published_ready(w);
}

// ---- residents -----------------------------------------------------------------------------------------------------

void refuse_when_draining(const worker_base& w) {
  if (!w.draining.load(std::memory_order_relaxed)) [[likely]]
    return;
  static_cast<void>(w.draining.load(std::memory_order_acquire));  // for the caller, as in wait::look_at_limits
  if (!limits_here().shielded) begin_again([] {});
}

void prepare_resident(resident& r) {
  worker* w = worker::current();
  if (w == nullptr) [[unlikely]]
    throw usage_error{"ramie: spawn_actor: this thread belongs to no runtime; call it from within ramie::run"};
  refuse_when_draining(*w);
  w->owner->placing.give_home(r, w);
}

void pin_resident(resident& r, int to) { home_of(r)->owner->placing.pin(r, to, "actor_options::worker"); }

void enlist_resident(resident& r) {
  worker* w = worker::current();
  refuse_when_draining(*w);
  w->started.add();
  w->residents.add(r);
}

void strike_resident(resident& r) noexcept {
  r.listed_in->remove(r);
  worker::current()->finished.add();
}

bool is_draining() noexcept {
  const worker* w = worker::current();
  return w != nullptr && w->draining.load(std::memory_order_acquire);
}

}  // namespace ramie::detail
