// A word says how the mutex is; a queue holds those who wait; a favour spares the worker that alone uses it all atomic
// instructions.
//
//   word = locked | busy | waiting | woken | favoured | ending
//
// Without a favour:
//  M1 Whoever turns `locked` on has the mutex, first come, first served: those who wait are not asked ("barging"). A
//     holder that goes on using it loses no time to a switch that way.
//  M2 `busy` guards the queue, for a few dozen instructions. `waiting` is on when the queue is not empty.
//  M3 Who finds it locked spins a little if the holder is likely to run on another CPU. Then he takes `busy`, arms,
//     links his node, and gives `busy` back with `waiting` on, all in one step that succeeds only while `locked` is on:
//     so the holder's unlock is still to come, and will see it. Then he suspends.
//  M4 Unlock finds `waiting`: it takes `busy`, unlinks and claims the first, and turns `busy` and `locked` off and `woken`
//     on, in one step; then it lets the claimed one go on. That step is the last that touches the mutex: whoever takes
//     it next may destroy it. While `woken` is on no unlock wakes another: one at a time is on his way.
//  M5 The woken one tries M1; he turns `woken` off when he has the mutex, or in the step of M3 in which he queues up again,
//     in front this time. So at any time that the mutex is free and somebody waits, somebody is on his way.
//  M6 After `passes_most` futile attempts, or 1 ms, he marks his node `starving`. Unlock then claims it and leaves
//     `locked` on: the mutex is his before he runs.
//  M7 Who runs out of time unlinks himself under `busy`. If he was woken and then ran out of time, he turns `woken` off
//     while `locked` is on, and the holder will see to the others.
//
// The favour (Dice, Moir, Scherer, "Quickly reacquirable locks", 2003): after 64 acquisitions in a row on one worker
// the word becomes `favoured` for as long as no other worker or plain thread comes, and `held_` says whether the mutex
// is held. Ending it costs a heavy fence, so the next favours are for 1024 in a row, which have cost as much. While it
// lasts, the queue stays as it is: some may wait if somebody is on his way, who will end it. `inside` is the
// favourite's own (favour_cell.hpp).
//
//  Favourite                                Anybody else, and the favourite who must wait
//  F1 inside = this mutex; light fence      E1 word: favoured -> favoured | ending, by one of them; others wait
//  F2 still the favourite? then take it:    E2 favourite = nobody; heavy fence (not by the favourite's own worker)
//     held = 1 (unlock: held = 0)           E3 wait until inside is another
//  F3 inside = none (release)               E4 word = waiting and woken as they were, and locked
//                                              if held (release); go on with M1
//
// F1/F2 and E2/E3 cannot both miss each other (fence.hpp). A holder that got the mutex by favour and finds the favour
// gone at its unlock, or unlocks on another worker, goes by M4, after E4.
//
// Rejected: the favour from the first use on. Each mutex that two workers use, however short it lives, paid a heavy
// fence then.
#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/sched/backoff.hpp>
#include <ramie/sched/cycles.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/sync/mutex.hpp>
#include <ramie/sync/recursive_mutex.hpp>

#include <string>

namespace ramie {

namespace {

/// How often one who was woken may find the mutex taken, and how long he may have waited, until it is handed to him.
/// Both guesses; the time is Go's.
constexpr int passes_most = 8;
constexpr std::chrono::nanoseconds patience{1'000'000};

/// Looks at the word between pauses of growing length, 4 to 128 instructions: 252 pauses in all, some microseconds.
/// Each look takes the cache line away from the holder.
constexpr int spin_rounds = 6;

/// So long goes on looking, with pauses of up to 256 instructions, who was woken and came too late. If he suspended at
/// once, the next unlock would wake him again: a slow unlock and a stolen fiber (with a heavy fence) every few
/// microseconds, for nothing.
constexpr std::uint64_t linger_us = 40;

void pause_in_round(int round) noexcept {
  for (int i = 4 << (round < 6 ? round : 6); i > 0; --i) detail::spin_pause();
}

/// Has this worker something else to do?
bool others_are_ready(const detail::fork_deque* w) noexcept {
  return w != nullptr && static_cast<const detail::worker*>(w)->ready.size() != 0;
}

std::string name_for_report() { return std::string{"fiber \""} + std::string{this_fiber::name()} + "\""; }

}  // namespace

namespace detail {

const void* thread_identity() noexcept {
  static thread_local std::uint64_t own_address;
  return reinterpret_cast<const char*>(&own_address) + 1;
}

}  // namespace detail

void mutex::become_favourite(const detail::fork_deque* w) noexcept {
  streak_ = 0;
  if (w == nullptr) return;
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  const bool unattended = (seen & (waiting | woken)) == waiting;
  if ((seen & busy) != 0 || (unattended && !RAMIE_PLANT(mutex_favour_unattended))) return;
  // All in place before the word says so: E2, whose compare-and-swap reads this one, is later in each of them.
  held_.store(true, std::memory_order_relaxed);
  favourite_.store(w->favours, std::memory_order_relaxed);
  const std::uint32_t next = (seen & ~locked) | favoured;
  if (word_.compare_exchange_strong(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  favourite_.store(nullptr, std::memory_order_relaxed);  // somebody waits; nobody else writes it meanwhile
  held_.store(false, std::memory_order_relaxed);
}

void mutex::end_favour() noexcept {
  std::uint32_t seen = word_.load(std::memory_order_acquire);
  for (int round = 0; (seen & favoured) != 0;) {
    if ((seen & ending) == 0 && word_.compare_exchange_strong(seen, seen | ending, std::memory_order_acquire)) {
      const detail::favour_cell* const theirs = favourite_.load(std::memory_order_relaxed);
      favourite_.store(nullptr, std::memory_order_relaxed);
      if (const detail::fork_deque* me = detail::current_forks(); me == nullptr || me->favours != theirs) {
        if (!RAMIE_PLANT(mutex_favour_no_fence)) detail::heavy_fence();
        for (int tries = 0; theirs->inside.load(std::memory_order_acquire) == this;) detail::pause_a_little(tries);
      }
      const bool is_held = held_.load(std::memory_order_acquire);
      held_.store(false, std::memory_order_relaxed);
      wanted_ = wanted_again;
      word_.store((seen & (waiting | woken)) | (is_held ? locked : 0), std::memory_order_release);
      return;
    }
    detail::pause_a_little(round);
    seen = word_.load(std::memory_order_acquire);
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
      acquired(detail::current_forks());
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
    // Release: the node and its wait, for whoever takes `busy` next.
    const std::uint32_t next = ((seen & ~busy) | waiting) & (awake ? ~woken : ~0u);
    if (word_.compare_exchange_weak(seen, next, std::memory_order_release, std::memory_order_relaxed)) return true;
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

/// Is the holder likely to run, on another CPU? Not if it got the mutex on this worker, nor if it waits itself.
bool mutex::worth_spinning(const detail::fork_deque* w) const noexcept {
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
    throw usage_error{"ramie: mutex: " + name_for_report() +
                      " locks it and holds it already; it would wait for itself (use recursive_mutex)"};
  }
  if (detail::fork_deque* w = detail::current_forks(); w != nullptr) w->count_contended();
  const detail::owned_wait_site site{{detail::mutex_reason, where}, &owner_};
  detail::steady_time since{};
  bool awake = false;  // woken is on for us
  bool ended = false;  // a favour, by us
  int passes = 0;
  int round = 0;
  std::uint64_t since_cycles = detail::cycles();  // when he came, or was woken
  const auto may_linger = [&](const detail::fork_deque* w) {
    return !others_are_ready(w) && detail::cycles() - since_cycles < detail::cycles_in_us(linger_us);
  };
  for (;;) {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    const detail::fork_deque* const w = detail::current_forks();
    if ((seen & favoured) != 0) {
      // Once at once. If there is a new one since, the mutex is much in use, and an end for each look would cost more.
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
        acquired(detail::current_forks());
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
      if (awake && !word_.compare_exchange_strong(seen, seen & ~woken, std::memory_order_relaxed)) continue;
      return false;
    }
    node n;
    n.starving = passes >= passes_most || now - since >= patience;
    detail::wait pause{detail::wait::kind::uninterruptible, site, detail::wait::wakers::under_one_lock};
    n.waiter = pause.ref();
    if (!enqueue(n, passes > 0, awake)) {
      pause.withdraw();  // nobody could claim it
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
      acquired(detail::current_forks());
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
  throw usage_error{"ramie: mutex: " + name_for_report() + " unlocks it and does not hold it"};
}

void mutex::destroyed_in_use() const noexcept {
  detail::fatal("a mutex is destroyed while somebody holds it or waits for it", __FILE__, __LINE__);
}

void recursive_mutex::throw_too_deep() { throw usage_error{"ramie: recursive_mutex: locked too often"}; }

}  // namespace ramie
