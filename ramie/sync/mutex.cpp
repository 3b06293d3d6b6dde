// A word holds the state of the mutex; a queue holds the waiters; a favour spares a worker that is the only user of the
// mutex all atomic instructions.
//
//   word = locked | busy | waiting | woken | favoured | ending
//
// Without a favour:
//  M1 The one that turns `locked` on has the mutex, regardless of the waiters ("barging"). So a holder that locks it
//     again and again loses no time to switches.
//  M2 `busy` guards the queue, for a few dozen instructions. `waiting` is on when the queue is not empty.
//  M3 A caller that finds it locked spins a little if the holder is likely to run on another CPU. Then it takes `busy`,
//     arms its wait, links its node, and gives `busy` back with `waiting` on, all in one step that succeeds only while
//     `locked` is on: so the holder's unlock is still to come, and will see it. Then it suspends.
//  M4 Unlock finds `waiting`: it takes `busy`, unlinks and claims the first waiter, and turns `busy` and `locked` off
//     and `woken` on, in one step; then it wakes the claimed waiter. That step is the last that touches the mutex: the
//     next holder may destroy it. While `woken` is on no unlock wakes another waiter: one at a time is on its way.
//  M5 The woken waiter tries M1. It turns `woken` off when it gets the mutex, or in the step of M3 in which it queues
//     up again, at the front this time. So whenever the mutex is free and there are waiters, one is on its way.
//  M6 After `passes_most` failed attempts, or 1 ms, it marks its node `starving`. Unlock then claims it and leaves
//     `locked` on: it owns the mutex before it runs.
//  M7 A waiter that runs out of time unlinks itself under `busy`. If it was woken and then ran out of time, it turns
//     `woken` off while `locked` is on, and the holder's unlock wakes the next.
//
// The favour (Dice, Moir, Scherer, "Quickly reacquirable locks", 2003): after 64 acquisitions in a row on one worker
// the word becomes `favoured` until another worker or a plain thread comes, and `held_` says whether the mutex is held.
// Ending a favour costs a heavy fence, so the next favours take 1024 in a row, which have cost as much. While it lasts,
// the queue stays as it is: there may be waiters if one of them is on its way, which will end it. `inside` is the
// favourite's own (favour_cell.hpp).
//
//  Favourite                                Any other thread, and the favourite when it must wait
//  F1 inside = this mutex; light fence      E1 word: favoured -> favoured | ending, by one of them; others wait
//  F2 still the favourite? then take it:    E2 favourite = none; heavy fence (not by the favourite's own worker)
//     held = 1 (unlock: held = 0)           E3 wait until inside is another
//  F3 inside = none (release)               E4 word = waiting and woken as they were, and locked
//                                              if held (release); continue with M1
//
// E1 acquires the word, and E3 `inside`: the latter brings what the favourite did under the mutex, and its last `held`,
// which nobody else writes before E4. So `held` carries no order.
//
// F1/F2 and E2/E3 cannot both miss each other (fence.hpp). A holder that got the mutex by favour and finds the favour
// gone at its unlock, or unlocks on another worker, unlocks by M4, after E4.
//
// Rejected: the favour from the first use on. Each mutex that two workers use, however short-lived, then paid a heavy
// fence.
#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/machine/backoff.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/sync/mutex.hpp>

#include <exception>
#include <string>

namespace ramie {

namespace {

/// How often a woken waiter may find the mutex taken, and how long it may have waited, until the mutex is handed to it.
/// Both are guesses; the time is Go's.
constexpr int passes_most = 8;
constexpr std::chrono::nanoseconds patience{1'000'000};

/// Looks at the word between pauses of growing length, 4 to 128 instructions: 252 pauses in all, some microseconds.
/// Each look takes the cache line away from the holder.
constexpr int spin_rounds = 6;

/// A woken waiter that finds the mutex taken looks again for this long, with pauses of up to 256 instructions. If it
/// suspended at once, the next unlock would wake it again: a slow unlock and a stolen fiber (with a heavy fence) every
/// few microseconds, for nothing.
constexpr std::uint64_t linger_us = 40;

void pause_in_round(int round) noexcept {
  for (int i = 4 << (round < 6 ? round : 6); i > 0; --i) detail::spin_pause();
}

/// Does this worker have other work?
bool others_are_ready(const detail::worker_base* w) noexcept {
  return w != nullptr && static_cast<const detail::worker*>(w)->ready.size() != 0;
}

std::string name_for_report() { return std::string{"fiber \""} + std::string{this_fiber::name()} + "\""; }

}  // namespace

void mutex::become_favourite(const detail::worker_base* w) noexcept {
  streak_ = 0;
  if (w == nullptr) return;
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  const bool unattended = (seen & (waiting | woken)) == waiting;
  if ((seen & busy) != 0 || (unattended && !RAMIE_PLANT(mutex_favour_unattended))) return;
  // Before the word says so. E1's compare-and-swap reads ours, so E2 and E4 are later in both modification orders.
  held_.store(true, std::memory_order_relaxed);
  favourite_.store(w->favours, std::memory_order_relaxed);
  const std::uint32_t next = (seen & ~locked) | favoured;
  if (word_.compare_exchange_strong(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  favourite_.store(nullptr, std::memory_order_relaxed);  // there is a waiter; no other thread writes it meanwhile
  held_.store(false, std::memory_order_relaxed);
}

void mutex::end_favour() noexcept {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  for (int round = 0; (seen & favoured) != 0;) {
    if ((seen & ending) == 0 && word_.compare_exchange_strong(seen, seen | ending, std::memory_order_acquire)) {
      const detail::favour_cell* const theirs = favourite_.load(std::memory_order_relaxed);
      favourite_.store(nullptr, std::memory_order_relaxed);
      if (const detail::worker_base* me = detail::current_worker(); me == nullptr || me->favours != theirs) {
        if (!RAMIE_PLANT(mutex_favour_no_fence)) detail::heavy_fence();
        for (int tries = 0; theirs->inside.load(std::memory_order_acquire) == this;) detail::pause_a_little(tries);
      }
      const bool is_held = held_.load(std::memory_order_relaxed);
      held_.store(false, std::memory_order_relaxed);
      wanted_ = wanted_again;
      word_.store((seen & (waiting | woken)) | (is_held ? locked : 0), std::memory_order_release);
      return;
    }
    detail::pause_a_little(round);
    seen = word_.load(std::memory_order_relaxed);
  }
}

bool mutex::try_lock_slowly() noexcept {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  for (;;) {
    if ((seen & favoured) != 0) {
      end_favour();
      seen = word_.load(std::memory_order_relaxed);
    } else if ((seen & locked) != 0) {
      return false;
    } else if (word_.compare_exchange_weak(seen, seen | locked, std::memory_order_acquire, std::memory_order_relaxed)) {
      acquired(detail::current_worker());
      return true;
    }
  }
}

/// Takes `busy` if it is off in `seen`, which is not favoured. Otherwise, or if the word has changed, loads it anew
/// after a pause and returns false; `round` counts the pauses.
bool mutex::take_queue(std::uint32_t& seen, int& round) noexcept {
  if ((seen & busy) == 0 &&
      word_.compare_exchange_weak(seen, seen | busy, std::memory_order_acquire, std::memory_order_relaxed))
    return true;
  detail::pause_a_little(round);
  seen = word_.load(std::memory_order_relaxed);
  return false;
}

/// M3. False if the mutex is free, or favoured, by now; then nothing was done.
bool mutex::enqueue(node& n, bool in_front, bool awake) noexcept {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  for (int round = 0;;) {
    if ((seen & locked) == 0) return false;
    if (take_queue(seen, round)) break;
  }
  if (in_front) queue_.push_front(n);
  else queue_.push_back(n);
  seen = word_.load(std::memory_order_relaxed);
  while ((seen & locked) != 0 || RAMIE_PLANT(mutex_unlock_unnoticed)) {
    // Release: the node and its wait, for the next holder of `busy`.
    const std::uint32_t next = ((seen & ~busy) | waiting) & (awake ? ~woken : ~0u);
    const auto order = RAMIE_PLANT(waiter_unordered) ? std::memory_order_relaxed : std::memory_order_release;
    if (word_.compare_exchange_weak(seen, next, order, std::memory_order_relaxed)) return true;
  }
  queue_.remove(n);
  const std::uint32_t off = busy | (queue_.empty() ? waiting : 0);
  word_.fetch_and(~off, std::memory_order_release);
  return false;
}

/// M7.
void mutex::dequeue(node& n) noexcept {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  for (int round = 0;;) {
    if ((seen & favoured) != 0) {
      end_favour();
      seen = word_.load(std::memory_order_relaxed);
    } else if (take_queue(seen, round)) {
      break;
    }
  }
  queue_.remove(n);
  const std::uint32_t off = busy | (queue_.empty() ? waiting : 0);
  word_.fetch_and(~off, std::memory_order_release);
}

/// Is the holder likely to run, on another CPU? Not if it got the mutex on this worker, or waits itself.
bool mutex::worth_spinning(const detail::worker_base* w) const noexcept {
  if (w != nullptr && last_.load(std::memory_order_relaxed) == w) return false;
  if (w != nullptr && static_cast<const detail::worker*>(w)->owner->keeps_together()) return false;
  const void* holder = owner_.load(std::memory_order_acquire);  // the descriptor was made before it became the holder
  if (holder == nullptr || detail::is_thread(holder)) return true;
  // Descriptors of stacks are never freed.
  const auto* s = static_cast<const detail::stack*>(holder);
  return !detail::is_parked(*s);
}

bool mutex::lock_slowly(const detail::steady_time* deadline, const std::source_location& where) {
  if (is_mine()) {
    if (deadline != nullptr) return false;
    relocked_ = true;
    throw usage_error{"ramie: mutex: " + name_for_report() +
                      " locks a mutex that it already holds (use recursive_mutex)"};
  }
  if (detail::worker_base* w = detail::current_worker(); w != nullptr) w->count_contended();
  const detail::owned_wait_site site{{detail::mutex_reason, where}, &owner_};
  detail::steady_time since{};
  bool awake = false;  // `woken` is on for this caller
  bool ended = false;  // a favour, by this caller
  int passes = 0;
  int round = 0;
  std::uint64_t since_cycles = detail::cycles();  // when the caller came, or was woken
  const auto may_linger = [&](const detail::worker_base* w) {
    return !others_are_ready(w) && detail::cycles() - since_cycles < detail::cycles_in_us(linger_us);
  };
  for (;;) {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    const detail::worker_base* const w = detail::current_worker();
    if ((seen & favoured) != 0) {
      // The first one at once. If there is a new one since, the mutex is much used, and ending each would cost more.
      if (ended && worth_spinning(w) && may_linger(w)) {
        pause_in_round(round++);
      } else {
        end_favour();
        ended = true;
      }
      continue;
    }
    if ((seen & locked) == 0) {  // M1, M5
      if (word_.compare_exchange_weak(seen, (seen | locked) & (awake ? ~woken : ~0u), std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        acquired(detail::current_worker());
        return true;
      }
      continue;
    }
    if ((round < spin_rounds || (awake && may_linger(w))) && worth_spinning(w)) {
      pause_in_round(round++);
      continue;
    }
    const auto now = detail::os_now();
    if (since == detail::steady_time{}) since = now;
    if (deadline != nullptr && now >= *deadline) {  // M7
      if (awake && !RAMIE_PLANT(mutex_woken_left_on) &&
          !word_.compare_exchange_strong(seen, seen & ~woken, std::memory_order_relaxed))
        continue;
      return false;
    }
    node n;
    n.starving = passes >= passes_most || now - since >= patience;
    detail::wait pause{detail::wait::kind::uninterruptible, site, detail::wait::wakers::under_one_lock};
    n.waiter = pause.ref();
    if (!enqueue(n, passes > 0, awake)) {
      pause.withdraw();  // no waker could claim it
      continue;
    }
    awake = false;
    detail::wake_reason why;
    try {
      why = deadline == nullptr ? pause.suspend() : pause.suspend_until(*deadline);
    } catch (...) {
      dequeue(n);
      throw;
    }
    if (why != detail::wake_reason::event) {
      dequeue(n);
      return false;
    }
    if (n.was_handed) {
      acquired(detail::current_worker());
      return true;
    }
    awake = true;
    ++passes;
    round = 0;
    since_cycles = detail::cycles();
  }
}

void mutex::unlock_slowly() noexcept {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  for (int round = 0;;) {
    if ((seen & favoured) != 0) {
      end_favour();
      seen = word_.load(std::memory_order_relaxed);
    } else if ((seen & waiting) == 0 || (seen & woken) != 0) {
      if (word_.compare_exchange_weak(seen, seen & ~locked, std::memory_order_release, std::memory_order_relaxed))
        return;
    } else if (take_queue(seen, round)) {
      break;
    }
  }
  // M4, M6.
  detail::claimed_wait first;
  bool hand_over = false;
  while (node* n = queue_.pop_front()) {
    first = detail::claim(n->waiter);
    if (!first) continue;  // ran out of time
    hand_over = n->starving;
    n->was_handed = hand_over;
    break;
  }
  const std::uint32_t off = busy | (queue_.empty() ? waiting : 0) | (hand_over ? 0 : locked);
  const std::uint32_t on = first && !hand_over ? woken : 0;
  seen = word_.load(std::memory_order_relaxed);
  while (!word_.compare_exchange_weak(seen, (seen & ~off) | on, std::memory_order_release, std::memory_order_relaxed)) {
  }
  if (first) first.go_on();
}

void mutex::unlocked_by_stranger() const {
  throw usage_error{"ramie: mutex: " + name_for_report() + " unlocks a mutex that it does not hold"};
}

void mutex::destroyed_in_use() const noexcept {
  const bool awaited = (word_.load(std::memory_order_relaxed) & waiting) != 0;
  if (!awaited && (relocked_ || (std::uncaught_exceptions() != 0 && is_mine()))) return;
  detail::fatal("a mutex was destroyed while it was held or waited for", __FILE__, __LINE__);
}

}  // namespace ramie
