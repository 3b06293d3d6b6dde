// Timers of actors.
//
//  T1 A timer is in the queue of the worker that started it, and in its actor's list.
//  T2 Whoever fires it posts the message; a periodic one goes back into the queue, unless it was cancelled. That may be
//     the monitor, which must not run the user's code: a payload that is not copied byte by byte is made by the actor.
//  T3 Cancel sets `cancelled`, then takes it out of the queue. If it is not there, somebody is firing it just now, and
//     that one looks at `cancelled` again after it has put it back (T2).
//  T4 The thread that takes it out for good (the firer, or the canceller in T3) removes it from the list and drops the
//     queue's reference.
// The end of an incarnation cancels all that are in its list. One that fires just then posts a message that carries the
// incarnation's number, and vanishes. A timer for another actor is in no list.
#include <ramie/actor/timer.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/task/timer_queue.hpp>

#include <mutex>

namespace ramie::detail {

namespace {

/// T4.
void leave(actor_timer& t) noexcept {
  t.cancelled.store(true, std::memory_order_release);  // a handle may outlive even the queue: nothing to look for there
  if (t.owned) {
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

void launch_timer(actor_timer* t, actor_cell& target, std::chrono::nanoseconds delay, std::chrono::nanoseconds period,
                  bool owned) {
  actor_extras* x = nullptr;
  worker_base* w = current_worker();
  try {
    if (w == nullptr)
      throw usage_error{
          "ramie: send_after, send_every: the caller belongs to no runtime; call it from within ramie::run"};
    if (owned) x = &target.extras();
  } catch (...) {
    delete t;
    throw;
  }
  t->target = &target;
  target.add_reference();
  t->call = &fire;
  t->home = w->timers_here;
  t->period_ns = period.count();
  t->deadline_ns = to_ns(deadline_after(std::max(delay, std::chrono::nanoseconds{0})));
  if (owned) {
    t->owned = true;
    t->incarnation = x->now.number;
    std::lock_guard guard{x->now.timers_lock};
    t->next = x->now.timers;
    if (t->next != nullptr) t->next->previous = t;
    x->now.timers = t;
  }
  try {
    w->timers_here->add(*t, t->deadline_ns);
  } catch (...) {
    leave(*t);
    t->release();
    throw;
  }
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
