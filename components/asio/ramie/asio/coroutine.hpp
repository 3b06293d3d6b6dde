// Coroutines and fibers that wait for each other: those of C++20 in general, and Asio's.
#pragma once

#include <ramie/asio/context.hpp>
#include <ramie/ramie.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie::asio {

template <class R>
using value_or_nothing = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

/// The result of a function, or its exception.
template <class R>
class outcome {
 public:
  template <class F>
  void set_by(F& f) noexcept {
    try {
      if constexpr (std::is_void_v<R>) {
        f();
        value_.emplace();
      } else {
        value_.emplace(f());
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  R get() {
    if (failure_) std::rethrow_exception(failure_);
    if constexpr (!std::is_void_v<R>) return std::move(*value_);
  }
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }
  [[nodiscard]] value_or_nothing<R>& value() noexcept { return *value_; }

 private:
  std::optional<value_or_nothing<R>> value_;
  std::exception_ptr failure_;
};

/// What in_fiber returns.
template <class F>
class fiber_awaitable {
 public:
  explicit fiber_awaitable(F f) : f_{std::move(f)} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    spawn([this, waiter] {
      result_.set_by(f_);
      waiter.resume();  // the coroutine goes on in this fiber; `this` may be gone afterwards
    }).detach();
  }
  auto await_resume() { return result_.get(); }

 private:
  F f_;
  outcome<std::invoke_result_t<F&>> result_;
};

/// For any coroutine that runs in a fiber: `co_await in_fiber(f)` calls f() in a fiber of its own, where it may wait,
/// and goes on there with its result or exception. f must not throw `cancelled` out of a runtime that ends unless the
/// coroutine lets it pass.
template <class F>
[[nodiscard]] fiber_awaitable<std::decay_t<F>> in_fiber(F&& f) {
  return fiber_awaitable<std::decay_t<F>>{std::forward<F>(f)};
}
/// The same for what ramie has: an element (nullopt: closed), a result, the end of a fiber.
template <class T>
[[nodiscard]] auto receive(channel<T>& from) {
  return in_fiber([&from] { return from.recv(); });
}
template <class T, class U>
[[nodiscard]] auto send(channel<T>& to, U value) {
  return in_fiber([&to, value = std::move(value)]() mutable { return to.send(std::move(value)); });
}
template <class R>
[[nodiscard]] auto result_of(future<R> f) {
  return in_fiber([f = std::move(f)]() mutable { return f.get(); });
}
template <class R>
[[nodiscard]] auto end_of(join_handle<R> h) {
  return in_fiber([h = std::move(h)]() mutable { return h.join(); });
}

/// Internal: a coroutine that starts at once, and whose frame goes when it ends.
struct detached_coroutine {
  struct promise_type {
    detached_coroutine get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// Waits for anything that can be awaited, as a coroutine of any library: suspends a fiber, blocks a plain thread,
/// until it has ended, wherever it goes on. Returns its result or throws its exception. A coroutine cannot be ended
/// from outside, so no stop and no deadline reaches this wait.
template <class Awaitable>
auto wait_for(Awaitable&& what) {
  using R = decltype([](auto& w) -> decltype(auto) {
    if constexpr (requires { std::forward<Awaitable>(w).operator co_await(); })
      return std::forward<Awaitable>(w).operator co_await().await_resume();
    else if constexpr (requires { operator co_await(std::forward<Awaitable>(w)); })
      return operator co_await(std::forward<Awaitable>(w)).await_resume();
    else return w.await_resume();
  }(what));
  static_assert(!std::is_reference_v<R>, "ramie::asio::wait_for: the result has to be a value");
  std::optional<value_or_nothing<R>> value;
  std::exception_ptr failure;
  event done;
  [](Awaitable& w, auto& v, std::exception_ptr& f, event& e) -> detached_coroutine {
    try {
      if constexpr (std::is_void_v<R>) {
        co_await std::forward<Awaitable>(w);
        v.emplace();
      } else {
        v.emplace(co_await std::forward<Awaitable>(w));
      }
    } catch (...) {
      f = std::current_exception();
    }
    e.set();
  }(what, value, failure, done);
  shield([&] { done.wait(); });
  if (failure) std::rethrow_exception(failure);
  if constexpr (!std::is_void_v<R>) return std::move(*value);
}

/// For Asio's coroutines and callbacks: calls f() in a fiber of the context's runtime, and completes with its exception
/// and result: `co_await async_call(io, f, boost::asio::use_awaitable)`.
template <class F, class Token>
auto async_call(context& in, F f, Token&& token) {
  using R = std::invoke_result_t<F&>;
  const auto initiation = [&in](auto handler, F function) {
    in.run_handler([&in, h = std::move(handler), function = std::move(function)]() mutable {
      outcome<R> o;
      o.set_by(function);
      const auto where = boost::asio::get_associated_executor(h, in.get_executor());
      if constexpr (std::is_void_v<R>) {
        boost::asio::dispatch(where, [h = std::move(h), failure = o.failure()]() mutable { std::move(h)(failure); });
      } else {
        R value = o.failure() ? R{} : std::move(o.value());
        boost::asio::dispatch(where, [h = std::move(h), failure = o.failure(), value = std::move(value)]() mutable {
          std::move(h)(failure, std::move(value));
        });
      }
    });
  };
  if constexpr (std::is_void_v<R>)
    return boost::asio::async_initiate<Token, void(std::exception_ptr)>(initiation, token, std::move(f));
  else return boost::asio::async_initiate<Token, void(std::exception_ptr, R)>(initiation, token, std::move(f));
}

}  // namespace ramie::asio
