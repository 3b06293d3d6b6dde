// Mutual exclusion for fibers and plain threads. The protocol is in mutex.cpp; here are the paths that do not wait.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/fence.hpp>
#include <ramie/queue/favour_cell.hpp>
#include <ramie/sync/identity.hpp>
#include <ramie/sync/timed.hpp>
#include <ramie/task/wait_list.hpp>

#include <cstdint>
#include <source_location>

namespace ramie {

/// As std::mutex: works with std::lock_guard, std::unique_lock, std::scoped_lock. Not recursive.
///
/// Waiting for it is not cancelled: a fiber that is asked to stop gets the mutex, and its next cancellable wait throws.
/// Not strictly fair: a caller that finds it free may take it before the waiters; but a waiter that has waited for 1
/// ms, or was passed over several times, is handed it next. It may be destroyed as soon as it is free, even if the
/// unlock that made it so has not returned; destroying one that is held, or waited for, ends the process, unless
/// an exception passes, or its holder has tried to lock it again: that error is the better one.
class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  ~mutex() {
    if (held_.load(std::memory_order_relaxed) || (word_.load(std::memory_order_relaxed) & (locked | waiting)) != 0)
        [[unlikely]]
      destroyed_in_use();
  }

  /// Suspends a fiber, blocks a plain thread, until the caller holds it. Throws usage_error if the caller holds it
  /// already.
  RAMIE_ALWAYS_INLINE void lock(std::source_location where = std::source_location::current()) {
    detail::worker_base* const w = detail::current_worker();
    if (!lock_as_favourite(w) && !lock_free_one(w)) [[unlikely]]
      lock_slowly(nullptr, where);
  }

  /// False if it is held. Does not suspend.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool try_lock() noexcept {
    detail::worker_base* const w = detail::current_worker();
    return lock_as_favourite(w) || lock_free_one(w) || try_lock_slowly();
  }

  /// Does not suspend. Throws usage_error if the caller does not hold it.
  RAMIE_ALWAYS_INLINE void unlock() {
    const detail::worker_base* const w = detail::current_worker();
    if (owner_.load(std::memory_order_relaxed) != detail::identity_on(w)) [[unlikely]]
      unlocked_by_stranger();
    // Before the mutex is free, so that no caller reads its own identity after it gave the mutex back.
    owner_.store(nullptr, std::memory_order_relaxed);
    if (unlock_as_favourite(w)) return;
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    // There is no waiter, or one is on its way already.
    if ((seen & favoured) != 0 || (seen & (waiting | woken)) == waiting ||
        !word_.compare_exchange_strong(seen, seen & ~locked, std::memory_order_release, std::memory_order_relaxed))
        [[unlikely]]
      unlock_slowly();
  }

  /// Internal: does the caller hold it?
  [[nodiscard]] bool is_mine() const noexcept { return owner_.load(std::memory_order_relaxed) == detail::identity(); }

 protected:
  /// False if the deadline, where there is one, came first.
  bool lock_slowly(const detail::steady_time* deadline, const std::source_location& where);
  bool lock_before(detail::steady_time deadline, const std::source_location& where) {
    return lock_slowly(&deadline, where);
  }

 private:
  struct node : detail::wait_node {
    bool starving = false;    // asks to be handed the mutex
    bool was_handed = false;  // and was handed it
  };
  static constexpr std::uint32_t locked = 1, busy = 2, waiting = 4, woken = 8, favoured = 16, ending = 32;

  /// F1 to F3. False if the worker is not the favourite, or `use` says so.
  template <class Use>
  RAMIE_ALWAYS_INLINE bool as_favourite(const detail::worker_base* w, Use use) noexcept {
    if (w == nullptr || favourite_.load(std::memory_order_relaxed) != w->favours) return false;
    // Release: E3 of a mutex used before may read it instead of that one's F3.
    w->favours->inside.store(this, std::memory_order_release);
    detail::light_fence();
    const bool done = favourite_.load(std::memory_order_relaxed) == w->favours && use();
    w->favours->inside.store(nullptr, std::memory_order_release);
    return done;
  }
  RAMIE_ALWAYS_INLINE bool lock_as_favourite(detail::worker_base* w) noexcept {
    return as_favourite(w, [&]() RAMIE_LAMBDA_INLINE {
      if (held_.load(std::memory_order_relaxed)) return false;
      held_.store(true, std::memory_order_relaxed);
      owner_.store(w->running, std::memory_order_release);
      w->count_lock();
      return true;
    });
  }
  RAMIE_ALWAYS_INLINE bool unlock_as_favourite(const detail::worker_base* w) noexcept {
    return as_favourite(w, [&]() RAMIE_LAMBDA_INLINE {
      held_.store(false, std::memory_order_relaxed);
      return true;
    });
  }
  RAMIE_ALWAYS_INLINE bool lock_free_one(detail::worker_base* w) noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    if ((seen & (locked | favoured)) != 0 ||
        !word_.compare_exchange_strong(seen, seen | locked, std::memory_order_acquire, std::memory_order_relaxed))
      return false;
    acquired(w);
    return true;
  }
  RAMIE_ALWAYS_INLINE void acquired(detail::worker_base* w) noexcept {
    if (w != nullptr) w->count_lock();
    owner_.store(detail::identity_on(w), std::memory_order_release);
    if (last_.load(std::memory_order_relaxed) != w) {
      last_.store(w, std::memory_order_relaxed);
      streak_ = 0;
    } else if (++streak_ >= wanted_) [[unlikely]] {
      become_favourite(w);
    }
  }

  /// Acquisitions in a row by one worker that make it the favourite. Until then a mutex costs atomic instructions, so a
  /// short-lived one never pays for the end of a favour. Before a later favour, atomic instructions must have cost
  /// about what its end will cost. The former is a guess.
  static constexpr std::uint32_t wanted_first = RAMIE_INTERLEAVE ? 2 : 64, wanted_again = RAMIE_INTERLEAVE ? 3 : 1024;

  RAMIE_NOINLINE bool try_lock_slowly() noexcept;
  RAMIE_NOINLINE void unlock_slowly() noexcept;
  void become_favourite(const detail::worker_base* w) noexcept;
  void end_favour() noexcept;
  [[noreturn]] void unlocked_by_stranger() const;
  void destroyed_in_use() const noexcept;
  bool take_queue(std::uint32_t& seen, int& round) noexcept;
  bool enqueue(node& n, bool in_front, bool awake) noexcept;
  void dequeue(node& n) noexcept;
  bool worth_spinning(const detail::worker_base* w) const noexcept;

  detail::atomic<detail::favour_cell*> favourite_{nullptr};  // whose; null: none
  detail::atomic<std::uint32_t> word_{0};
  std::uint32_t wanted_ = wanted_first;                       // written while the word is `ending`
  detail::atomic<const void*> owner_{nullptr};                // the holder (identity.hpp)
  detail::atomic<const detail::worker_base*> last_{nullptr};  // the worker on which it was taken last
  detail::atomic<bool> held_{false};                          // by way of the favour
  bool relocked_ = false;                                     // its holder was told so, once; written by that
  std::uint32_t streak_ = 0;                                  // belongs to the holder
  detail::wait_list<node> queue_;                             // belongs to the holder of `busy`
};

/// mutex with timed forms, as std::timed_mutex: they return false if it was not free in time.
class timed_mutex : mutex, public detail::timed_locks<timed_mutex> {
 public:
  using mutex::is_mine;
  using mutex::lock;
  using mutex::try_lock;
  using mutex::unlock;

 private:
  friend timed_locks;
};

}  // namespace ramie
