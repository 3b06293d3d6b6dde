#include <ramie/sched/residents.hpp>

#include <ramie/base/error.hpp>
#include <ramie/sched/scheduler.hpp>

namespace ramie::detail {

void refuse_when_draining(const worker_base& w) {
  if (!w.draining.load(std::memory_order_relaxed)) [[likely]]
    return;
  if (static_cast<std::uint32_t>(w.exceptions->uncaught) == 0 && !limits_of(*w.task_on_stack()).shielded)
    throw cancelled{};
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
