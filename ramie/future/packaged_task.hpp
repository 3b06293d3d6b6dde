// A function whose result goes to a future, as std::packaged_task.
#pragma once

#include <ramie/future/promise.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

template <class Signature>
class packaged_task;

/// Move-only; the function may be so, too. For one fiber or thread at a time.
template <class R, class... Args>
class packaged_task<R(Args...)> {
 public:
  packaged_task() noexcept = default;
  /// Keeps `f`. Throws std::bad_alloc, and what copying or moving f throws.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, packaged_task> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  explicit packaged_task(F&& f)
      : function_{std::make_unique<holder<std::decay_t<F>>>(std::in_place, std::forward<F>(f))},
        promise_{std::make_unique<promise<R>>()} {}

  /// False if default-constructed or moved from.
  [[nodiscard]] bool valid() const noexcept { return function_ != nullptr; }
  void swap(packaged_task& other) noexcept {
    function_.swap(other.function_);
    promise_.swap(other.promise_);
  }

  /// The future, once. Throws usage_error the second time, or if not valid().
  [[nodiscard]] future<R> get_future() { return checked("get_future").get_future(); }

  /// Calls the function; its result or exception goes to the future. Suspends if the function does. Throws
  /// usage_error if it was called before (since the last reset), or if not valid().
  void operator()(Args... args) {
    promise<R>& to = checked("call");
    if (called_) detail::throw_called_twice();
    called_ = true;
    detail::fulfil(to, [&]() -> R { return function_->call(std::forward<Args>(args)...); });
  }

  /// Renews it, with another future. Throws usage_error if not valid(); std::bad_alloc.
  void reset() {
    checked("reset");
    promise_ = std::make_unique<promise<R>>();
    called_ = false;
  }

 private:
  struct callable {
    virtual ~callable() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct holder final : callable {
    F f;
    template <class G>
    holder(std::in_place_t, G&& g) : f(std::forward<G>(g)) {}
    R call(Args... args) override {
      if constexpr (std::is_void_v<R>) static_cast<void>(std::invoke(f, std::forward<Args>(args)...));
      else return std::invoke(f, std::forward<Args>(args)...);
    }
  };
  promise<R>& checked(const char* call) {
    if (promise_ == nullptr) detail::throw_without_state(call);
    return *promise_;
  }

  std::unique_ptr<callable> function_;
  std::unique_ptr<promise<R>> promise_;
  bool called_ = false;
};

namespace detail {
template <class Call>
struct signature_of_call;
template <class R, class F, class... Args>
struct signature_of_call<R (F::*)(Args...)> : std::type_identity<R(Args...)> {};
template <class R, class F, class... Args>
struct signature_of_call<R (F::*)(Args...) const> : std::type_identity<R(Args...)> {};
template <class R, class F, class... Args>
struct signature_of_call<R (F::*)(Args...) noexcept> : std::type_identity<R(Args...)> {};
template <class R, class F, class... Args>
struct signature_of_call<R (F::*)(Args...) const noexcept> : std::type_identity<R(Args...)> {};
}  // namespace detail

template <class R, class... Args>
packaged_task(R (*)(Args...)) -> packaged_task<R(Args...)>;
template <class F>
packaged_task(F) -> packaged_task<typename detail::signature_of_call<decltype(&F::operator())>::type>;

template <class Signature>
void swap(packaged_task<Signature>& a, packaged_task<Signature>& b) noexcept {
  a.swap(b);
}

}  // namespace ramie
