// Deadlines and shields around stretches of code. How they reach waits: ramie/task/region.hpp.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/base/deadline.hpp>
#include <ramie/base/error.hpp>
#include <ramie/context/no_throw.hpp>
#include <ramie/task/region.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

/// Opens a region for a block.
class region_guard {
 public:
  explicit region_guard(std::int64_t deadline_ns) {
    region_.deadline_ns = deadline_ns;
    open_region(region_);
  }
  region_guard() {
    region_.shield = true;
    open_region(region_);
  }
  region_guard(const region_guard&) = delete;
  region_guard& operator=(const region_guard&) = delete;
  ~region_guard() { close_region(region_); }

 private:
  region region_;
};

/// Did this deadline alone end a wait, and nothing outside of it? To be called when the region is closed.
[[nodiscard]] bool only_late(std::int64_t deadline_ns);
[[noreturn]] void throw_timeout();

/// f(), in a frame of its own. A region and the forks inside or around it are distinguished by their places on the
/// stack (region.hpp): in one frame the compiler could lay them out in either order. So what opens the region must not
/// become part of its caller, nor what runs inside it part of what opens it.
template <class F>
RAMIE_NOINLINE std::invoke_result_t<F&> call_inside(F& f) {
  return f();
}

template <class F>
RAMIE_NOINLINE std::invoke_result_t<F&> call_until(std::int64_t deadline_ns, F& f) {
  try {
    region_guard inside{deadline_ns};
    return call_inside(f);
  } catch (const passes_on&) {
    throw;
  } catch (const cancelled&) {
    if (!only_late(deadline_ns)) throw;
  }
  throw_timeout();
}

template <class F>
RAMIE_NOINLINE std::invoke_result_t<F&> call_shielded(F& f) {
  region_guard inside;
  return call_inside(f);
}

/// For what the library destroys or calls where no exception may pass.
template <class F>
RAMIE_NOINLINE void call_quietly(F&& f) noexcept {
  const quiet_region inside;
  call_inside(f);
}

}  // namespace detail

/// Calls f() and returns its result. Once `deadline` has passed, every wait inside f (channels, select, sync, sleep,
/// join, ask; in the calling fiber, its fork_join functions and the children of scopes opened inside, not in fibers
/// started by `spawn`) throws `cancelled`, and when that leaves f, this throws timeout_error. Not reached are waits for
/// a lock, which have timed forms of their own, and those listed in docs/guides/structured.md. Code without a
/// call that may wait is not interrupted; it can ask `this_fiber::stop_requested`. Nested deadlines: the earliest wins,
/// and its own call throws timeout_error. Any other result or exception of f is passed on, even if late. Suspends if f
/// does. Fibers and plain threads.
template <class F>
  requires std::invocable<F&>
std::invoke_result_t<F&> with_deadline(std::chrono::steady_clock::time_point deadline, F&& f) {
  return detail::call_until(deadline.time_since_epoch() / std::chrono::nanoseconds{1}, f);
}

/// The same for any other clock. The time left is looked at once, when the call begins: if that clock is set later, the
/// deadline stays where it was.
template <class Clock, class Duration, class F>
  requires std::invocable<F&>
std::invoke_result_t<F&> with_deadline(std::chrono::time_point<Clock, Duration> deadline, F&& f) {
  return with_deadline(detail::time_after(detail::time_left(deadline)), f);
}

/// As with_deadline, `timeout` from now. A timeout of zero or less lets f run up to its first wait,
/// but calls that may wait, and need not, may throw before.
template <class Rep, class Period, class F>
  requires std::invocable<F&>
std::invoke_result_t<F&> with_timeout(std::chrono::duration<Rep, Period> timeout, F&& f) {
  return with_deadline(detail::time_after(timeout), f);
}

/// Calls f() and returns its result. Waits inside f are not ended by anything from outside: no request_stop, no
/// shutdown, no failing scope, no outer deadline. For clean-up that has to wait. Deadlines opened inside f do count.
/// Suspends if f does. Fibers and plain threads.
template <class F>
  requires std::invocable<F&>
std::invoke_result_t<F&> shield(F&& f) {
  return detail::call_shielded(f);
}

}  // namespace ramie
