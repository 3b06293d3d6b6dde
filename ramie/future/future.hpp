// A result that another fiber or thread will bring, as std::future and std::shared_future.
#pragma once

#include <ramie/future/shared_state.hpp>

#include <chrono>
#include <future>
#include <source_location>
#include <type_traits>
#include <utility>

namespace ramie {

/// The promise was destroyed before it was kept.
class broken_promise : public future_error {
 public:
  explicit broken_promise(const std::string& what) : future_error{std::future_errc::broken_promise, what} {}
};

template <class R>
class promise;
template <class R>
class shared_future;

namespace detail {

/// What future and shared_future have in common.
template <class R>
class future_base {
 public:
  /// False if default-constructed, moved from, or, for `future`, after get().
  [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(state_); }

  /// True if the result is there. Does not suspend. Throws usage_error if not valid(), as all that follow.
  [[nodiscard]] bool is_ready() const { return state_.get("is_ready").is_ready(); }

  /// Suspends a fiber, blocks a plain thread, until the result is there. Throws `cancelled` if the fiber is asked to
  /// stop meanwhile; resource_error. The future stays valid.
  RAMIE_ALWAYS_INLINE void wait(std::source_location where = std::source_location::current()) const {
    state_.get("wait").wait(where);
  }
  /// As `wait`, but no longer than `timeout`. A deferred call is not made: std::future_status::deferred.
  template <class Rep, class Period>
  std::future_status wait_for(std::chrono::duration<Rep, Period> timeout,
                              std::source_location where = std::source_location::current()) const {
    shared_state<R>& state = state_.get("wait_for");
    ready_point();
    if (state.is_deferred()) return std::future_status::deferred;
    return status(state.is_ready() || state.wait_before(time_after(timeout), where));
  }
  template <class Clock, class Duration>
  std::future_status wait_until(std::chrono::time_point<Clock, Duration> deadline,
                                std::source_location where = std::source_location::current()) const {
    shared_state<R>& state = state_.get("wait_until");
    ready_point();
    if (state.is_deferred()) return std::future_status::deferred;
    return status(state.is_ready() ||
                  attempt_until(deadline, [&](steady_time t) { return state.wait_before(t, where); }));
  }

 protected:
  future_base() noexcept = default;
  explicit future_base(state_reference<R> state) noexcept : state_{std::move(state)} {}

  state_reference<R> state_;

 private:
  friend struct waitable_access;
  static std::future_status status(bool ready) noexcept {
    return ready ? std::future_status::ready : std::future_status::timeout;
  }
};

/// What shared_future<R>::get returns: R itself if that is void or a reference.
template <class R>
using shared_result =
    typename std::conditional_t<std::is_object_v<R>, std::add_lvalue_reference<const R>, std::type_identity<R>>::type;

}  // namespace detail

/// Gives access to one result. Move-only; for one fiber or thread at a time. Its destructor does not wait.
template <class R>
class [[nodiscard]] future : public detail::future_base<R> {
 public:
  future() noexcept = default;
  future(future&&) noexcept = default;
  future& operator=(future&&) noexcept = default;

  /// Waits as `wait` does, and returns the result or rethrows the exception in its place. Not valid() afterwards,
  /// unless the wait was cancelled.
  RAMIE_ALWAYS_INLINE R get(std::source_location where = std::source_location::current()) {
    this->state_.get("get").wait(where);
    const detail::state_reference<R> last = std::move(this->state_);
    detail::kept_result<R>& result = last.get("get").result();
    if constexpr (std::is_reference_v<R>) return static_cast<R>(*result);
    else if constexpr (!std::is_void_v<R>) return std::move(result);
  }

  /// The same result for many readers. Not valid() afterwards.
  [[nodiscard]] shared_future<R> share() noexcept { return shared_future<R>{std::move(*this)}; }

  /// Internal.
  explicit future(detail::state_reference<R> state) noexcept : detail::future_base<R>{std::move(state)} {}

 private:
  friend shared_future<R>;
};

/// Copyable; each copy is for one fiber or thread at a time, different copies for many.
template <class R>
class [[nodiscard]] shared_future : public detail::future_base<R> {
 public:
  shared_future() noexcept = default;
  shared_future(future<R>&& one) noexcept : detail::future_base<R>{std::move(one.state_)} {}

  /// Waits as `wait` does, and returns the result, which lives as long as any copy, or rethrows.
  RAMIE_ALWAYS_INLINE detail::shared_result<R> get(std::source_location where = std::source_location::current()) const {
    detail::shared_state<R>& state = this->state_.get("get");
    state.wait(where);
    detail::kept_result<R>& result = state.result();
    if constexpr (std::is_reference_v<R>) return static_cast<R>(*result);
    else if constexpr (!std::is_void_v<R>) return result;
  }
};

}  // namespace ramie
