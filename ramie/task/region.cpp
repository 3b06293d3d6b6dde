#include <ramie/task/region.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/fork_frame.hpp>
#include <ramie/task/scheduling.hpp>
#include <ramie/task/strands.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/timer_queue.hpp>
#include <ramie/task/wait.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>
#include <new>

// What publishes what: a bucket's `stopped` and a chain's `innermost` are compared with null without their locks, and
// followed inside them; so they carry no order. That none is missed is the work of the fences at arming and in an
// inspection (task/wait_word.hpp), and of the fork for regions that were open before it. Flags are looked at as bits;
// limits_of alone acquires them, since a fiber that finds its own stop flag must see what was written before the
// request. `extras` is acquired by all but its owner: who makes it late publishes it by that.
namespace ramie::detail {

namespace {

// One noinline accessor, as for the current worker: for threads only, but its callers may be compiled into fibers'
// code.
RAMIE_NOINLINE region_chain& chain_of_thread() noexcept {
  static thread_local region_chain chain;
  asm volatile("");
  return chain;
}

bool lies_on(const stack& s, const void* place) noexcept {
  const auto* at = static_cast<const char*>(place);
  return s.top != nullptr && at >= lowest_usable(s) && at < s.top;
}

/// Does a failed scope of `t` lie around `place` (null: what `t` itself does now), further in than `fence`, and was it
/// made with that many exceptions in flight?
bool inside_stopped(const task& t, const char* place, const char* fence, std::uint32_t in_flight) noexcept {
  const stack* const here = t.where.load(std::memory_order_relaxed);
  if (here == nullptr) return false;
  family_bucket& b = family_bucket_of(*here);
  if (b.stopped.load(std::memory_order_relaxed) == nullptr) return false;
  std::lock_guard guard{b.lock};
  for (const stopped_scope* s = b.stopped.load(std::memory_order_relaxed); s != nullptr; s = s->next) {
    if (s->owner != &t || s->in_flight < in_flight || (fence != nullptr && s->place > fence)) continue;
    if (place != nullptr && place >= s->place + s->size) continue;  // an older frame
    if (place != nullptr && place >= s->place) return true;
    if (s->joining(s->place)) return true;
  }
  return false;
}

/// The exceptions in flight on the parent where it forked `t` (0: it is no strand), or where the scope was made that it
/// is a child of.
std::uint32_t in_flight_around(const task& t, std::uint32_t flags) noexcept {
  if ((flags & task::child_flag) != 0) return scope_place_of(t).in_flight;
  if ((flags & task::strand_flag) == 0) return 0;
  const auto& strand = static_cast<const strand_task&>(t);
  return strand.in_flight == 0 ? 0 : strand.frame->in_flight_or(strand.in_flight);
}

/// Adds the limits of the chain to `found`, from the regions around `place` outwards; raises `in_flight` to theirs.
/// Returns the place that hides what lies further out, or null: a shield, a region from before the exceptions in
/// flight, or a fence.
const void* look_outwards(region_chain& chain, const void* place, std::uint32_t& in_flight, limits& found) noexcept {
  // Usually there is none. A strand's regions existed when it was forked, so nothing is missed without the lock.
  if (chain.innermost.load(std::memory_order_relaxed) == nullptr) return nullptr;
  std::lock_guard guard{chain.lock};
  const void* fence = nullptr;
  for (const region* r = chain.innermost.load(std::memory_order_relaxed); r != nullptr; r = r->outer) {
    if (place != nullptr && std::less<const void*>{}(r, place)) continue;
    if (fence != nullptr && std::less<const void*>{}(fence, r)) return fence;
    if (r->shield || r->in_flight < in_flight) return r;
    if (r->fence != nullptr && (fence == nullptr || std::less<const void*>{}(r->fence, fence))) fence = r->fence;
    in_flight = r->in_flight;
    found.deadline_ns = std::min(found.deadline_ns, r->deadline_ns);
    found.told_ns = std::min(found.told_ns, r->told_ns);
    if (r->cancelled) {
      found.by_scope = found.by_scope || !found.stopped;
      found.stopped = true;
    }
  }
  return fence;
}

}  // namespace

const void* fork_place(const task& strand) noexcept {
  const stack* s = strand.parent == nullptr ? nullptr : strand.parent->where.load(std::memory_order_relaxed);
  const void* place;
  if ((strand.flags.load(std::memory_order_relaxed) & task::child_flag) != 0) {
    place = scope_place_of(strand).of_scope;
  } else {
    const fork_frame* const frame = static_cast<const strand_task&>(strand).frame;
    place = s == nullptr || lies_on(*s, frame) ? frame : static_cast<const owned_frame*>(frame)->owner;
  }
  return s == nullptr || lies_on(*s, place) ? place : nullptr;
}

/// Of the calling thread, whose worker `w` is.
static std::uint32_t in_flight_on(const worker_base* w) noexcept {
  return w != nullptr ? w->exceptions->in_flight() : static_cast<std::uint32_t>(std::uncaught_exceptions());
}

std::uint32_t exceptions_in_flight() noexcept { return in_flight_on(current_worker()); }

bool limits::is_late() const noexcept { return deadline_ns != region::never && deadline_ns <= now_ns(); }

limits limits_of(task& t, std::uint32_t in_flight) noexcept {
  limits found;
  const task* inner = nullptr;  // the strand of `at` that the walk came from
  for (task* at = &t; at != nullptr; at = at->parent) {
    task_extras* const extras = at->extras.load(std::memory_order_acquire);
    const std::uint32_t flags = at->flags.load(std::memory_order_acquire);
    const void* last = nullptr;
    // Most have neither; then it does not matter where the strand was forked.
    if ((extras != nullptr && extras->regions.innermost.load(std::memory_order_relaxed) != nullptr) ||
        (flags & task::scope_flag) != 0) [[unlikely]] {
      const void* const place = inner == nullptr ? nullptr : fork_place(*inner);
      last = extras == nullptr ? nullptr : look_outwards(extras->regions, place, in_flight, found);
      if ((flags & task::scope_flag) != 0 &&
          inside_stopped(*at, static_cast<const char*>(place), static_cast<const char*>(last), in_flight)) {
        found.by_scope = found.by_scope || !found.stopped;
        found.stopped = true;
      }
    }
    if (last != nullptr || in_flight != 0 || (flags & task::ending_flag) != 0) {
      found.shielded = !found.stopped;
      return found;
    }
    if ((flags & task::stop_flag) != 0) {
      found.stopped = true;
      found.by_scope = false;
    }
    inner = (flags & task::strand_flag) != 0 ? at : nullptr;
    in_flight = in_flight_around(*at, flags);
  }
  return found;
}

limits limits_of_wait(const void* occupant) noexcept {
  auto& t = *const_cast<task*>(static_cast<const task*>(occupant));
  return limits_of(t, t.where.load(std::memory_order_relaxed)->waiting->in_flight());
}

void cancel_if_over(const inspection& during, stack& s) noexcept {
  inspect_and_cancel(
      during, s,
      [](const void*, const void* occupant) {
        const limits bounds = limits_of_wait(occupant);
        return bounds.stopped || bounds.is_late();
      },
      nullptr);
}

void cancel_strands_if_over(const inspection& during, const stack& top) noexcept {
  visit_strands(
      top,
      [](void* in, stack& at) {
        cancel_if_over(*static_cast<const inspection*>(in), at);
        return true;
      },
      const_cast<inspection*>(&during));
}

bool is_unlimited(const task& t) noexcept {
  for (const task* at = &t; at != nullptr; at = at->parent) {
    const task_extras* const extras = at->extras.load(std::memory_order_acquire);
    if ((extras != nullptr && extras->regions.innermost.load(std::memory_order_relaxed) != nullptr) ||
        (at->flags.load(std::memory_order_relaxed) & (task::stop_flag | task::scope_flag | task::ending_flag)) != 0)
      return false;
  }
  return true;
}

limits limits_here() noexcept {
  const worker_base* const w = current_worker();
  std::uint32_t in_flight = in_flight_on(w);
  if (task* const t = w == nullptr ? nullptr : w->running_task(); t != nullptr) return limits_of(*t, in_flight);
  limits found;
  found.shielded = look_outwards(chain_of_thread(), nullptr, in_flight, found) != nullptr || in_flight != 0;
  return found;
}

bool is_to_stop() noexcept {
  worker_base* const w = current_worker();
  task* const at = w == nullptr ? nullptr : w->running_task();
  if (at == nullptr) return limits_here().is_late();
  task& t = *at;
  const bool draining = w->draining.load(std::memory_order_acquire);
  const std::uint32_t flags = t.flags.load(std::memory_order_acquire);
  if ((flags & task::limited) == 0)
    return (draining || (flags & task::stop_flag) != 0) && w->exceptions->in_flight() == 0;
  const limits bounds = limits_of(t, w->exceptions->in_flight());
  return bounds.stopped || (draining && !bounds.shielded) || bounds.is_late();
}

task* nearest_owner(task* t, const void* place) noexcept {
  for (; t != nullptr; t = t->parent) {
    const stack* s = t->where.load(std::memory_order_relaxed);
    if (s != nullptr && lies_on(*s, place)) return t;
  }
  return nullptr;
}

task* owner_of_place(const void* place) noexcept {
  if (task* const near = nearest_owner(running_task_here(), place); near != nullptr) return near;
  struct looked_for {
    const void* place;
    task* owner = nullptr;
  } found{place};
  for_each_stack(
      [](void* opaque, stack& s) {
        auto& of = *static_cast<looked_for*>(opaque);
        if (lies_on(s, of.place)) of.owner = static_cast<task*>(s.occupant.load(std::memory_order_relaxed));
      },
      &found);
  return found.owner;
}

void add_stopped(stopped_scope& s) noexcept {
  if (s.owner == nullptr) return;  // then its children are stopped each by itself
  stack& owners = *s.owner->where.load(std::memory_order_relaxed);
  {
    family_bucket& b = family_bucket_of(owners);
    std::lock_guard guard{b.lock};
    s.next = b.stopped.load(std::memory_order_relaxed);
    b.stopped.store(&s, std::memory_order_relaxed);
    s.owner->flags.fetch_or(task::scope_flag, std::memory_order_relaxed);
  }
  // Its fence also orders this against a fiber that arms a wait and then looks at its flags.
  struct stopping : inspection {
    explicit stopping(const stopped_scope& scope) : of{scope} {}
    const stopped_scope& of;
  } here{s};
  const auto look = [](void* during, stack& at) {
    const auto& stop = *static_cast<const stopping*>(during);
    // A strand's link is pinned, so it stays. Those outside of the scope need not be looked at, nor any below them.
    const auto* const there = static_cast<const task*>(at.occupant.load(std::memory_order_relaxed));
    if (there != nullptr && there->parent == stop.of.owner) {
      const void* const place = fork_place(*there);
      if (place != nullptr && !std::less<const void*>{}(place, stop.of.place + stop.of.size)) return false;
    }
    cancel_if_over(stop, at);
    return true;
  };
  look(&here, owners);
  visit_strands(owners, look, &here);
}

void remove_stopped(stopped_scope& s) noexcept {
  if (s.owner == nullptr) return;
  family_bucket& b = family_bucket_of(*s.owner->where.load(std::memory_order_relaxed));
  std::lock_guard guard{b.lock};
  stopped_scope* before = nullptr;
  bool others = false;
  bool found = false;
  for (stopped_scope* at = b.stopped.load(std::memory_order_relaxed); at != nullptr; at = at->next) {
    found = found || at == &s;
    if (at->next == &s) before = at;
    others = others || (at != &s && at->owner == s.owner);
  }
  RAMIE_ASSERT(found, "a stopped scope is not known at its owner's stack");
  if (before == nullptr) b.stopped.store(s.next, std::memory_order_relaxed);
  else before->next = s.next;
  if (!others || RAMIE_PLANT(stopped_scope_forgotten))
    s.owner->flags.fetch_and(~task::scope_flag, std::memory_order_relaxed);
}

void open_region(region& r) {
  worker_base* w = current_worker();
  region_chain* chain;
  r.in_flight = in_flight_on(w);
  if (task* const t = w == nullptr ? nullptr : w->running_task(); t == nullptr) {  // a thread, or a worker's own code
    chain = &chain_of_thread();
  } else {
    chain = &extras_of(*t).regions;
    r.opened_by = t;
    t->flags.fetch_or(task::region_flag, std::memory_order_relaxed);
  }
  std::lock_guard guard{chain->lock};
  r.outer = chain->innermost.load(std::memory_order_relaxed);
  chain->innermost.store(&r, std::memory_order_relaxed);
}

void close_region(region& r) noexcept {
  task* const t = r.opened_by;
  region_chain& chain = t == nullptr ? chain_of_thread() : t->extras.load(std::memory_order_relaxed)->regions;
  std::lock_guard guard{chain.lock};
  RAMIE_ASSERT(chain.innermost.load(std::memory_order_relaxed) == &r,
               "a region was closed that is not the innermost of its fiber");
  chain.innermost.store(r.outer, std::memory_order_relaxed);
  // The flag may be cleared only when no strand can need it: strands inside the region have ended.
  if (t != nullptr && r.outer == nullptr) t->flags.fetch_and(~task::region_flag, std::memory_order_relaxed);
}

region_chain& own_regions() {
  task* const t = running_task_here();
  return t == nullptr ? chain_of_thread() : extras_of(*t).regions;  // a thread, or a worker's own code
}

void set_deadline(region_chain& chain, region& r, std::int64_t deadline_ns, std::int64_t told_ns) noexcept {
  std::lock_guard guard{chain.lock};
  r.deadline_ns = deadline_ns;
  r.told_ns = told_ns;
}

void cancel_region(region_chain& chain, region& r) noexcept {
  std::lock_guard guard{chain.lock};
  r.cancelled = true;
  r.deadline_ns = now_ns();
}

void end_waits_inside(const region& r) noexcept {
  if (r.opened_by == nullptr) return;
  stack& of = *r.opened_by->where.load(std::memory_order_relaxed);
  const inspection here;
  cancel_if_over(here, of);
  cancel_strands_if_over(here, of);
}

quiet_region::quiet_region() noexcept {
  shield_.shield = true;
  try {
    open_region(shield_);
    open_ = true;
  } catch (const std::bad_alloc&) {
  }
}

quiet_region::~quiet_region() {
  if (open_) close_region(shield_);
}

}  // namespace ramie::detail
