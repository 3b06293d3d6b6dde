#include <ramie/fiber/cancellation.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/error.hpp>
#include <ramie/base/plant.hpp>
#include <ramie/fiber/cancel_scope.hpp>
#include <ramie/machine/backoff.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/timer_queue.hpp>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace ramie {

namespace detail {

namespace {
/// Would nothing around the call have ended a wait in it? To be called when the region is closed.
bool nothing_else_ends(std::int64_t now) {
  const limits around = limits_here();
  const worker_base* const w = current_worker();
  const bool draining = w != nullptr && w->draining.load(std::memory_order_relaxed) && !around.shielded;
  if (!around.stopped && !draining && around.deadline_ns > now) return true;
  clean_up rest;
  return rest.begin();  // what is around does not reach into clean-up
}
}  // namespace

bool only_late(std::int64_t deadline_ns) {
  const std::int64_t now = now_ns();
  return deadline_ns <= now && nothing_else_ends(now);
}

void throw_timeout() { throw timeout_error{"ramie: with_timeout, with_deadline: the deadline has passed"}; }

}  // namespace detail

// How the waits of a call end that is cancelled, or late:
//
//  K1 `call_` is set inside the lock before the call begins, and taken back inside it before the region closes. Who has
//     changed the region inside the lock counts itself in `ending_`, and then ends waits outside of it; `leave` waits
//     for these. So the region, and the stack it lies on, stay.
//  K2 The region changes inside the lock of its chain, before the look at waits. A wait arms before it looks at its
//     regions, inside that lock, also one of a strand, which was begun later than the region. So it sees the change, or it
//     is found.
//  K3 Of a fiber's call the region has no deadline until it has passed, but only tells one: waits set no timers for it. The
//     alarm does, which lies in the object. When it rings it looks at the deadline inside the lock, and goes back into the queue if that is
//     later now. For an earlier one it is taken out and put in again; one that rings meanwhile will look.
//  K4 `leave` takes the alarm out, or, if it rings, waits until it is through: nobody touches the object after that. The
//     queue is that of a worker of the call's own runtime, which lasts as long as the call.
//  K5 Whether the deadline has passed is asked of the clock inside the lock, by who moves it and by the alarm: so what
//     has ended a wait does not move any more.

void cancel_scope::enter(detail::region& r) {
  detail::region_chain& own = detail::own_regions();
  const detail::worker* const w = detail::worker::current();
  const bool is_fiber = w != nullptr && w->running_task() != nullptr;
  const std::lock_guard guard{lock_};
  if (call_ != nullptr) throw usage_error{"ramie: cancel_scope::run: another call is under way"};
  home_ = is_fiber ? w->owner : nullptr;
  r.cancelled = cancelled_;
  r.told_ns = alarm_ns_ = cancelled_ ? detail::now_ns() : deadline_ns_;
  if (!is_fiber || has_passed()) r.deadline_ns = r.told_ns;
  else if (deadline_ns_ != detail::region::never) set_alarm(deadline_ns_);
  detail::open_region(r);
  regions_ = &own;
  call_ = &r;
}

std::int64_t cancel_scope::leave(detail::region& r) noexcept {
  std::int64_t least = detail::region::never;
  for (int round = 0;; detail::pause_a_little(round)) {
    const std::lock_guard guard{lock_};
    if (ending_ != 0 && !RAMIE_PLANT(call_left_early)) continue;
    if (armed_ && !alarm_.queue->remove(alarm_)) continue;  // K4
    armed_ = false;
    call_ = nullptr;
    if (home_ == nullptr) least = alarm_ns_;
    break;
  }
  detail::close_region(r);
  return least;
}

cancel_scope::~cancel_scope() {
  RAMIE_ASSERT(call_ == nullptr && ending_ == 0, "a cancel_scope was destroyed while its call was under way");
}

/// Inside the lock.
bool cancel_scope::has_passed() const noexcept { return cancelled_ || deadline_ns_ <= detail::now_ns(); }

bool cancel_scope::is_over() const noexcept {
  const std::lock_guard guard{lock_};
  return has_passed();
}

bool cancel_scope::is_cause(std::int64_t least) const {
  const std::int64_t now = detail::now_ns();
  return (least <= now || is_over()) && detail::nothing_else_ends(now);
}

/// K3. Inside the lock. Throws std::bad_alloc; the alarm is then where it was.
void cancel_scope::set_alarm(std::int64_t ns) {
  detail::timer_queue* const before = armed_ ? alarm_.queue : nullptr;
  if (armed_ && !alarm_.queue->remove(alarm_)) return;  // it rings, and will look
  alarm_.call = &ring;
  alarm_.of = this;
  // The caller's own queue if it can be had, otherwise that of a worker that never retires.
  detail::worker* const me = detail::worker::current();
  detail::worker& to = me != nullptr && me->owner == home_ && !me->spare ? *me : home_->at(0);
  try {
    to.timers_here->add(alarm_, ns);
  } catch (const std::bad_alloc&) {
    armed_ = false;
    if (before != nullptr) before->add(alarm_, alarm_ns_);  // it has just left room there
    armed_ = before != nullptr;
    throw;
  }
  armed_ = true;
  alarm_ns_ = ns;
  if (&to != me) home_->sleeping.published_to(to);
}

/// Outside the lock, counted in `ending_`.
void cancel_scope::end_waits(const detail::region& r) noexcept {
  detail::end_waits_inside(r);
  const std::lock_guard guard{lock_};
  RAMIE_ASSERT(call_ == &r, "the call of a cancel_scope ended while its waits were looked at");
  --ending_;
}

void cancel_scope::ring(detail::timer_node& fired) noexcept {
  cancel_scope& me = *static_cast<alarm&>(fired).of;
  const detail::region* r;
  {
    const std::lock_guard guard{me.lock_};
    if (!me.has_passed()) {
      me.alarm_ns_ = me.deadline_ns_;
      try {
        if (me.deadline_ns_ == detail::region::never) me.armed_ = false;
        else fired.queue->add(fired, me.deadline_ns_);
        return;
      } catch (const std::bad_alloc&) {
        // Too early rather than never.
        me.deadline_ns_ = detail::now_ns();
      }
    }
    me.armed_ = false;
    if (me.cancelled_) return;
    r = me.call_;
    detail::set_deadline(*me.regions_, *me.call_, me.deadline_ns_, me.deadline_ns_);
    ++me.ending_;
  }
  me.end_waits(*r);
}

void cancel_scope::cancel() noexcept {
  const detail::region* r;
  {
    const std::lock_guard guard{lock_};
    if (std::exchange(cancelled_, true) || call_ == nullptr) return;
    r = call_;
    detail::cancel_region(*regions_, *call_);
    ++ending_;
  }
  end_waits(*r);
}

bool cancel_scope::expires_at(std::chrono::steady_clock::time_point deadline) {
  const std::int64_t ns = detail::to_ns(deadline);
  const std::lock_guard guard{lock_};
  if (has_passed() && !RAMIE_PLANT(deadline_moved_late)) return false;  // K5
  if (call_ != nullptr && home_ == nullptr) {
    detail::set_deadline(*regions_, *call_, ns, ns);
    alarm_ns_ = std::min(alarm_ns_, ns);
  } else if (call_ != nullptr) {
    if (ns < (armed_ ? alarm_ns_ : detail::region::never)) set_alarm(ns);
    detail::set_deadline(*regions_, *call_, detail::region::never, ns);
  }
  deadline_ns_ = ns;
  return true;
}

}  // namespace ramie
