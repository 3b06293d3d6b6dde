#include <ramie/task/wait.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/machine/backoff.hpp>
#include <ramie/machine/fence.hpp>
#include <ramie/machine/futex.hpp>
#include <ramie/machine/thread_end.hpp>
#include <ramie/stack/system.hpp>
#include <ramie/task/refused.hpp>
#include <ramie/task/region.hpp>
#include <ramie/task/scheduling.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/timer_queue.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

namespace ramie::detail {

namespace {

using namespace wait_word;

/// How often a waker looks for the mark before it claims early (W6). A guess: longer than a fiber needs to switch,
/// shorter than the heavy fence that an early claim costs.
constexpr int looks_for_mark = RAMIE_INTERLEAVE ? 2 : 32;

constinit atomic<std::uint32_t> inspectors{0};

std::uint32_t claimed(std::uint32_t word, wake_reason reason) noexcept {
  return next_epoch(word) | (word & early) | static_cast<std::uint32_t>(reason) << reason_shift | running;
}

bool is_running_fiber(const stack& s) noexcept {
  const worker_base* w = current_worker();
  return w != nullptr && w->running == &s;
}

/// W6, by the waker. `word`: as it left the word.
RAMIE_COLD void go_on_early(stack* s, std::uint32_t word, std::uint32_t mark) noexcept {
  if (is_running_fiber(*s)) return;  // it claimed its own wait
  if (!RAMIE_PLANT(early_claim_no_fence)) heavy_fence();
  // Another waker may be claiming in vain. No mark: the fiber sees the claim before it leaves, or W3 does.
  if ((s->parked.load(std::memory_order_acquire) & ~claiming) != mark) return;
  if (s->wait_word.compare_exchange_strong(word, word & ~early, std::memory_order_relaxed) ||
      RAMIE_PLANT(early_claim_settled_twice))
    make_ready(s);
}

/// The winner of a claim resumes the waiter. `before`: as `take` returned it.
RAMIE_ALWAYS_INLINE void go_on(stack* s, std::uint32_t before, wake_reason reason) noexcept {
  if (s->top == nullptr) futex_wake(s->wait_word);
  else if ((before & early) == 0 || RAMIE_PLANT(waiter_woken_too_early)) [[likely]] make_ready(s);
  else go_on_early(s, claimed(before, reason), mark_of(before));
}

/// The only way to win a wait against competing threads: one step from the current `word` to `next(word)`. False if
/// the wait is over, or `wanted(word)` says that it is not the one meant. Spins while the wait is held, for the holder
/// may put it back: passing over it would lose the wake-up.
template <class Wanted, class Next>
RAMIE_ALWAYS_INLINE bool take(stack& s, std::uint32_t& word, Wanted wanted, Next next) noexcept {
  word = s.wait_word.load(std::memory_order_acquire);
  for (int round = 0, looks = 0;; word = s.wait_word.load(std::memory_order_acquire)) {
    if (!wanted(word)) return false;
    const std::uint32_t state = state_of(word);
    if (state == running) return false;
    if (state == held && !RAMIE_PLANT(held_wait_let_go_twice)) {
      pause_a_little(round);
      continue;
    }
    std::uint32_t as_seen = word;
    if (const std::uint32_t mark = s.parked.load(std::memory_order_acquire); mark != mark_of(word)) [[unlikely]] {
      if (mark == (mark_of(word) | claiming)) {
        pause_a_little(round);
        continue;
      }
      if (s.top != nullptr) {
        if (!is_running_fiber(s) && ++looks < looks_for_mark) {
          spin_pause();
          continue;
        }
        as_seen |= early;
      }
    }
    if (s.wait_word.compare_exchange_weak(word, next(as_seen), std::memory_order_acq_rel, std::memory_order_acquire)) {
      word = as_seen;
      return true;
    }
  }
}

/// For `take`: holds the wait, for a moment.
std::uint32_t hold(std::uint32_t word) noexcept { return (word & ~state_mask) | held; }

/// For `take`: ends the wait.
auto end_by(wake_reason reason) noexcept {
  return [reason](std::uint32_t word) { return claimed(word, reason); };
}

/// For `take`: only the wait that is meant, not a later one of the same fiber or thread.
auto is_wait(const waiter_ref& waiter) noexcept {
  return [epoch = waiter.epoch()](std::uint32_t word) { return epoch_of(word) == epoch; };
}

struct thread_stack : stack {
  /// It suspends without a deadline. Valid only while the word says that the wait is on, which may end
  /// long before the thread runs again.
  atomic<bool> for_good{false};
  thread_stack* made_before = nullptr;
};

/// Descriptors of plain threads: like those of stacks they are never freed, only reused. A wait must not fail for lack
/// of memory: a lock may be held around it. They are not from malloc: a reference to a wait has no place for the tag in
/// an address's high bits by which some allocators tell their blocks apart (aarch64).
class thread_descriptors {
 public:
  thread_stack* take() noexcept {
    for (;;) {
      {
        std::lock_guard guard{lock_};
        if (auto* s = static_cast<thread_stack*>(free_); s != nullptr) {
          free_ = s->next;
          return s;
        }
        if (thread_stack* s = make(); s != nullptr) {
          s->made_before = made_.load(std::memory_order_relaxed);
          made_.store(s, std::memory_order_release);  // pairs with the acquire in waiting
          return s;
        }
      }
      os_sleep(1'000'000);  // until memory is available again, or a thread ends
    }
  }
  void give(thread_stack* s) noexcept {
    std::lock_guard guard{lock_};
    s->next = free_;
    free_ = s;
  }
  [[nodiscard]] waiting_threads waiting() const noexcept {
    waiting_threads seen;
    for (const thread_stack* s = made_.load(std::memory_order_acquire); s != nullptr; s = s->made_before) {
      // The word first: the thread that armed it had already reset `for_good` after its previous wait.
      const std::uint32_t word = s->wait_word.load(std::memory_order_acquire);
      if ((word & state_mask) == armed && s->for_good.load(std::memory_order_acquire)) ++seen.count;
      seen.words += word;
    }
    return seen;
  }

 private:
  static constexpr std::size_t chunk_size = 4096;

  /// Null if there is no memory. Inside the lock.
  thread_stack* make() noexcept {
    if (chunk_left_ < sizeof(thread_stack)) {
      if (void* fresh = calls().map(chunk_size); fresh != nullptr) {
        chunk_at_ = static_cast<std::byte*>(fresh);
        chunk_left_ = chunk_size;
      } else {
        return spares_used_ < spares_.size() ? &spares_[spares_used_++] : nullptr;
      }
    }
    chunk_left_ -= sizeof(thread_stack);
    return ::new (std::exchange(chunk_at_, chunk_at_ + sizeof(thread_stack))) thread_stack{};
  }

  os_mutex lock_;
  stack* free_ = nullptr;
  std::byte* chunk_at_ = nullptr;
  std::size_t chunk_left_ = 0;
  atomic<thread_stack*> made_{nullptr};
  std::array<thread_stack, 32> spares_{};  // a guess
  std::size_t spares_used_ = 0;
};

constinit thread_descriptors all_thread_descriptors;

/// The calling thread's, until it ends. Destructors of thread_local variables may also wait, after it was given
/// back: then the thread takes another, and gives that back in turn.
thread_stack* thread_descriptor() {
  static thread_local constinit thread_stack* own = nullptr;
  if (own == nullptr) {
    own = all_thread_descriptors.take();
    const auto give = [](void*) { all_thread_descriptors.give(std::exchange(own, nullptr)); };
    // Without memory for that it stays taken: a descriptor is lost, but never shared by two threads.
    static_cast<void>(at_thread_end(give, nullptr));
  }
  return own;
}

}  // namespace

namespace {
RAMIE_NOINLINE bool take_and_hold(stack& s, const waiter_ref& waiter, std::uint32_t& before) noexcept {
  return take(s, before, is_wait(waiter), hold);
}
}  // namespace

claimed_wait claim(waiter_ref waiter, wake_reason reason) noexcept {
  claimed_wait won;
  stack& s = *waiter.who();
  won.reason_ = reason;
  const std::uint32_t word = s.wait_word.load(std::memory_order_relaxed);
  const std::uint32_t mark = mark_of(word);
  if ((word & (under_one_lock | state_mask)) == (under_one_lock | armed) && is_wait(waiter)(word) &&
      s.parked.load(std::memory_order_acquire) == mark) [[likely]] {  // W7
    s.parked.store(mark | claiming, std::memory_order_relaxed);
    light_fence();
    if ((inspectors.load(std::memory_order_acquire) == 0 || RAMIE_PLANT(claimed_beside_inspector)) &&
        s.wait_word.load(std::memory_order_acquire) == word) [[likely]] {
      won.before_ = (word & ~state_mask) | by_mark;
      won.who_ = &s;
      return won;
    }
    s.parked.store(mark, std::memory_order_release);
  }
  if (take_and_hold(s, waiter, won.before_)) won.who_ = &s;
  return won;
}

void claimed_wait::go_on() noexcept {
  // Copies: this object may lie on the waiter's stack, beside what was handed over, and is gone once the waiter
  // resumes.
  stack* const who = who_;
  const std::uint32_t before = before_;
  const wake_reason why = reason_;
  who->wait_word.store(claimed(before, why),
                       RAMIE_PLANT(claim_unordered) ? std::memory_order_relaxed : std::memory_order_release);
  if (state_of(before) == by_mark) [[likely]] {
    who->parked.store(mark_of(before), std::memory_order_relaxed);
    return make_ready(who);
  }
  detail::go_on(who, before, why);
}

bool wake(waiter_ref waiter, wake_reason reason) noexcept {
  std::uint32_t before;
  if (!take(*waiter.who(), before, is_wait(waiter), end_by(reason))) return false;
  go_on(waiter.who(), before, reason);
  return true;
}

inspection::inspection() noexcept {
  init_fences();  // a dump may come before the first runtime: the fence must be of the kind that wakers use
  inspectors.fetch_add(1, std::memory_order_relaxed);
  if (!RAMIE_PLANT(cancelled_unfenced)) heavy_fence();
}

inspection::~inspection() { inspectors.fetch_sub(1, std::memory_order_release); }

bool inspect_and_cancel(const inspection&, stack& s, bool (*ours)(const void*, const void*),
                        const void* context) noexcept {
  // Also if it is only just arming.
  const auto can_be_cancelled = [](std::uint32_t word) { return (word & cancellable) != 0; };
  std::uint32_t before;
  if (!take(s, before, can_be_cancelled, hold)) return false;
  const void* occupant = s.occupant.load(std::memory_order_relaxed);
  if (occupant == nullptr || !ours(context, occupant)) {
    s.wait_word.store(before & ~early, std::memory_order_release);
    return false;
  }
  s.wait_word.store(claimed(before, wake_reason::cancelled), std::memory_order_release);
  go_on(&s, before, wake_reason::cancelled);
  return true;
}

std::uint32_t try_hold_parked(const inspection&, stack& s) noexcept {
  std::uint32_t word = s.wait_word.load(std::memory_order_acquire);
  if (state_of(word) != armed || s.parked.load(std::memory_order_acquire) != mark_of(word) ||
      !s.wait_word.compare_exchange_strong(word, hold(word), std::memory_order_acq_rel))
    return 0;
  return word;
}

waiting_threads look_at_waiting_threads() noexcept { return all_thread_descriptors.waiting(); }

const char mutex_reason[] = "mutex";
const char ask_reason[] = "ask";
const char scope_reason[] = "scope";

RAMIE_NOINLINE void wait::begin_of_thread(kind k) noexcept {
  mode_ = mode::thread;
  in_flight_ = 0;
  self_ = thread_descriptor();
  since_ns_ = 0;
  time_ns_ = region::never;
  if (k == kind::cancellable) time_ns_ = limits_here().deadline_ns;
  arm(0);
}

// The rare cases are functions of their own, called last, so that the usual case saves no registers.
wait::wait(kind k, const wait_site& site, wakers by) noexcept : mode_{mode::fiber}, site_{&site} {
  worker_base* w = current_worker();
  if (w == nullptr || w->running == nullptr) [[unlikely]] {
    begin_of_thread(k);
    return;
  }
  time_ns_ = w->clock_ns.load(std::memory_order_relaxed);
  self_ = w->running;
  task* t = w->task_on_stack();
  RAMIE_ASSERT(t != nullptr, "a worker's own code tried to suspend");
  t->home.store(w, std::memory_order_relaxed);
  const std::uint32_t flags = static_cast<std::uint32_t>(k) | static_cast<std::uint32_t>(by);
  // A destructor that runs during stack unwinding must be able to wait without a second exception (limits_of).
  in_flight_ = w->exceptions->in_flight();
  if ((t->flags.load(std::memory_order_relaxed) & task::limited) != 0) [[unlikely]] {
    begin_limited(*t, k, flags);
    return;
  }
  arm(flags);
  if ((flags & cancellable) == 0) return;
  light_fence();
  if ((t->flags.load(std::memory_order_relaxed) & (task::stop_flag | task::limited)) != 0 ||
      w->draining.load(std::memory_order_relaxed)) [[unlikely]]
    look_at_limits(*t);
}

/// Strands come here too, most often with no limits around them.
RAMIE_NOINLINE void wait::begin_limited(task& t, kind k, std::uint32_t flags) noexcept {
  arm(flags);
  if (k != kind::cancellable) return;
  light_fence();
  if (!is_unlimited(t) || current_worker()->draining.load(std::memory_order_relaxed)) look_at_limits(t);
}

RAMIE_ALWAYS_INLINE void wait::arm(std::uint32_t flags) noexcept {
  const std::uint32_t word = self_->wait_word.load(std::memory_order_relaxed);
  ref_ = waiter_ref::of(self_, word);
  self_->waiting = this;
  if (epoch_of(word) == 0 && !RAMIE_PLANT(mark_outlives_epochs)) [[unlikely]]
    self_->parked.store(0, std::memory_order_relaxed);  // W8
  self_->wait_word.store((word & ~(epoch_unit - 1)) | flags | armed, std::memory_order_release);
}

RAMIE_NOINLINE void wait::look_at_limits(task& t) noexcept {
  const limits bounds = limits_of(t, in_flight_);
  if (bounds.deadline_ns != region::never) {
    since_ns_ = time_ns_;
    mode_ = mode::limited_fiber;
    time_ns_ = bounds.deadline_ns;
  }
  // Acquire: what was written before the shutdown, for the fiber that hears of it here.
  const bool draining = current_worker()->draining.load(std::memory_order_acquire);
  if (bounds.stopped || (draining && !bounds.shielded) || bounds.is_late()) {
    wake(ref_, wake_reason::cancelled);
    note_refused_wait(t, *site_);
  }
}

/// There will be a waker without the lock (W7).
void wait::admit_others() noexcept {
  std::uint32_t before;
  take(*self_, before, is_wait(ref_), [](std::uint32_t word) { return word & ~(under_one_lock | early); });
}

bool wait::withdraw() noexcept {
  std::uint32_t before;
  return take(*self_, before, is_wait(ref_), end_by(wake_reason::event));
}

wake_reason wait::suspend_slowly() {
  if (mode_ == mode::fiber) return suspend_fiber();
  if (time_ns_ == region::never) return suspend_thread_until(region::never);
  const wake_reason why = suspend_until_ns(time_ns_);
  return why == wake_reason::timeout ? wake_reason::cancelled : why;
}

wake_reason wait::suspend_fiber() {
  for (int round = 0;;) {
    const std::uint32_t word = self_->wait_word.load(std::memory_order_relaxed);
    const std::uint32_t state = state_of(word);
    if (state == held) {
      pause_a_little(round);
      continue;
    }
    if (state != armed || suspend_out_of_line(current_worker(), after_switch::park)) break;
    // No stack for the rest of the worker's work.
    if ((word & cancellable) != 0 && !limits_here().shielded) {
      if (!withdraw()) continue;
      throw resource_error{
          "ramie: cannot suspend: no stack available for the worker's other work (limits: vm.max_map_count, "
          "RLIMIT_AS, vm.overcommit_memory)",
          ENOMEM};
    }
    os_sleep(1'000'000);  // stalls this worker, as a plain thread would, until stacks are available again
  }
  return reason();
}

wake_reason wait::suspend_thread_until(std::int64_t deadline_ns) noexcept {
  for (int round = 0;;) {
    const std::uint32_t word = self_->wait_word.load(std::memory_order_relaxed);
    const std::uint32_t state = word & state_mask;
    if (state == held) {
      pause_a_little(round);
    } else if (state != armed) {
      return reason();
    } else if (deadline_ns == region::never) {
      atomic<bool>& for_good = static_cast<thread_stack*>(self_)->for_good;
      for_good.store(true, std::memory_order_release);
      futex_wait(self_->wait_word, word);
      for_good.store(false, std::memory_order_relaxed);  // published by arming the word again
    } else {
      const std::int64_t now = now_ns();  // compared, not subtracted first: a deadline may be the clock's first moment
      if (deadline_ns <= now) wake(ref_, wake_reason::timeout);
      else futex_wait(self_->wait_word, word, deadline_ns - now);
    }
  }
}

wake_reason wait::suspend_until_ns(std::int64_t deadline_ns) {
  if (mode_ == mode::thread) return suspend_thread_until(deadline_ns);
  admit_others();
  timer_node timer;
  timer.waiter = ref_;
  try {
    current_worker()->timers_here->add(timer, deadline_ns);
  } catch (...) {
    if (withdraw()) throw;
    return suspend_fiber();
  }
  try {
    const wake_reason why = suspend_fiber();
    if (why != wake_reason::timeout) timer.queue->remove(timer);
    return why;
  } catch (...) {
    timer.queue->remove(timer);
    throw;
  }
}

wake_reason wait::suspend_until(steady::time_point deadline) {
  const std::int64_t deadline_ns = to_ns(deadline);
  if (mode_ == mode::fiber || time_ns_ > deadline_ns) return suspend_until_ns(deadline_ns);
  // The region's end comes first.
  return suspend_slowly();
}

}  // namespace ramie::detail
