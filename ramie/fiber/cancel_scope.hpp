// Work that others can cut short, and whose deadline moves: Trio's CancelScope, for calls.
//
//   ramie::cancel_scope quiet{30s};
//   const bool whole = quiet.run([&] {
//     while (auto part = connection.read()) {
//       quiet.expires_after(30s);
//       handle(*part);
//     }
//   });
//
// A timer of the object's own watches the deadline, and looks at it again when it rings: a later one costs a store
// inside a lock. It, and `cancel`, find the waits inside the call as a scope does that fails. with_timeout costs less,
// as it needs no timer but while something waits. The protocol is in cancellation.cpp.
#pragma once

#include <ramie/base/deadline.hpp>
#include <ramie/base/error.hpp>
#include <ramie/context/no_throw.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/region.hpp>
#include <ramie/task/timer_queue.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
class scheduler;
}

/// Limits one call at a time, `run`. `cancel` and the deadline may come from any fiber, before the call or during it;
/// the object has to stay meanwhile.
class cancel_scope {
 public:
  cancel_scope() noexcept = default;
  /// Expires after `timeout` from now.
  template <class Rep, class Period>
  explicit cancel_scope(std::chrono::duration<Rep, Period> timeout) {
    expires_after(timeout);
  }
  cancel_scope(const cancel_scope&) = delete;
  cancel_scope& operator=(const cancel_scope&) = delete;
  ~cancel_scope();

  /// Calls f(). Once the deadline has passed, or `cancel` was called, waits inside f throw `cancelled`, those of its
  /// fork_join functions and of children of scopes opened inside, too; if that leaves f, this goes on. Returns whether
  /// f has ended by itself; if f has a result, a std::optional of it. Everything else that f throws is passed on, and
  /// so is `cancelled` if the caller is to stop. Suspends if f does. Fibers and plain threads. Throws usage_error if
  /// another call is under way; std::bad_alloc.
  template <class F>
    requires std::invocable<F&>
  auto run(F&& f) {
    using result = std::invoke_result_t<F&>;
    static_assert(!std::is_reference_v<result>, "ramie::cancel_scope::run: the function must return a value");
    if constexpr (std::is_void_v<result>) return call<bool>([&] { return f(), true; });
    else return call<std::optional<result>>([&] { return std::optional<result>{f()}; });
  }

  /// Ends the call that is under way, and each that comes later, at its next wait. A wait that a plain thread has begun
  /// is not ended. Any fiber or thread; does not suspend.
  void cancel() noexcept;

  /// Moves the deadline, to earlier or later. False, without effect, if it has passed, or after `cancel`. Any fiber or
  /// thread; does not suspend. Waits that a plain thread has begun keep the deadline that they began with. Throws
  /// std::bad_alloc; then it is not moved.
  template <class Rep, class Period>
  bool expires_after(std::chrono::duration<Rep, Period> timeout) {
    return expires_at(detail::time_after(timeout));
  }
  template <class Clock, class Duration>
  bool expires_at(std::chrono::time_point<Clock, Duration> deadline) {
    return expires_at(detail::time_after(detail::time_left(deadline)));
  }
  bool expires_at(std::chrono::steady_clock::time_point deadline);
  /// No deadline any more. As above.
  bool never_expires() { return expires_at(std::chrono::steady_clock::time_point::max()); }

  /// Was `cancel` called, or has the deadline passed? Any fiber or thread; does not suspend.
  [[nodiscard]] bool is_over() const noexcept;

 private:
  /// The region of a call.
  class open {
   public:
    open(cancel_scope& of, std::int64_t& least) : of_{of}, least_{least} { of_.enter(region_); }
    open(const open&) = delete;
    open& operator=(const open&) = delete;
    ~open() { least_ = of_.leave(region_); }

   private:
    cancel_scope& of_;
    std::int64_t& least_;
    detail::region region_;
  };

  /// In frames of their own: see detail::call_inside.
  template <class R, class F>
  RAMIE_NOINLINE R call(F f) {
    std::int64_t least = detail::region::never;
    try {
      const open inside{*this, least};
      return detail::call_inside(f);
    } catch (const detail::passes_on&) {
      throw;
    } catch (const cancelled&) {
      if (!is_cause(least)) throw;
    }
    return R{};
  }

  struct alarm : detail::timer_node {
    cancel_scope* of = nullptr;
  };

  void enter(detail::region& r);
  /// The earliest deadline that waits inside may have begun with.
  std::int64_t leave(detail::region& r) noexcept;
  [[nodiscard]] bool is_cause(std::int64_t least) const;
  [[nodiscard]] bool has_passed() const noexcept;
  void set_alarm(std::int64_t ns);
  void end_waits(const detail::region& r) noexcept;
  static void ring(detail::timer_node& fired) noexcept;

  mutable detail::spin_lock lock_;  // all below is inside it
  std::int64_t deadline_ns_ = detail::region::never;
  bool cancelled_ = false;
  int ending_ = 0;                           // calls of end_waits
  detail::region* call_ = nullptr;           // of the call that is under way
  detail::region_chain* regions_ = nullptr;  // of the fiber or thread that made it
  detail::scheduler* home_ = nullptr;        // of that fiber; null: a plain thread
  bool armed_ = false;                       // the alarm is in a queue, or rings
  std::int64_t alarm_ns_ = 0;                // when it does; of a plain thread: the region's earliest deadline
  alarm alarm_;
};

}  // namespace ramie
