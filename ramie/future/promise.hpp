// The writing end of a future, as std::promise.
#pragma once

#include <ramie/future/future.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

/// Move-only. May be used and destroyed by any fiber or plain thread. No member suspends.
template <class R>
class promise {
 public:
  /// Throws std::bad_alloc.
  promise() : state_{new detail::shared_state<R>} {}
  promise(promise&&) noexcept = default;
  promise& operator=(promise&& other) noexcept {
    promise{std::move(other)}.swap(*this);
    return *this;
  }
  /// If there is no result yet, the future throws broken_promise.
  ~promise() {
    if (state_) state_.get("").break_promise();
  }
  void swap(promise& other) noexcept { std::swap(state_, other.state_); }

  /// The future, once. Throws usage_error the second time, or if moved from; so do all that follow.
  [[nodiscard]] future<R> get_future() {
    state_.get("get_future").take_future();
    return future<R>{state_};
  }

  /// Stores the result and wakes its waiters. Throws usage_error if there is one already; what copying or moving the
  /// value throws: then there is none yet.
  void set_value()
    requires std::is_void_v<R>
  {
    write();
  }
  template <class T = R>
    requires std::is_lvalue_reference_v<R>
  void set_value(std::remove_reference_t<T>& value) {
    write(std::addressof(value));
  }
  template <class T = R>
    requires(std::is_object_v<R> && std::is_constructible_v<R, T &&>)
  void set_value(T&& value) {
    write(std::forward<T>(value));
  }
  /// Stores an exception in the result's place. Not a null one.
  void set_exception(std::exception_ptr failure) {
    const detail::state_reference<R> kept = state_;
    kept.get("set_exception").set_exception(std::move(failure));
  }

 private:
  template <class... Args>
  void write(Args&&... args) {
    const detail::state_reference<R> kept = state_;  // this promise may be destroyed as soon as a waiter has the result
    kept.get("set_value").set_value(std::forward<Args>(args)...);
  }
  detail::state_reference<R> state_;
};

template <class R>
void swap(promise<R>& a, promise<R>& b) noexcept {
  a.swap(b);
}

namespace detail {

/// Keeps the promise with the result or exception of f(args...).
template <class R, class F, class... Args>
void fulfil(promise<R>& p, F&& f, Args&&... args) {
  std::exception_ptr failure;
  try {
    if constexpr (std::is_void_v<R>) {
      std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
      p.set_value();
    } else {
      p.set_value(std::invoke(std::forward<F>(f), std::forward<Args>(args)...));
    }
    return;
  } catch (...) {
    failure = std::current_exception();
  }
  p.set_exception(std::move(failure));
}

}  // namespace detail

}  // namespace ramie
