// Suspending and waking: one word per stack decides which waker wakes it, and that it is woken once. wait_word.hpp has
// the word, and the whole protocol.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/stack/stack.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/suspend.hpp>
#include <ramie/task/wait_word.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <source_location>

namespace ramie::detail {

struct task;

using steady = std::chrono::steady_clock;

enum class wake_reason : std::uint32_t { event = 0, timeout = 1, cancelled = 2 };

/// Names one wait of one stack in 64 bits: a stack's address with 22 bits of epoch in the bits that addresses leave
/// free (6 low ones by alignment, 16 high ones by the 48-bit user address space). Zero names none.
class waiter_ref {
 public:
  waiter_ref() noexcept = default;
  waiter_ref(const stack* s, std::uint32_t epoch) noexcept
      : bits_{reinterpret_cast<std::uintptr_t>(s) | (epoch & 0x3f) | (std::uint64_t{epoch >> 6 & 0xffff} << 48)} {}
  /// The wait that `word` of `s` is about.
  static waiter_ref of(const stack* s, std::uint32_t word) noexcept {
    static_assert(wait_word::epoch_shift == 10);  // so the 16 high bits only need a shift
    return from_bits(reinterpret_cast<std::uintptr_t>(s) | (word >> wait_word::epoch_shift & 0x3f) |
                     std::uint64_t{word & 0xffff'0000u} << 32);
  }
  static waiter_ref from_bits(std::uint64_t bits) noexcept {
    waiter_ref ref;
    ref.bits_ = bits;
    return ref;
  }
  [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] stack* who() const noexcept { return reinterpret_cast<stack*>(bits_ & 0x0000'ffff'ffff'ffc0u); }
  [[nodiscard]] std::uint32_t epoch() const noexcept {
    return static_cast<std::uint32_t>((bits_ & 0x3f) | (bits_ >> 48 << 6));
  }
  explicit operator bool() const noexcept { return bits_ != 0; }

 private:
  std::uint64_t bits_ = 0;
};

/// What a wait is for and where, for reports: lives as long as the wait.
struct wait_site {
  const char* reason;          // "channel receive", "mutex", ...
  std::source_location where;  // line 0: not known
};

/// The wait of a mutex: its owner is known as well. Recognised by its reason, the pointer.
struct owned_wait_site : wait_site {
  const atomic<const void*>* owner;  // sync/identity.hpp
};
extern const char mutex_reason[];  // of each owned_wait_site

/// The wait of one who asks an actor; the actor is known as well. Recognised likewise. It outlives the wait.
struct asking_wait_site : wait_site {
  const task* asked;  // null: another may answer, or it may later
};
extern const char ask_reason[];  // of each asking_wait_site

/// The wait of a scope's owner for those children that are fibers of their own. Recognised likewise.
struct scope_wait_site : wait_site {
  const void* scope;  // scope_place::of_scope of each child
};
extern const char scope_reason[];  // of each scope_wait_site

/// What is known of a wait, for reports.
struct wait_facts {
  const wait_site* site;
  std::int64_t since_ns;  // by the worker's clock, about a millisecond late at most; see worker_base::clock_ns
};

/// Claims the wait (W4) and resumes the waiter. False if it was over already. Any thread; does not suspend.
bool wake(waiter_ref waiter, wake_reason reason = wake_reason::event) noexcept;

/// A wait that the caller has won and now holds.
class claimed_wait {
 public:
  claimed_wait() noexcept = default;
  [[nodiscard]] explicit operator bool() const noexcept { return who_ != nullptr; }
  /// Resumes the waiter. Once, and soon: competing threads spin meanwhile.
  void go_on() noexcept;

 private:
  friend claimed_wait claim(waiter_ref, wake_reason) noexcept;
  stack* who_ = nullptr;
  std::uint32_t before_ = 0;
  wake_reason reason_ = wake_reason::event;
};

/// The first half of `wake`, for wakers that hand something over. Empty if the wait was over already. Any thread, with
/// the lock held if the wait is one of wakers::under_one_lock; does not suspend.
[[nodiscard]] claimed_wait claim(waiter_ref waiter, wake_reason reason = wake_reason::event) noexcept;

/// True if the wait is over, or as good as: a waker has claimed it. Any thread.
[[nodiscard]] inline bool is_over(waiter_ref waiter) noexcept;

/// While one exists, wakers under a lock claim like all others (W7): inspectors may claim and hold. Begins with a
/// heavy fence. Any thread; does not suspend.
class inspection {
 public:
  inspection() noexcept;
  ~inspection();
  inspection(const inspection&) = delete;
  inspection& operator=(const inspection&) = delete;
};

/// Claims the cancellable wait that `s` is in, if `ours(occupant)` says so; the occupant stays in place meanwhile. True
/// if it did. Any thread; does not suspend. Such a wait may be shielded: limits_of_wait (region.hpp) knows.
bool inspect_and_cancel(const inspection& during, stack& s, bool (*ours)(const void* context, const void* occupant),
                        const void* context) noexcept;

/// Holds `s` if it is parked; 0, without effect, if it is not, or a waker is about to wake it. Then
/// `let_stand` restores what this returned. Any thread, also within signal handlers; does not wait.
[[nodiscard]] std::uint32_t try_hold_parked(const inspection& during, stack& s) noexcept;
inline void let_stand(stack& s, std::uint32_t held) noexcept { s.wait_word.store(held, std::memory_order_release); }

/// The waits of plain threads. A look takes time: only what two looks find unchanged held in between.
struct waiting_threads {
  std::size_t count = 0;    // threads that wait without a deadline and have not been woken yet
  std::uint64_t words = 0;  // changes with each wait that begins or ends
};
/// Any thread.
[[nodiscard]] waiting_threads look_at_waiting_threads() noexcept;

/// One suspension of the calling fiber or plain thread. Lives on its stack.
class wait {
 public:
  enum class kind : std::uint32_t { uninterruptible = 0, cancellable = wait_word::cancellable };
  /// Which wakers may claim it, apart from inspectors. under_one_lock: the reference is in a single place, all wakers
  /// hold the lock of that place, and the waiter takes that lock before it waits again, unless an event claimed it.
  enum class wakers : std::uint32_t { any = 0, under_one_lock = wait_word::under_one_lock };

  /// Of a wait whose stack is held.
  [[nodiscard]] static wait_facts facts(const wait& held) noexcept {
    return {held.site_, held.mode_ == mode::fiber ? held.time_ns_ : held.since_ns_};
  }

  /// Arms (W1). A cancellable wait of a fiber that was asked to stop is over at once, with wake_reason::cancelled;
  /// while the fiber unwinds, only a deadline or a scope that was opened since ends it (region.hpp).
  explicit wait(kind k, const wait_site& site = unknown_site, wakers by = wakers::any) noexcept;
  wait(const wait&) = delete;
  wait& operator=(const wait&) = delete;

  [[nodiscard]] waiter_ref ref() const noexcept { return ref_; }
  /// Exceptions in flight on the waiter when it began. Its own thread, or with the stack held.
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }

  /// Withdraws the wait before `suspend`. False if it was claimed: then `suspend` returns at once, and must be called.
  bool withdraw() noexcept;

  /// Suspends until claimed (W3 to W5). The caller turns `cancelled` into an exception after it has cleaned up.
  /// Throws resource_error if the wait is cancellable and there is no stack for other work; the wait is then
  /// withdrawn.
  RAMIE_ALWAYS_INLINE wake_reason suspend() {
    if (mode_ == mode::fiber &&
        (self_->wait_word.load(std::memory_order_relaxed) & wait_word::state_mask) == wait_word::armed) [[likely]] {
      if (suspend_here(current_worker(), after_switch::park)) [[likely]]
        return reason();
    }
    return suspend_slowly();
  }
  /// As above, no later than `deadline`: then wake_reason::timeout.
  wake_reason suspend_until(steady::time_point deadline);

 private:
  friend struct debug_access;
  [[nodiscard]] wake_reason reason() const noexcept {
    return static_cast<wake_reason>(self_->wait_word.load(std::memory_order_acquire) >> wait_word::reason_shift &
                                    wait_word::reason_mask);
  }
  enum class mode : std::uint8_t { fiber, limited_fiber, thread };

  wake_reason suspend_slowly();
  wake_reason suspend_fiber();
  wake_reason suspend_thread_until(std::int64_t deadline_ns) noexcept;
  wake_reason suspend_until_ns(std::int64_t deadline_ns);
  void arm(std::uint32_t flags) noexcept;
  void begin_of_thread(kind k) noexcept;
  void begin_limited(task& t, kind k, std::uint32_t flags) noexcept;
  void admit_others() noexcept;
  void look_at_limits(task& t) noexcept;

  static constexpr wait_site unknown_site{"unknown", {}};

  stack* self_;
  waiter_ref ref_;
  mode mode_;
  std::uint32_t in_flight_;
  // In mode::fiber: when it began. Otherwise: the limit of the enclosing regions.
  std::int64_t time_ns_;
  const wait_site* site_;
  std::int64_t since_ns_;  // unless mode::fiber: when it began
};

inline bool is_over(waiter_ref waiter) noexcept {
  const std::uint32_t word = waiter.who()->wait_word.load(std::memory_order_acquire);
  const std::uint32_t state = word & wait_word::state_mask;
  return wait_word::epoch_of(word) != waiter.epoch() || state == wait_word::running;
}

}  // namespace ramie::detail
