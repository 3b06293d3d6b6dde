// Timers of actors.
//
//  T1 A timer is in the queue of the worker that started it, and in its actor's list.
//  T2 The thread that fires it posts the message; a periodic one goes back into the queue, unless it was cancelled. That may be
//     the monitor, which must not run the user's code: a payload that is not copied byte by byte is made by the actor.
//  T3 Cancel sets `cancelled`, then takes it out of the queue. If it is not there, somebody is firing it just now, and
//     that one looks at `cancelled` again after it has put it back (T2).
//  T4 The thread that takes it out for good (the firer, or the canceller in T3) removes it from the list and drops the
//     queue's reference.
// The end of an incarnation cancels all that are in its list. One that fires just then posts a message that carries the
// incarnation's number, and vanishes.
//  T5 Somebody else starts one under the lock of the actor, which is alive there: so the list is not ended yet, and the
//     scheduler in whose queue it goes lives on, too.
//  T6 A timer with a key is known to its actor until its message is handled. The actor's own turn decides whether it is,
//     so what was cancelled or replaced is never heard of, even if it was in the mailbox already.
#include <ramie/actor/timer.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/task/timer_queue.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace ramie::detail {

namespace {

/// T4.
void leave(actor_timer& t) noexcept {
  t.cancelled.store(true, std::memory_order_release);  // a handle may outlive even the queue: nothing to look for there
  {
    incarnation& x = t.target->more.load(std::memory_order_acquire)->now;
    std::lock_guard guard{x.timers_lock};
    (t.previous == nullptr ? x.timers : t.previous->next) = t.next;
    if (t.next != nullptr) t.next->previous = t.previous;
  }
  t.release();
}

void send(actor_timer& t) noexcept {
  try {
    // One that comes once is as good as what the actor tells itself: there is always room. The next tick of a periodic
    // one replaces what was refused.
    t.target->post_timed(t.make(), t.incarnation, t.period_ns == 0);
  } catch (...) {
    // No memory for the message: it is lost, and the next one may find some.
  }
}

void fire(timer_node& node) noexcept {
  auto& t = static_cast<actor_timer&>(node);
  if (!t.cancelled.load(std::memory_order_acquire)) send(t);
  if (t.period_ns == 0 || t.cancelled.load(std::memory_order_acquire)) {
    leave(t);
    return;
  }
  // From now, if it came too late: no burst of messages makes up for what was missed.
  t.deadline_ns = std::max(t.deadline_ns + t.period_ns, now_ns());
  t.references.fetch_add(1, std::memory_order_relaxed);  // once it is back in the queue, the canceller may end it
  try {
    t.home->add(t, t.deadline_ns);
    if (t.cancelled.load(std::memory_order_seq_cst) && t.home->remove(t)) leave(t);
  } catch (...) {
    leave(t);
  }
  t.release();
}

}  // namespace

void actor_timer::release() noexcept {
  if (references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  target->release();
  delete this;
}

void actor_timer::cancel() noexcept {
  if (cancelled.exchange(true, std::memory_order_seq_cst)) return;
  if (home->remove(*this)) leave(*this);
}

namespace {

/// T1, but for the queue.
void enlist(actor_timer& t, actor_cell& target, incarnation& x, timer_queue& home) noexcept {
  t.target = &target;
  target.add_reference();
  t.call = &fire;
  t.home = &home;
  t.incarnation = x.number;
  std::lock_guard guard{x.timers_lock};
  t.next = x.timers;
  if (t.next != nullptr) t.next->previous = &t;
  x.timers = &t;
}

void start(actor_timer& t) {
  try {
    t.home->add(t, t.deadline_ns);
  } catch (...) {
    leave(t);
    t.release();
    throw;
  }
}

std::int64_t in(std::chrono::nanoseconds delay) noexcept {
  return to_ns(deadline_after(std::max(delay, std::chrono::nanoseconds{0})));
}

}  // namespace

void launch_timer(actor_timer* t, actor_cell& target, std::chrono::nanoseconds delay, std::chrono::nanoseconds period) {
  actor_extras* x = nullptr;
  try {
    x = &target.extras();
  } catch (...) {
    delete t;
    throw;
  }
  t->period_ns = period.count();
  t->deadline_ns = in(delay);
  enlist(*t, target, x->now, *current_worker()->timers_here);
  start(*t);
}

void launch_timer_for(actor_timer* t, actor_cell& target, std::chrono::nanoseconds delay) {
  actor_extras* x = nullptr;
  try {
    x = &target.extras();
  } catch (...) {
    delete t;
    throw;
  }
  t->deadline_ns = in(delay);
  t->target = &target;
  std::lock_guard guard{target.lock};
  worker* const home = home_of(target);
  if ((target.status & (actor_cell::closed | actor_cell::waiting | actor_cell::gone)) != 0 || home == nullptr) {
    target.add_reference();
    t->cancelled.store(true, std::memory_order_relaxed);
    t->release();  // the queue's: it is in none
    return;
  }
  // The caller's own queue if it can be had, otherwise that of a worker that never retires.
  worker* const me = worker::current();
  worker& to = me != nullptr && me->owner == home->owner ? *me : home->owner->at(0);
  enlist(*t, target, x->now, *to.timers_here);
  start(*t);
  if (&to != me) home->owner->sleeping.published_to(to);
}

// ---- keys ----------------------------------------------------------------------------------------------------------

namespace {
auto find_key(incarnation& x, const timer_key& key) noexcept {
  return std::find_if(x.keyed.begin(), x.keyed.end(), [&](const keyed_timer& k) { return k.key == key; });
}
}  // namespace

void forget_key(actor_cell& c, actor_timer& t) noexcept {
  std::erase_if(c.more.load(std::memory_order_acquire)->now.keyed,
                [&](const keyed_timer& k) { return k.handle.timer() == &t; });
}

void keep_timer(actor_cell& c, timer_key key, timer_handle h) {
  incarnation& x = c.more.load(std::memory_order_acquire)->now;
  cancel_keyed(c, key);
  try {
    if (x.keyed.size() == x.keyed.capacity()) x.keyed.reserve(2 * x.keyed.size() + 1);
    x.keyed.push_back({std::move(key), std::move(h)});
  } catch (...) {
    h.timer()->forgotten = true;
    h.cancel();
    throw;
  }
}

bool cancel_keyed(actor_cell& c, const timer_key& key) noexcept {
  actor_extras* more = c.more.load(std::memory_order_acquire);
  if (more == nullptr) return false;
  const auto k = find_key(more->now, key);
  if (k == more->now.keyed.end()) return false;
  k->handle.timer()->forgotten = true;
  k->handle.cancel();
  more->now.keyed.erase(k);
  return true;
}

bool is_running(actor_cell& c, const timer_key& key) noexcept {
  actor_extras* more = c.more.load(std::memory_order_acquire);
  return more != nullptr && find_key(more->now, key) != more->now.keyed.end();
}

void cancel_timers(incarnation& x) noexcept {
  for (;;) {
    actor_timer* t = nullptr;
    {
      std::lock_guard guard{x.timers_lock};
      for (t = x.timers; t != nullptr && t->cancelled.load(std::memory_order_relaxed); t = t->next) {
      }
      if (t == nullptr) return;
      t->references.fetch_add(1, std::memory_order_relaxed);
    }
    t->cancel();
    t->release();
  }
}

}  // namespace ramie::detail
