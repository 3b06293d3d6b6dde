// A call whose result is a future, as std::async.
#pragma once

#include <ramie/fiber/spawn.hpp>
#include <ramie/future/promise.hpp>

#include <exception>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

template <class F, class... Args>
using async_result = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;

/// A fiber stopped before it has a result reports that to its waiters, which were not stopped.
template <class F, class... Args>
auto fulfilling(promise<async_result<F, Args...>> to, F&& f, Args&&... args) {
  return [to = std::move(to), call = bind_call(std::forward<F>(f), std::forward<Args>(args)...)]() mutable {
    fulfil(to, [&]() -> decltype(auto) {
      try {
        return std::move(call)();
      } catch (const child_cancelled&) {
        throw;
      } catch (const cancelled&) {
        throw child_cancelled{};
      }
    });
  };
}

template <class R, class Call>
class deferred_call_of final : public deferred_call {
 public:
  /// `to` owns this; the maker of the call keeps `to`.
  deferred_call_of(shared_state<R>& to, Call&& call) : to_{to}, call_(std::move(call)) {}
  void make() override {
    std::exception_ptr failure;
    try {
      if constexpr (std::is_void_v<R>) {
        std::move(call_)();
        to_.set_value();
      } else if constexpr (std::is_reference_v<R>) {
        to_.set_value(std::addressof(std::move(call_)()));
      } else {
        to_.set_value(std::move(call_)());
      }
      return;
    } catch (...) {
      failure = std::current_exception();
    }
    to_.set_exception(std::move(failure));
  }

 private:
  shared_state<R>& to_;
  Call call_;
};

}  // namespace detail

/// Calls f(args...) in a fiber of its own, as `spawn` does, and returns a future of its result or exception. The fiber
/// is independent: unlike std::async's, the future's destructor does not wait for it, so what it refers to must outlive
/// it (`spawn` gives a handle that waits, and can stop it). Does not suspend. Throws usage_error outside of a runtime,
/// `cancelled` as spawn does, std::bad_alloc. A fiber cancelled before it ran breaks the promise; one cancelled later
/// brings child_cancelled.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto async(F&& f, Args&&... args) {
  promise<detail::async_result<F, Args...>> to;
  auto result = to.get_future();
  spawn(detail::fulfilling<F, Args...>(std::move(to), std::forward<F>(f), std::forward<Args>(args)...)).detach();
  return result;
}

/// As above, with options for the fiber. Throws invalid_argument.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto async(const fiber_options& options, F&& f, Args&&... args) {
  promise<detail::async_result<F, Args...>> to;
  auto result = to.get_future();
  spawn(options, detail::fulfilling<F, Args...>(std::move(to), std::forward<F>(f), std::forward<Args>(args)...))
      .detach();
  return result;
}

/// As std::async with a policy. With std::launch::deferred alone the first waiter for the result calls the function, in
/// its place, without a fiber; without a waiter it is never called. With any other policy: as the first form.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto async(std::launch policy, F&& f, Args&&... args) {
  using R = detail::async_result<F, Args...>;
  if (policy != std::launch::deferred) return async(std::forward<F>(f), std::forward<Args>(args)...);
  auto call = detail::bind_call(std::forward<F>(f), std::forward<Args>(args)...);
  detail::state_reference<R> state{new detail::shared_state<R>};
  state.get("async").defer(
      std::make_unique<detail::deferred_call_of<R, decltype(call)>>(state.get("async"), std::move(call)));
  return future<R>{std::move(state)};
}

}  // namespace ramie
