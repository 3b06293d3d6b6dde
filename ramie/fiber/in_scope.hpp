// A function and its children: in_scope calls it with a scope, and returns when both have ended. A child that fails
// ends the function, too, wherever that waits: Trio's nursery, Kotlin's coroutineScope, asyncio's TaskGroup. A scope by
// itself cannot do that, as an object has no hold on the code of the block that it lies in.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/deadline.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/join_handle.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

/// What in_scope does about children that fail.
struct in_scope_options {
  /// A child's failure is its own: the body and the other children go on. A server's connections, say. Otherwise the
  /// first failure ends them all.
  bool tolerant = false;
  /// If `tolerant`: called for each failure (no cancellation is one), by the child's fiber, with its name ("" if it has
  /// none); for several children at a time. It may wait, and nothing from outside ends that, as in a `shield`. If it
  /// throws, that is a failure that ends all. Empty: a line on standard error, at most one a second.
  std::function<void(const std::exception_ptr& failure, std::string_view child)> on_failure = {};
  /// If not `tolerant`: receives the failures beside the one that in_scope throws, in no particular order. Null: each
  /// is a line on standard error.
  std::vector<std::exception_ptr>* others = nullptr;
};

/// `in_scope(tolerant, body)`, `in_scope(tolerant(on_failure), body)`: options with `tolerant` set.
struct tolerant_options {
  [[nodiscard]] operator in_scope_options() const { return {.tolerant = true}; }
  template <class F>
  [[nodiscard]] in_scope_options operator()(F&& on_failure) const {
    return {.tolerant = true, .on_failure = std::forward<F>(on_failure)};
  }
};
inline constexpr tolerant_options tolerant{};

namespace detail {

/// What the scope of a body asks when a child fails. Lives as long as that. Any fiber.
class scope_body {
 public:
  explicit scope_body(const in_scope_options& options) noexcept : options_{options} {}
  scope_body(const scope_body&) = delete;
  scope_body& operator=(const scope_body&) = delete;
  ~scope_body();

  /// Of a child, by its fiber: is that the end of it? If not, `failure` may be another one. May suspend.
  bool tolerates(std::exception_ptr& failure) noexcept;
  /// A failure beside the first one: false if nobody asked for it.
  bool takes(const std::exception_ptr& failure) noexcept;
  /// Has a child ended by `cancelled` that was tolerated?
  [[nodiscard]] bool was_cut_off() const noexcept { return cut_off_.load(std::memory_order_relaxed); }

 private:
  void tell(const std::exception_ptr& failure, const char* child) noexcept;

  const in_scope_options& options_;
  atomic<bool> cut_off_{false};
  spin_lock lock_;
  std::size_t untold_ = 0;          // inside lock_
  std::int64_t tell_again_ns_ = 0;  // inside lock_
};

}  // namespace detail

/// The scope of a body. Its owner is the fiber that called in_scope. It is joined by in_scope, so `join` is for those
/// who want to wait earlier.
class body_scope : public scope {
 public:
  /// The body and the children have that much time left; then what is there is cancelled, as by `cancel`. Called by the
  /// body, once or again: the earliest counts. Does not suspend. Throws what ramie::spawn throws; within a shield, once
  /// the runtime ends, there is no limit.
  template <class Rep, class Period>
  void end_after(std::chrono::duration<Rep, Period> time) {
    end_at(detail::time_after(time));
  }

  /// Internal.
  explicit body_scope(detail::scope_body& body) noexcept { guard(body); }
  ~body_scope();
  /// Internal: the body has ended, by an exception unless `own` is null. Waits for the children, and throws the failure
  /// that comes out.
  void finish(const std::exception_ptr& own);

 private:
  void end_at(std::chrono::steady_clock::time_point deadline);
  std::vector<join_handle<void>> alarms_;
};

namespace detail {

/// The last step of in_scope, with its scope gone: throws `own`, or `cancelled`, if the caller is to stop.
void pass_on_cancellation(const std::exception_ptr& own, bool cut_off);

template <class R>
inline constexpr bool is_child_result = false;
template <class R>
inline constexpr bool is_child_result<child_result<R>> = true;

/// Nothing of it may become part of its caller: see call_inside.
template <class F>
RAMIE_NOINLINE std::invoke_result_t<F&, body_scope&> call_in_scope(const in_scope_options& options, F& body) {
  using result = std::invoke_result_t<F&, body_scope&>;
  static_assert(!std::is_reference_v<result>, "ramie::in_scope: the body must return a value");
  static_assert(!is_child_result<result>,
                "ramie::in_scope: a child_result ends with its scope: return what get() gives");
  using value = std::conditional_t<std::is_void_v<result>, bool, result>;
  std::optional<value> got;
  std::exception_ptr own;
  bool cut_off;
  {
    scope_body around{options};
    body_scope s{around};
    const auto call = [&] {
      if constexpr (std::is_void_v<result>) {
        body(s);
        got.emplace();
      } else {
        got.emplace(body(s));
      }
    };
    try {
      call_inside(call);
    } catch (const passes_on&) {
      throw;
    } catch (...) {
      own = std::current_exception();
    }
    s.finish(own);
    cut_off = around.was_cut_off();
  }
  if (own != nullptr || cut_off) pass_on_cancellation(own, cut_off);
  if constexpr (!std::is_void_v<result>) {
    if (!got) throw child_cancelled{};
    return std::move(*got);
  }
}

}  // namespace detail

/// Calls body(s), waits for the children of the scope `s`, and returns the body's result.
///
/// A child that fails cancels the scope, its other children, and the body: waits of these, and calls of s.spawn, throw
/// `cancelled`. So does s.cancel(), which is no failure. A body that throws cancels the children. When all have ended,
/// the first failure is thrown, in its own type; `cancelled` only if there is no other, and only if it is the caller
/// that is to stop. A body that was cut short by `cancel` or `end_after` is no failure; but if it has a result, there
/// is none, and this throws child_cancelled. Deadlines and stop requests around the call reach the body and the
/// children, and `cancelled` comes out, also if only tolerated children were cut off. Suspends. Fibers; on a plain
/// thread children run when they are added, and are dropped after a failure.
template <class F>
  requires std::invocable<F&, body_scope&>
std::invoke_result_t<F&, body_scope&> in_scope(const in_scope_options& options, F&& body) {
  return detail::call_in_scope(options, body);
}
template <class F>
  requires std::invocable<F&, body_scope&>
std::invoke_result_t<F&, body_scope&> in_scope(F&& body) {
  return in_scope(in_scope_options{}, body);
}

}  // namespace ramie
