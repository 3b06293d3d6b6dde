// The reserve: one worker more, called while all others are held up by what they run, for what a timer, input or
// output, or another thread has woken. Without it that would wait behind each new task that turns out to compute
// without end, or to block its thread: nothing tells such a task from others before it runs, and what spare workers
// (M4) take next may be one again.
//
//  V1 The runtime is *hogged* from the round of the monitor on in which each worker has dispatched nothing for a round,
//     and spawned nothing. It is hogged no more once one sleeps, or after `calm_rounds` in which some worker has
//     dispatched: a spare that was just called has done so once, whatever it took.
//  V2 While it is hogged, the monitor fires the timers of workers that are held up when they are due, polls (E6), and
//     empties their inboxes (M3). What that wakes lies in the injection queue then, and the monitor calls the reserve.
//  V3 The reserve runs what its own queues, timers and events give it, and what woke and was injected. It takes no new
//     task and steals nothing: all that may be the next hog. So a fiber that sleeps and wakes stays with it.
//  V4 It rests outside of the idle set: what others publish is not for it, and costs them nothing. It is called by its
//     token. The monitor may do so at any time, so the reserve clears the token by an exchange, after its rest and
//     before it looks for work: a call is seen by that look, or the next rest ends at once.
//  V5 When the runtime is hogged no more, the reserve puts what it has, and what its timers wake, into the injection
//     queue. When its timers are gone it goes off duty, like a spare that retires. So it never works beside workers
//     that get on.
//  V6 A reserve that is held up itself, while the others are stalled or the runtime is hogged no more, is a spare worker
//     from then on, and another becomes the reserve. `reserve` is exchanged here and in V5, so only one of the two
//     happens. It carries nothing.
// Where things may not move (`dedicated`), or the user's policy decides, there is none.
#include <ramie/sched/monitor.hpp>

#include <ramie/base/atomic.hpp>

#include <algorithm>

namespace ramie::detail {

namespace {
constexpr std::uint32_t calm_rounds = 4;  // a spare that has taken a hog is seen to be still in its third
}

void monitor::look_at_reserve(const reserve_look& around) noexcept {
  if (!all_.has_reserve) return;
  if (around.held_up) calm_ = 0;
  else calm_ = around.somebody_sleeps ? calm_rounds : std::min(calm_ + 1, calm_rounds);
  const bool was_hogged = all_.hogged.load(std::memory_order_relaxed);
  const bool hogged = around.held_up || (was_hogged && calm_ < calm_rounds);
  if (hogged != was_hogged) all_.hogged.store(hogged, std::memory_order_relaxed);
  if (reserve_ != nullptr && !reserve_->reserve.load(std::memory_order_relaxed)) reserve_ = nullptr;  // V5
  const bool work_waits = all_.injected.woken() != 0;
  if (reserve_ != nullptr && around.reserve_still && (!hogged || (around.others_stalled && work_waits))) {
    if (reserve_->reserve.exchange(false, std::memory_order_relaxed))
      spares_active_.fetch_add(1, std::memory_order_relaxed);
    reserve_ = nullptr;
  }
  if (reserve_ == nullptr) {
    if (hogged && work_waits) reserve_ = call(true);
  } else if (hogged ? work_waits : was_hogged) {
    sleeping_.call(*reserve_);
  }
}

bool monitor::release_reserve(worker& w) noexcept {
  if (w.timers.next_ns() != timer_queue::never) return false;
  if (!w.reserve.exchange(false, std::memory_order_relaxed) && !RAMIE_PLANT(reserve_leaves_as_spare)) return false;
  leave_duty(w);
  return true;
}

}  // namespace ramie::detail
