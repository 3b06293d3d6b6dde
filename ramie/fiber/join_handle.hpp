// The owner's end of a spawned fiber, in the manner of std::jthread.
#pragma once

#include <ramie/base/deadline.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/fiber/this_fiber.hpp>

#include <chrono>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

namespace detail {
struct waitable_access;  // channel/on_ready.hpp
}

/// Owns the result of a fiber. Move-only. One thread or fiber may use a handle at a time. It may outlive the runtime.
template <class R>
class [[nodiscard]] join_handle {
 public:
  join_handle() noexcept = default;
  join_handle(join_handle&& other) noexcept : task_{std::exchange(other.task_, nullptr)} {}
  /// Ends the fiber that it held before, as the destructor does: asks it to stop and waits for it. Suspends.
  join_handle& operator=(join_handle&& other) noexcept {
    if (this != &other) {
      end();
      task_ = std::exchange(other.task_, nullptr);
    }
    return *this;
  }
  /// If joinable: asks the fiber to stop and waits for it (suspends). A result is dropped; a failure is reported on
  /// standard error.
  ~join_handle() { end(); }

  /// Waits for the end of the fiber and returns its result, or rethrows its exception. If the fiber ended by
  /// `cancelled`, throws child_cancelled, since the caller itself was not cancelled. Suspends a fiber, blocks a plain
  /// thread. Throws usage_error if the handle is not joinable or the fiber joins itself; `cancelled` if the caller is
  /// asked to stop meanwhile (the handle stays joinable then).
  RAMIE_ALWAYS_INLINE R join(std::source_location where = std::source_location::current()) {
    if (task_ == nullptr || task_->completion.load(std::memory_order_acquire) != detail::task::done) {
      detail::check_join(task_);
      detail::await_end(task_, detail::wait::kind::cancellable, where);
    }
    return take();
  }

  /// Same as `join`, but returns an empty optional after `timeout`. (For void: std::monostate.)
  template <class Rep, class Period>
  auto join_for(std::chrono::duration<Rep, Period> timeout,
                std::source_location where = std::source_location::current()) {
    return join_until(detail::time_after(timeout), where);
  }
  std::optional<detail::value_of<R>> join_until(std::chrono::steady_clock::time_point deadline,
                                                std::source_location where = std::source_location::current()) {
    if (!detail::await_end_until(task_, deadline, where)) return std::nullopt;
    if constexpr (std::is_void_v<R>) {
      take();
      return std::monostate{};
    } else {
      return take();
    }
  }

  /// The same for any other clock. If that clock is set meanwhile, the wait is adjusted when it would have ended.
  template <class Clock, class Duration>
  auto join_until(std::chrono::time_point<Clock, Duration> deadline,
                  std::source_location where = std::source_location::current()) {
    for (;;) {
      auto got = join_for(detail::time_left(deadline), where);
      if (got || detail::time_left(deadline) == std::chrono::steady_clock::duration::zero()) return got;
    }
  }

  /// True until joined, detached or moved from.
  [[nodiscard]] bool joinable() const noexcept { return task_ != nullptr; }

  /// True once the fiber has ended: then `join` does not wait. Does not suspend. Throws usage_error if not joinable.
  [[nodiscard]] bool has_ended() const {
    detail::require_joinable(task_, "has_ended");
    return task_->completion.load(std::memory_order_acquire) == detail::task::done;
  }

  /// Detaches the fiber: it runs on without a handle. If it then ends by an exception, the process ends. Throws
  /// usage_error if not joinable.
  void detach() { detail::detach_task(std::exchange(task_, nullptr)); }

  /// Asks the fiber to stop: its std::stop_token reports it, and its current wait, and every later one, throws
  /// `cancelled`. Does not suspend. Throws usage_error if not joinable.
  void request_stop() {
    detail::require_joinable(task_, "request_stop");
    detail::request_stop(*task_);
  }

  /// Default-constructed if not joinable.
  [[nodiscard]] fiber_id get_id() const noexcept { return fiber_id{task_}; }

  /// Internal.
  explicit join_handle(detail::task* t) noexcept : task_{t} {}

 private:
  friend struct detail::waitable_access;
  R take() {
    detail::task* t = std::exchange(task_, nullptr);
    return detail::take_result<R>(t);
  }
  void end() noexcept {
    if (task_ != nullptr) detail::end_task(std::exchange(task_, nullptr));
  }

  detail::task* task_ = nullptr;
};

}  // namespace ramie
