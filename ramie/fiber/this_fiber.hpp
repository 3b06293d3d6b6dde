// What the running fiber may ask and do about itself. All of it works on plain threads too.
#pragma once

#include <ramie/base/deadline.hpp>
#include <ramie/fiber/id.hpp>
#include <ramie/sched/current.hpp>
#include <ramie/sched/suspend.hpp>

#include <chrono>
#include <source_location>
#include <string_view>
#include <thread>

namespace ramie::this_fiber {

/// Lets other ready fibers of this worker run first. On a plain thread: std::this_thread::yield. Suspends. No error.
RAMIE_ALWAYS_INLINE void yield() noexcept {
  if (detail::fork_deque* w = detail::current_forks(); w != nullptr) [[likely]]
    detail::yield_here(w);
  else std::this_thread::yield();
}

/// Suspends (a plain thread: blocks) until the deadline. Throws `cancelled` if the fiber is asked to stop,
/// std::bad_alloc.
void sleep_until(std::chrono::steady_clock::time_point deadline,
                 std::source_location where = std::source_location::current());

template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> deadline,
                 std::source_location where = std::source_location::current());

/// As sleep_until(now + duration); durations too long for the clock never end.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration,
               std::source_location where = std::source_location::current()) {
  sleep_until(detail::time_after(duration), where);
}

template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> deadline, std::source_location where) {
  // Clocks other than the steady one may be set meanwhile: look again.
  for (auto now = Clock::now(); now < deadline; now = Clock::now()) sleep_for(deadline - now, where);
}

/// The running fiber; on a plain thread, an id of the thread's.
[[nodiscard]] fiber_id get_id() noexcept;

/// The name from fiber_options, or "". Valid as long as the fiber.
[[nodiscard]] std::string_view name() noexcept;

/// True if the fiber was asked to stop, or its runtime shuts down. False on a plain thread.
[[nodiscard]] bool stop_requested() noexcept;

/// Throws `cancelled` if stop_requested().
void throw_if_stopped();

}  // namespace ramie::this_fiber
