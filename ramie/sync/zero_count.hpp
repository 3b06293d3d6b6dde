// What latch and wait_group have in common: a count, and the waiters until it is zero.
#pragma once

#include <ramie/sync/timed.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace ramie::detail {

/// `what`: "latch", say. Throws invalid_argument.
[[noreturn]] void throw_bad_count(const char* what, std::ptrdiff_t count, std::ptrdiff_t most);
/// The count, if it is from 0 to `most`.
[[nodiscard]] constexpr std::uint64_t checked_count(const char* what, std::ptrdiff_t count, std::ptrdiff_t most) {
  if (count < 0 || count > most) throw_bad_count(what, count, most);
  return static_cast<std::uint64_t>(count);
}

/// Waits with the lock of `queue` free, as `site` says, until the number is zero: false if the deadline came first.
bool await_zero(wait_queue& queue, const wait_site& site, steady_time deadline);

/// Self::kind is its name in reports.
template <class Self>
class zero_count : public timed_waits<Self> {
 public:
  zero_count(const zero_count&) = delete;
  zero_count& operator=(const zero_count&) = delete;

  /// True if the count is zero.
  [[nodiscard]] bool try_wait() const noexcept { return queue_.is(0); }

  /// Suspends until the count is zero. Throws `cancelled`, resource_error.
  RAMIE_ALWAYS_INLINE void wait(std::source_location where = std::source_location::current()) {
    ready_point();
    if (try_wait()) return;
    if (const std::uint64_t left = queue_.lock(); left == 0) queue_.unlock(0);
    else queue_.unlock_and_wait(left, {Self::kind, where}, [this, where] { wait(where); });
  }

 protected:
  constexpr explicit zero_count(std::uint64_t count) noexcept : queue_{count} {}
  ~zero_count() = default;

  wait_queue queue_;  // the number: the count

 private:
  friend timed_waits<Self>;
  friend struct waitable_access;
  bool wait_before(steady_time deadline, const std::source_location& where) {
    return await_zero(queue_, {Self::kind, where}, deadline);
  }
};

}  // namespace ramie::detail
