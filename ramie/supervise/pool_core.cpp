// How a pool keeps its children.
//
// A child is made by its spawner, on its own task, without a message to the pool's supervisor; and one that is not
// to be restarted ends without one. All that both do is to put it into a list and take it out, under the pool's lock.
//
//  L1 Who makes a child reserves a place, constructs it, and, under the lock, enlists it with its worker and with the
//     pool at once. So a thread that finds it in the list may kill it, and it runs.
//  L2 An incarnation that ends decides, before it is marked as ending, whether a supervisor has to: not if its end was
//     normal and it is not permanent, or if the pool ends or stop_child was called (it is in another list then).
//     Otherwise it gets what other supervised actors have from the start: the reference to the supervisor, taken under
//     the lock while the pool is open, and the way to construct it again. From here on it is a child like others (S1).
//  L3 One that has ended for good takes itself out, before its joiner is told: so its place is free by then.
//  L4 The pool ends: under the lock it is closed, so none is added (L1) and none is to be restarted (L2). Then all are
//     killed, oldest first, and only then waited for: that takes as long as the slowest. Each is killed and joined
//     outside the lock, by a reference that is taken under it: one that is in a list has not let go of its own.
//  L5 One that decided before L4 that the supervisor decides, comes to rest, and is finished by its waiter.
//  L6 Those that do not end in time are left in a list of their own, which keeps the pool's memory until they have.
#include <ramie/supervise/pool_core.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/supervise/supervisor_actor.hpp>
#include <ramie/supervise/supervisor_records.hpp>

#include <mutex>
#include <source_location>

namespace ramie::detail {

namespace {

const pooled_type& type_of_child(actor_cell& c) noexcept { return *static_cast<const pooled_type*>(c.how().keeper); }

}  // namespace

pool_core::pool_core(const pool_options& options, const type_info& children, std::size_t hook_offset)
    : lifetime{options.lifetime},
      shutdown{options.shutdown},
      type{children},
      of_children{options.actor},
      asks_decide{static_cast<bool>(options.decide)},
      most_{options.max_children},
      hook_offset_{hook_offset} {}

pool_child* pool_core::hook_of(actor_cell& c) noexcept {
  if (c.how().keeper == nullptr) return nullptr;
  return std::launder(reinterpret_cast<pool_child*>(reinterpret_cast<char*>(&c) + type_of_child(c).hook_offset));
}

void pool_core::admit() {
  std::lock_guard guard{lock_};
  if (supervisor_ == nullptr) throw actor_down{exit_reason{exit_kind::shutdown}};
  if (most_ != 0 && places_ >= most_) throw too_many_children{};
  ++places_;
}

void pool_core::give_back() noexcept {
  std::lock_guard guard{lock_};
  --places_;
}

void pool_core::add(actor_cell& c, pool_child& hook) {
  std::unique_lock guard{lock_};
  if (supervisor_ == nullptr) throw actor_down{exit_reason{exit_kind::shutdown}};
  children_.add(hook);
  if (RAMIE_PLANT(pool_listed_early)) guard.unlock();
  try {
    enlist_cell(c);
  } catch (...) {
    children_.remove(hook);
    throw;
  }
}

// L2.
bool pool_core::ends(actor_cell& c, const exit_reason& why) noexcept {
  pool_child& hook = *hook_of(c);
  pool_core& pool = *hook.of;
  if (RAMIE_PLANT(pool_left_early)) pool.take_out(hook);
  actor_extras* x = c.more.load(std::memory_order_acquire);
  const bool known = x != nullptr && x->supervisor != nullptr;
  if (why.normal() && pool.lifetime != child_lifetime::permanent && !pool.asks_decide && !known) [[likely]]
    return false;
  try {
    x = &c.extras();
  } catch (const std::bad_alloc&) {
    return false;  // it ends, as one does that cannot report
  }
  std::lock_guard guard{pool.lock_};
  if (hook.in != &pool.children_ || pool.supervisor_ == nullptr) return false;
  if (known) return true;
  x->construct = type_of_child(c).construct;
  x->report = &report_end;
  pool.supervisor_->add_reference();
  std::lock_guard of_child{c.lock};
  x->supervisor = pool.supervisor_;
  return true;
}

// L3. Also of one that was abandoned, and is in no list.
void pool_core::ended(actor_cell& c) noexcept {
  pool_child& hook = *hook_of(c);
  type_of_child(c).drop_arguments(c);
  hook.of->take_out(hook);
}

void pool_core::take_out(pool_child& hook) noexcept {
  std::shared_ptr<pool_core> last;  // goes behind the lock
  std::lock_guard guard{lock_};
  if (hook.in == nullptr) return;
  const bool was_left = hook.in == &left_;
  hook.in->remove(hook);
  --places_;
  if (was_left && left_.size == 0) last = std::move(kept_for_left_);
}

void pool_core::open(actor_cell& supervisor) noexcept {
  std::lock_guard guard{lock_};
  supervisor_ = &supervisor;
}

std::size_t pool_core::size() noexcept {
  std::lock_guard guard{lock_};
  return children_.size;
}

std::vector<any_actor> pool_core::all() {
  std::vector<any_actor> found;
  for (;;) {
    found.reserve(size());
    std::lock_guard guard{lock_};
    if (children_.size > found.capacity()) continue;
    for (pool_child* h = children_.oldest; h != nullptr; h = h->newer) found.emplace_back(cell_of(*h));
    return found;
  }
}

bool pool_core::keeps(actor_cell& c) noexcept {
  const pool_child* hook = hook_of(c);
  std::lock_guard guard{lock_};
  return hook != nullptr && hook->of == this && hook->in == &children_;
}

bool pool_core::let_leave(actor_cell& c) noexcept {
  pool_child* hook = hook_of(c);
  if (hook == nullptr || hook->of != this) return false;
  std::lock_guard guard{lock_};
  if (hook->in != &children_) return false;
  children_.remove(*hook);
  leaving_.add(*hook);
  return true;
}

void pool_core::leave_behind(actor_cell& c) noexcept {
  pool_child& hook = *hook_of(c);
  std::lock_guard guard{lock_};
  if (hook.in == nullptr || hook.in == &left_) return;
  hook.in->remove(hook);
  left_.add(hook);
  kept_for_left_ = shared_from_this();
}

any_actor pool_core::first_of(const pool_list& in) noexcept {
  std::lock_guard guard{lock_};
  return in.oldest == nullptr ? any_actor{} : any_actor{cell_of(*in.oldest)};
}

void pool_core::kill_all(pool_list& from, pool_list& to, exit_kind why, bool cancels) noexcept {
  for (;;) {
    any_actor who;
    {
      std::lock_guard guard{lock_};
      pool_child* const h = from.oldest;
      if (h == nullptr) return;
      from.remove(*h);
      to.add(*h);
      who = any_actor{cell_of(*h)};
    }
    who.cell()->kill(exit_reason{why}, cancels);
  }
}

bool pool_core::await_all(pool_list& in, const steady::time_point* deadline) noexcept {
  while (const any_actor who = first_of(in)) {
    try {
      if (!who.cell()->join(deadline, true, std::source_location::current())) return false;
    } catch (...) {
      return false;  // no memory for the timer of the bound
    }
    finish_child(who);          // L5
    leave_behind(*who.cell());  // if the runtime shuts down and sees to it: it ends soon
  }
  return true;
}

// L4.
void pool_core::close(actor_cell& supervisor) noexcept {
  {
    std::lock_guard guard{lock_};
    supervisor_ = nullptr;
  }
  const bool bound = shutdown.count() > 0;
  kill_all(children_, leaving_, exit_kind::shutdown, !bound);
  auto deadline = deadline_after(shutdown);
  if (await_all(leaving_, bound ? &deadline : nullptr)) return;
  pool_list killed;
  kill_all(leaving_, killed, exit_kind::killed, true);
  deadline = deadline_after(shutdown);
  if (await_all(killed, &deadline)) return;
  while (const any_actor who = first_of(killed)) {
    leave_behind(*who.cell());
    report_left_behind(supervisor, *who.cell(), name_of(who.cell()));
  }
}

}  // namespace ramie::detail
