// Starting fibers.
#pragma once

#include <ramie/fiber/join_handle.hpp>
#include <ramie/fiber/options.hpp>
#include <ramie/task/bound.hpp>

#include <concepts>
#include <functional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

/// `f` with its arguments, decayed and stored, as in std::thread.
template <class F, class... Args>
auto bind_call(F&& f, Args&&... args) {
  if constexpr (sizeof...(Args) == 0) {
    return std::forward<F>(f);
  } else {
    return [kept = std::tuple<std::decay_t<F>, std::decay_t<Args>...>{std::forward<F>(f),
                                                                      std::forward<Args>(args)...}]() mutable {
      return std::apply([](auto&&... parts) { return std::invoke(std::move(parts)...); }, std::move(kept));
    };
  }
}

/// A task for `f(args...)`, or `f(token, args...)` where f takes a std::stop_token first, and the type it returns.
template <class R>
struct made_task {
  using result = R;
  task* t;
};

template <class F, class... Args>
auto make_task(F&& f, Args&&... args) {
  if constexpr (std::invocable<std::decay_t<F>, std::stop_token, std::decay_t<Args>...>) {
    using R = std::invoke_result_t<std::decay_t<F>, std::stop_token, std::decay_t<Args>...>;
    std::stop_source source;
    auto call = bind_call(std::forward<F>(f), source.get_token(), std::forward<Args>(args)...);
    task* t = fiber_task<R, decltype(call)>::make(std::move(call));
    try {
      extras_of(*t).stop.emplace(std::move(source));
    } catch (...) {
      discard_task(t);
      throw;
    }
    return made_task<R>{t};
  } else {
    static_assert(std::invocable<std::decay_t<F>, std::decay_t<Args>...>,
                  "ramie::spawn: the function cannot be called with these arguments");
    using R = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
    static_assert(!std::is_reference_v<R>,
                  "ramie::spawn: the function must return a value (wrap a reference in std::ref)");
    if constexpr (sizeof...(Args) == 0) {
      return made_task<R>{fiber_task<R, std::decay_t<F>>::make(std::forward<F>(f))};
    } else {
      auto call = bind_call(std::forward<F>(f), std::forward<Args>(args)...);
      return made_task<R>{fiber_task<R, decltype(call)>::make(std::move(call))};
    }
  }
}

/// Not a handler, so that a caller's that come after it can be seen (context/no_throw.hpp).
struct until_submitted {
  task* t;
  ~until_submitted() {
    if (t != nullptr) discard_task(t);
  }
};

template <class Made, class Submit>
auto submit_made(Made made, const fiber_options* options, Submit submit) {
  until_submitted owner{made.t};
  if (options != nullptr) apply_options(*made.t, *options);
  if (binds()) [[unlikely]]
    inherit_bound(*made.t);
  submit(made.t);
  owner.t = nullptr;
  return join_handle<typename Made::result>{made.t};
}

}  // namespace detail

/// Starts a fiber that runs f(args...), or f(token, args...) if f takes a std::stop_token first; arguments are copied
/// or moved, as by std::thread. Only within a runtime (from one of its fibers); elsewhere use runtime::spawn. Does not
/// suspend. Throws usage_error on a plain thread, `cancelled` once the runtime is shutting down (not inside `shield`),
/// std::bad_alloc.
template <class F, class... Args>
  requires(!std::same_as<std::decay_t<F>, fiber_options>)
auto spawn(F&& f, Args&&... args) {
  return detail::submit_made(detail::make_task(std::forward<F>(f), std::forward<Args>(args)...), nullptr,
                             [](detail::task* t) { detail::submit_here(t); });
}

/// As above, with options. Also throws invalid_argument for a stack size or a worker number out of range.
template <class F, class... Args>
auto spawn(const fiber_options& options, F&& f, Args&&... args) {
  return detail::submit_made(detail::make_task(std::forward<F>(f), std::forward<Args>(args)...), &options,
                             [](detail::task* t) { detail::submit_here_with_options(t); });
}

}  // namespace ramie
