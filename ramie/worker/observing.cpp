#include <ramie/worker/observing.hpp>

#include <ramie/machine/cycles.hpp>
#include <ramie/task/wait.hpp>
#include <ramie/worker/stack_use_table.hpp>
#include <ramie/worker/worker.hpp>

#include <algorithm>

#include <cstring>
#include <mutex>

namespace ramie::detail {

namespace {

std::uintptr_t address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

/// The key of an item in ready_times.
const void* key_of(ready_item ready) noexcept {
  return ready.is_resident() ? static_cast<const void*>(ready.as_resident()) : ready.as_stack();
}

/// Which task it is: its pointer is valid only while it lives, so its name is copied.
void describe(trace_event& e, const task* t) noexcept {
  e.task = address_of(t);
  e.type = nullptr;
  e.name[0] = '\0';
  if (t == nullptr) return;
  e.type = t->type;
  // A fork job counts as its parent, which waits for it and so is still there.
  while ((t->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0 && t->parent != nullptr) t = t->parent;
  const task_extras* extras = t->extras.load(std::memory_order_acquire);
  if (extras == nullptr || extras->name.empty()) return;
  const std::size_t n = std::min(extras->name.size(), e.name.size() - 1);
  std::memcpy(e.name.data(), extras->name.data(), n);
  e.name[n] = '\0';
}

trace_event& fresh(observer& o, std::uint64_t now, trace_kind kind, const worker* w) noexcept {
  trace_event& e = o.ring->next();
  e.at = now;
  e.kind = kind;
  e.reason = nullptr;
  e.from = 0;
  e.count = 0;
  e.dispatches = w == nullptr ? 0 : static_cast<std::uint32_t>(w->dispatches.value());
  return e;
}

std::uint64_t in_ns(const observer& o, std::uint64_t cycles) noexcept {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(cycles) * o.ns_per_cycle >> 32);
}

void note_wait(observer& o, const void* key, std::uint64_t now) noexcept {
  if (o.ready == nullptr) return;
  if (const std::uint64_t since = o.ready->take(key); since != 0 && since <= now) o.wait.add(in_ns(o, now - since));
}

void note_run(observer& o, std::uint64_t now) noexcept {
  if (o.ready != nullptr && o.went_at != 0) o.run.add(in_ns(o, now - o.went_at));
  o.went_at = now;
}

}  // namespace

void observe_go(worker* w, stack* from, stack* to, bool parks) noexcept {
  observer* o = w->observed.load(std::memory_order_acquire);
  if (o == nullptr) return;
  const std::uint64_t now = cycles();
  const auto* left = static_cast<const task*>(from->occupant.load(std::memory_order_relaxed));
  const auto* next = static_cast<const task*>(to->occupant.load(std::memory_order_relaxed));
  if (left != nullptr) note_run(*o, now);
  o->went_at = now;
  if (next != nullptr) note_wait(*o, to, now);
  if (o->ring == nullptr) return;
  trace_event& e = fresh(*o, now, trace_kind::go, w);
  describe(e, left);
  e.task = address_of(next);
  e.from = address_of(left);
  if (parks) {
    // The fiber's own: no other thread touches it before the switch.
    const wait_site& site = *wait::facts(*from->waiting).site;
    e.reason = site.reason;
    e.where = site.where;
  }
  o->ring->publish();
}

void observe_begin(worker* w, task* t) noexcept {
  observer* o = w->observed_tasks.load(std::memory_order_acquire);
  if (o == nullptr) return;
  if (w->paints_stacks) begin_stack_use(*t, *w->running);
  const std::uint64_t now = cycles();
  note_wait(*o, t, now);
  o->went_at = now;
  if (o->ring == nullptr || !o->every_task) return;
  describe(fresh(*o, now, trace_kind::begin, w), t);
  o->ring->publish();
}

void observe_end(worker* w) noexcept {
  observer* o = w->observed_tasks.load(std::memory_order_acquire);
  if (o == nullptr) return;
  const std::uint64_t now = cycles();
  note_run(*o, now);
  o->went_at = 0;
  if (o->ring == nullptr || !o->every_task) return;
  describe(fresh(*o, now, trace_kind::end, w), nullptr);
  o->ring->publish();
}

void observe_spawn(worker* w, task* t) noexcept {
  observer* o = w->observed_tasks.load(std::memory_order_acquire);
  if (o == nullptr) return;
  const std::uint64_t now = cycles();
  if (o->ready != nullptr) o->ready->put(t, now);
  if (o->ring == nullptr || !o->every_task) return;
  trace_event& e = fresh(*o, now, trace_kind::spawn, w);
  describe(e, t);
  e.from = address_of(w->running_task());
  o->ring->publish();
}

void observe_wake(worker* w, ready_item ready) noexcept {
  observer* o = w->observed.load(std::memory_order_acquire);
  if (o == nullptr) return;
  const std::uint64_t now = cycles();
  if (o->ready != nullptr) o->ready->put(key_of(ready), now);
  if (o->ring == nullptr) return;
  trace_event& e = fresh(*o, now, trace_kind::wake, w);
  describe(e, task_of(ready));
  e.from = address_of(w->running_task());
  o->ring->publish();
}

void observe_steal(worker* w, std::uint32_t victim, std::size_t count) noexcept {
  observer* o = w->observed.load(std::memory_order_acquire);
  if (o == nullptr || o->ring == nullptr) return;
  trace_event& e = fresh(*o, cycles(), trace_kind::steal, w);
  describe(e, nullptr);
  e.task = victim;
  e.count = static_cast<std::uint32_t>(count);
  o->ring->publish();
}

void observe_message(worker* w, task* to, std::string_view type) noexcept {
  observer* o = w->observed.load(std::memory_order_acquire);
  if (o == nullptr || o->ring == nullptr) return;
  trace_event& e = fresh(*o, cycles(), trace_kind::message, w);
  describe(e, to);
  e.reason = type.data();
  e.count = static_cast<std::uint32_t>(type.size());
  o->ring->publish();
}

void observe_sleep(worker* w, bool sleeps) noexcept {
  observer* o = w->observed.load(std::memory_order_acquire);
  if (o == nullptr || o->ring == nullptr) return;
  describe(fresh(*o, cycles(), sleeps ? trace_kind::sleep : trace_kind::wake_up, w), nullptr);
  o->ring->publish();
}

void observe_outside(outside_observer& o, ready_item ready) noexcept {
  const std::lock_guard guard{o.lock};
  const std::uint64_t now = cycles();
  if (o.seen.ready != nullptr) o.seen.ready->put(key_of(ready), now);
  if (o.seen.ring == nullptr) return;
  describe(fresh(o.seen, now, trace_kind::wake, nullptr), task_of(ready));
  o.seen.ring->publish();
}

}  // namespace ramie::detail
