// A value that the code below sees without being passed it, as Java's ScopedValue: the number of a request, say.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/config.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/fiber_local.hpp>
#include <ramie/task/bound.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

/// A T that is bound for the run of a function, and seen by all that this calls, starts, or asks:
///
///     inline const ramie::scoped_value<std::string> request_id{"request_id"};
///     request_id.with("r-17", [&] { handle(request); });  // anywhere below: request_id.get()
///
/// What sees it: fork_join, parallel algorithms, scopes made inside, and their children; fibers started inside by
/// `spawn`, `async` or runtime::spawn; `blocking`; the handlers of class actors of this process that are asked, and
/// what these start and ask. An actor's constructor is run by who spawns it, and sees what that does; when the actor is
/// restarted it sees nothing. Not: what is told, functions given to ask_then, what a fiber actor is asked, children of
/// a scope that was made before (they see what is bound around the scope), or of one that is not on its fiber's stack,
/// and a deferred call of `async`, which is its first waiter's. There is no way to change a value, only to bind another
/// further in.
///
/// Any fiber or thread may call. A bound value is destroyed when nothing is left that may see it, by whoever that was,
/// which may be after a request was answered; its destructor must not throw. To bind a value takes time and memory that
/// grow with the number of values that are bound, and so does looking one up. A program that never binds any pays a few
/// instructions for each spawn, request and join of a scope.
template <class T>
class scoped_value {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>);

 public:
  /// `name` stands in errors; it stays.
  constexpr explicit scoped_value(const char* name = "") noexcept : name_{name} {}
  scoped_value(const scoped_value&) = delete;
  scoped_value& operator=(const scoped_value&) = delete;

  /// Calls f() with `value` bound, and returns what it returns. Throws what f and the construction of a T throw, and
  /// std::bad_alloc. Suspends if f does.
  template <class V, class F>
    requires std::constructible_from<T, V> && std::invocable<F&>
  RAMIE_NOINLINE std::invoke_result_t<F&> with(V&& value, F&& f) const {
    const detail::bound_scope here{new holder(key(), std::forward<V>(value))};
    return detail::call_inside(f);
  }

  /// The value that is bound here, or null. It is valid as long as the function runs that it was bound for, and, in
  /// what was started or asked there, as long as that runs. Does not suspend.
  [[nodiscard]] const T* find() const noexcept {
    const std::uint64_t k = key_.load(std::memory_order_relaxed);
    const detail::bound_value* const v = k == 0 ? nullptr : detail::find_bound(k);
    return v == nullptr ? nullptr : std::addressof(static_cast<const holder*>(v)->value);
  }
  /// As `find`. Throws usage_error if none is bound.
  [[nodiscard]] const T& get() const {
    const T* const found = find();
    if (found == nullptr) [[unlikely]]
      detail::throw_not_bound(name_);
    return *found;
  }
  /// A copy of it, or `otherwise`.
  template <class U>
    requires std::copy_constructible<T> && std::constructible_from<T, U>
  [[nodiscard]] T value_or(U&& otherwise) const {
    const T* const found = find();
    return found == nullptr ? T(std::forward<U>(otherwise)) : *found;
  }

 private:
  struct holder final : detail::bound_value {
    T value;
    template <class V>
    holder(std::uint64_t k, V&& from) : bound_value{k}, value(std::forward<V>(from)) {}
  };

  /// Made at the first use, so that one may be used before its initialisation.
  [[nodiscard]] std::uint64_t key() const noexcept {
    std::uint64_t k = key_.load(std::memory_order_relaxed);
    if (k != 0) return k;
    const std::uint64_t made = detail::new_local_key();
    return key_.compare_exchange_strong(k, made, std::memory_order_relaxed) ? made : k;
  }

  mutable detail::atomic<std::uint64_t> key_{0};
  const char* const name_;
};

/// Calls f() with no value of any scoped_value bound, and returns what it returns: for a fiber that is started for one
/// request and serves others, too, such as the reader of a connection. Throws what f throws, and std::bad_alloc.
/// Suspends if f does.
template <class F>
  requires std::invocable<F&>
RAMIE_NOINLINE std::invoke_result_t<F&> without_scoped_values(F&& f) {
  const detail::bound_scope here{detail::bound_scope::nothing{}};
  return detail::call_inside(f);
}

}  // namespace ramie
