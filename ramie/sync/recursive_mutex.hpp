// Mutexes that their holder may lock again.
#pragma once

#include <ramie/sync/mutex.hpp>

#include <cstdint>
#include <source_location>

namespace ramie {

/// As std::recursive_mutex: released by the last unlock. The holder is a fiber or a plain thread; a fork job that
/// another worker took is another caller than the fiber that forked it. Otherwise as `mutex`.
class recursive_mutex {
 public:
  constexpr recursive_mutex() noexcept = default;
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;

  /// Suspends until the caller holds it. Throws usage_error after 4,294,967,295 locks.
  void lock(std::source_location where = std::source_location::current()) {
    if (!mutex_.is_mine()) mutex_.lock(where);
    deeper();
  }
  /// False if another caller holds it. Does not suspend.
  [[nodiscard]] bool try_lock() {
    if (!mutex_.is_mine() && !mutex_.try_lock()) return false;
    deeper();
    return true;
  }
  /// Does not suspend. Throws usage_error if the caller does not hold it.
  void unlock() {
    if (mutex_.is_mine() && depth_ > 1) --depth_;
    else if (mutex_.is_mine()) depth_ = 0, mutex_.unlock();
    else mutex_.unlock();  // reports the misuse
  }

 protected:
  bool lock_before(detail::steady_time deadline, const std::source_location& where) {
    if (!mutex_.is_mine() && !mutex_.try_lock_until(deadline, where)) return false;
    deeper();
    return true;
  }

 private:
  void deeper() {
    if (depth_ == 0xffff'ffff) [[unlikely]]
      throw_too_deep();
    ++depth_;
  }
  [[noreturn]] static void throw_too_deep();

  timed_mutex mutex_;
  std::uint32_t depth_ = 0;  // belongs to the holder
};

/// recursive_mutex with timed forms, as std::recursive_timed_mutex: they return false if it was not free in time.
class recursive_timed_mutex : recursive_mutex, public detail::timed_locks<recursive_timed_mutex> {
 public:
  using recursive_mutex::lock;
  using recursive_mutex::try_lock;
  using recursive_mutex::unlock;

 private:
  friend timed_locks;
};

}  // namespace ramie
