#include <ramie/sched/resident.hpp>

#include <ramie/base/error.hpp>
#include <ramie/sched/scheduler.hpp>

namespace ramie::detail {

namespace {
void refuse_when_draining(const worker& w) {
  if (w.draining.load(std::memory_order_relaxed)) [[unlikely]]
    throw usage_error{"ramie: spawn_actor: runtime \"" + w.owner->options().name + "\" is shutting down"};
}
}  // namespace

void prepare_resident(resident& r) {
  worker* w = current_worker();
  if (w == nullptr) [[unlikely]]
    throw usage_error{"ramie: spawn_actor: this thread belongs to no runtime; call it from within ramie::run"};
  refuse_when_draining(*w);
  w->owner->give_home(r, w);
}

void pin_resident(resident& r, int to) {
  r.home.load(std::memory_order_relaxed)->owner->pin(r, to, "actor_options::worker");
}

void enlist_resident(resident& r) {
  worker* w = current_worker();
  refuse_when_draining(*w);
  w->started.add();
  w->residents.add(r);
}

void strike_resident(resident& r) noexcept {
  r.listed_in->remove(r);
  current_worker()->finished.add();
}

void make_ready(resident& r) noexcept { make_resident_ready(r); }

bool is_draining() noexcept {
  const worker* w = current_worker();
  return w != nullptr && w->draining.load(std::memory_order_relaxed);
}

}  // namespace ramie::detail
