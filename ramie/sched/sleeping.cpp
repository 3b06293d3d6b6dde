#include <ramie/sched/sleeping.hpp>

#include <ramie/machine/futex.hpp>
#include <ramie/sched/policy.hpp>
#include <ramie/task/timer_queue.hpp>
#include <ramie/worker/observing.hpp>

#include <algorithm>

namespace ramie::detail {

namespace {
constexpr std::int64_t idle_trim_ns = 1'000'000'000;  // asleep for so long: caches are given back; a guess
}

// ---- publishers ----------------------------------------------------------------------------------------------------

void sleeper::published_slowly(worker* w, std::size_t queued) noexcept {
  if (!all_.steals) return;
  if (queued >= 2 ? !leaves_new_tasks(*w) : worth_moving(all_, *w, queued)) {
    idle_.wake_one(false, near(*w));
    return;
  }
  sample_deferral(*w);
}

void sleeper::published_ready_slowly(worker* w) noexcept {
  if (!all_.steals) return;
  if (worth_moving(all_, *w, w->ready.size())) idle_.wake_one(false, near(*w));
  sample_deferral(*w);  // all the same: the judgement must not outlive its reason
}

void sleeper::published_to_all() noexcept {
  light_fence();
  if (hint()) idle_.wake_one();
}

void sleeper::published_to(worker& to) noexcept {
  light_fence();
  if (to.idle.load(std::memory_order_relaxed)) idle_.wake(to);
}

/// Whether another worker searches says nothing: the policy may have nothing for that one. So the worker's `idle` takes
/// the place of the hint.
///
/// The sleeper that is woken need not be the one that the latest `put` was for: it may have work from before, and be
/// about to find that at S3. So a worker that has slept calls this again (find_work), for the next one. A worker that
/// is already on its way may have done so before the `put`, hence it does not count.
void sleeper::published_to_policy() noexcept {
  light_fence();
  if (idle_.sleeping() == 0) return;
  const std::size_t n = all_.size();
  for (std::size_t i = 0; i < n; ++i) {
    worker& w = all_.at(i);
    if (w.idle.load(std::memory_order_relaxed) && all_.options.policy->has_work(static_cast<int>(i)) && idle_.wake(w))
      return;
  }
}

// ---- searchers and sleepers ----------------------------------------------------------------------------------------

void sleeper::end_search(worker& w) noexcept {
  if (!idle_.end_search(w)) return;
  if (!RAMIE_PLANT(search_ends_unmarked)) mark_fork_deques();
  if (!RAMIE_PLANT(search_ends_unfenced)) heavy_fence();
  if (work_in_sight(w)) idle_.wake_one(false, near(w));
}

/// Where fences are not asymmetric the marks are there for good.
void sleeper::mark_fork_deques() noexcept {
  if (!asymmetric_fences || !all_.steals) return;
  const std::size_t n = all_.size();
  for (std::size_t i = 0; i < n; ++i) all_.at(i).limit.store_relaxed(nullptr);
}

bool sleeper::work_in_sight(const worker& w) const noexcept {
  if (all_.injected.size() != 0 || !w.sent.empty()) return true;
  if (all_.options.policy != nullptr && all_.options.policy->has_work(static_cast<int>(w.number))) return true;
  if (!all_.steals) return false;
  const std::size_t n = all_.size();
  for (std::size_t i = 0; i < n; ++i)
    if (has_surplus(all_, all_.at(i))) return true;
  return false;
}

bool sleeper::is_alone(const worker& w) const noexcept {
  const std::size_t n = all_.size();
  for (std::size_t i = 0; i < n; ++i) {
    const worker& other = all_.at(i);
    if (&other != &w && other.on_duty.load(std::memory_order_relaxed) && !other.idle.load(std::memory_order_relaxed))
      return false;
  }
  return true;
}

void sleeper::sleep(worker& w) noexcept {
  if (w.observed.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_sleep(&w, true);
  sleep_in_set(w);
  w.clock_ns.store(now_ns(), std::memory_order_relaxed);
  if (w.observed.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_sleep(&w, false);
}

void sleeper::sleep_in_set(worker& w) noexcept {
  if (w.spare) w.wake_token.store(0, std::memory_order_relaxed);  // a call from when it was the reserve (V6)
  idle_.enter(w);
  mark_fork_deques();
  if (!RAMIE_PLANT(sleep_no_fence)) heavy_fence();
  if (!RAMIE_PLANT(sleep_without_look) && (work_in_sight(w) || all_.ending.load(std::memory_order_relaxed)) &&
      idle_.leave(w))
    return;
  bool trimmed = false;
  while (w.wake_token.load(std::memory_order_acquire) == 0) {
    const std::int64_t deadline = w.timers.next_ns();
    std::int64_t left = -1;
    if (deadline != timer_queue::never) {
      const std::int64_t now = now_ns();
      left = deadline > now ? deadline - now : 0;  // it may be the least number there is
    }
    if (left == 0) {
      if (idle_.leave(w)) break;
      left = -1;  // a waker is about to set the token
    }
    const bool trial = !trimmed && (left < 0 || left > idle_trim_ns);
    bool left_idle_set = false;
    if (!events_.sleep(w, trial ? idle_trim_ns : left, left_idle_set, [&](worker& me) { return idle_.leave(me); }))
      futex_wait(w.wake_token, 0, trial ? idle_trim_ns : left);
    if (left_idle_set) break;
    if (trial && w.wake_token.load(std::memory_order_relaxed) == 0) {
      // A spare that fell asleep while it was still wanted is not told when it is not any more: it looks again.
      if (w.spare && w.timers.next_ns() == timer_queue::never && idle_.leave(w)) break;
      trimmed = true;
      give_memory_back(w);
    }
  }
  // A call that was for the reserve that this was, or for the spare that was off duty, ends a sleep without a word to
  // the set.
  if (w.spare) static_cast<void>(idle_.leave(w));
  w.wake_token.store(0, std::memory_order_relaxed);
  w.idle.store(false, std::memory_order_relaxed);
  if (all_.near_first) all_.note_place(w);
}

void sleeper::rest(worker& w) noexcept {
  w.idle.store(true, std::memory_order_release);
  const std::int64_t deadline = w.timers.next_ns();
  // Bounded: V6 may have happened meanwhile, and then nobody would call. Ten of the monitor's quiet ticks, since one
  // whose timers are far away rests so again and again.
  std::int64_t left = 100'000'000;
  if (deadline != timer_queue::never) left = std::clamp<std::int64_t>(deadline - now_ns(), 0, left);
  bool unused = false;
  if (left != 0 && w.wake_token.load(std::memory_order_relaxed) == 0 && !events_.sleep(w, left, unused, [](worker& me) {
        me.idle.store(false, std::memory_order_relaxed);
        return true;
      }))
    futex_wait(w.wake_token, 0, left);
  w.idle.store(false, std::memory_order_relaxed);
  // Many may call, so a plain store could lose a call.
  w.wake_token.exchange(0, std::memory_order_acq_rel);
  w.clock_ns.store(now_ns(), std::memory_order_relaxed);
}

void sleeper::give_memory_back(worker& w) noexcept {
  w.stacks.flush();
  w.blocks.flush();
  std::size_t on_duty = 0;
  const std::size_t n = all_.size();
  for (std::size_t i = 0; i < n; ++i) {
    const worker& other = all_.at(i);
    // A reserve that rests for its timers is in no set.
    if (other.on_duty.load(std::memory_order_relaxed) && !other.reserve.load(std::memory_order_relaxed)) ++on_duty;
  }
  if (idle_.sleeping() < on_duty) return;
  trim(w.stacks.of());
  trim_task_memory();
}

}  // namespace ramie::detail
