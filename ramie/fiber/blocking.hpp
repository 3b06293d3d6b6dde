// Blocking calls, off the workers.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/machine/blocking_pool.hpp>
#include <ramie/task/bound.hpp>
#include <ramie/task/wait.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

/// The pool of the calling fiber's runtime; null on a plain thread.
blocking_pool* this_blocking_pool() noexcept;

/// The call is over: wakes the caller. The last access to the call.
void end_blocking(atomic<std::uint64_t>& waiter) noexcept;

template <class F>
struct blocking_call_of : blocking_call {
  F& f;
  std::optional<fork_result<F>> value{};
  std::exception_ptr failure{};
  atomic<std::uint64_t> waiter{0};  // the caller's wait; blocking_ended once the call is over
  const bound_set* bound = bound_here();

  explicit blocking_call_of(F& function) noexcept : blocking_call{&call_it}, f{function} {}

  static void call_it(blocking_call& self) noexcept {
    auto& me = static_cast<blocking_call_of&>(self);
    try {
      const called_within sees{me.bound};
      me.value.emplace(call_for_value(me.f));
    } catch (...) {
      me.failure = std::current_exception();
    }
    end_blocking(me.waiter);
  }
};

/// Has the call made, and waits for its end. `waiter` is woken by the call. Throws `cancelled`, resource_error.
void run_blocking(blocking_pool& pool, blocking_call& call, atomic<std::uint64_t>& waiter,
                  const std::source_location& where);

}  // namespace detail

/// Runs f() on a helper thread while the calling fiber waits, and returns its result or rethrows its exception. For
/// calls that block in the kernel or compute for long without suspending. If the fiber is asked to stop before f has
/// begun, f is not called and this throws `cancelled`. Once f runs it is not interrupted; the fiber's next wait throws.
/// Suspends. On a plain thread: just calls f. Throws resource_error if no helper thread is available.
template <class F>
  requires std::invocable<F&>
std::invoke_result_t<F&> blocking(F&& f, std::source_location where = std::source_location::current()) {
  using R = std::invoke_result_t<F&>;
  static_assert(!std::is_reference_v<R>, "ramie::blocking: the function must return a value");
  detail::blocking_pool* pool = detail::this_blocking_pool();
  if (pool == nullptr) return f();
  detail::blocking_call_of<std::remove_reference_t<F>> call{f};
  detail::run_blocking(*pool, call, call.waiter, where);
  if (call.failure) std::rethrow_exception(std::move(call.failure));
  if constexpr (!std::is_void_v<R>) return std::move(*call.value);
}

}  // namespace ramie
