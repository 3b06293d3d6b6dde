// What the running fiber can do and learn about itself, its identity among it. All of it works on plain threads, too.
#pragma once

#include <ramie/base/deadline.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/suspend.hpp>

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <source_location>
#include <string_view>
#include <thread>

namespace ramie {

/// Unique among live fibers and threads; may be reused after the fiber and its handle are gone. A default-constructed
/// one identifies none. Functions of fork_join and children of a scope share the identity of their owner.
class fiber_id {
 public:
  fiber_id() noexcept = default;
  explicit fiber_id(const void* address) noexcept : address_{address} {}
  friend bool operator==(fiber_id, fiber_id) noexcept = default;
  friend std::strong_ordering operator<=>(fiber_id a, fiber_id b) noexcept {
    return std::compare_three_way{}(a.address_, b.address_);
  }
  friend std::ostream& operator<<(std::ostream& out, fiber_id id) { return out << id.address_; }

 private:
  friend struct std::hash<fiber_id>;
  const void* address_ = nullptr;
};

}  // namespace ramie

template <>
struct std::hash<ramie::fiber_id> {
  std::size_t operator()(ramie::fiber_id id) const noexcept { return std::hash<const void*>{}(id.address_); }
};

namespace ramie::this_fiber {

/// Lets other ready fibers of this worker run first. May suspend; does not throw and is not cancelled. On a plain
/// thread: std::this_thread::yield.
RAMIE_ALWAYS_INLINE void yield() noexcept {
  if (detail::worker_base* w = detail::current_worker(); w != nullptr) [[likely]]
    detail::yield_here(w);
  else std::this_thread::yield();
}

/// Suspends (a plain thread: blocks) until the deadline. Throws `cancelled` if the fiber is asked to stop,
/// std::bad_alloc.
void sleep_until(std::chrono::steady_clock::time_point deadline,
                 std::source_location where = std::source_location::current());

/// The same for any other clock. If that clock is set meanwhile, the sleep is adjusted when it would have ended.
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> deadline,
                 std::source_location where = std::source_location::current());

/// Same as sleep_until(now + duration); a duration too long for the clock never ends.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration,
               std::source_location where = std::source_location::current()) {
  sleep_until(detail::time_after(duration), where);
}

template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> deadline, std::source_location where) {
  // Clocks other than the steady one may be set meanwhile: look again.
  for (auto left = detail::time_left(deadline); left != left.zero(); left = detail::time_left(deadline))
    sleep_for(left, where);
}

/// Returns those pages of the fiber's stack to the system that are deeper than the caller's frame: for a fiber that is
/// about to wait for long, and has called something deep before. A system call; each page that is needed again costs 1
/// to 2 us. Does nothing on a plain thread, and while stacks are painted. Does not suspend.
void trim_stack() noexcept;

/// The id of the running fiber; on a plain thread, an id of that thread. Does not suspend.
[[nodiscard]] fiber_id get_id() noexcept;

/// The name from fiber_options; a function passed to fork_join, and a child of a scope without a name, has its owner's.
/// "" if there is none. Valid as long as the fiber.
[[nodiscard]] std::string_view name() noexcept;

/// True if the caller's next cancellable wait would throw `cancelled`: after request_stop, a deadline, a failed or
/// cancelled scope, or once the runtime shuts down, unless a `shield` lies between. On a plain thread only deadlines
/// count. Does not suspend.
[[nodiscard]] bool stop_requested() noexcept;

/// Why the caller is asked to stop.
enum class stop_cause : std::uint8_t {
  none,       ///< it is not
  requested,  ///< join_handle::request_stop, of the fiber or an ancestor, or the destructor of its handle
  deadline,   ///< with_timeout, with_deadline, cancel_scope
  scope,      ///< a scope around it was cancelled, or failed; a cancel_scope was cancelled
  shutdown,   ///< the runtime ends
};

/// If there are several causes, the first in the list above. In a handler of `cancelled`, `none` means that the
/// exception came from another fiber, which the caller joined. Any thread; does not suspend.
[[nodiscard]] stop_cause why_stopped() noexcept;

/// The earliest deadline that ends the caller's waits, if there is one. Any thread; does not suspend.
[[nodiscard]] std::optional<std::chrono::steady_clock::time_point> deadline() noexcept;

/// Throws `cancelled` if stop_requested(). Does not suspend.
void throw_if_stopped();

}  // namespace ramie::this_fiber
