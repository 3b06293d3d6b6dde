// A call whose result is a future, as std::async.
#pragma once

#include <ramie/fiber/spawn.hpp>
#include <ramie/sync/promise.hpp>

#include <type_traits>
#include <utility>

namespace ramie {

/// Calls f(args...) in a fiber of its own, as `spawn` does, and returns a future of what it returns or throws. The
/// fiber goes on by itself: other than with std::async the future's destructor does not wait for it, so what it refers
/// to must outlive it (`spawn` gives a handle that waits, and can stop it). Does not suspend. Throws usage_error
/// outside of a runtime and after shutdown began, std::bad_alloc. A fiber that is cancelled before it ran breaks the
/// promise.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto async(F&& f, Args&&... args) {
  using R = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
  promise<R> to;
  future<R> result = to.get_future();
  spawn([to = std::move(to), call = detail::bind_call(std::forward<F>(f), std::forward<Args>(args)...)]() mutable {
    detail::fulfil(to, std::move(call));
  }).detach();
  return result;
}

}  // namespace ramie
