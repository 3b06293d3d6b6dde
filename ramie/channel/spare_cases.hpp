// The cases of a select for when none of the others is ready.
#pragma once

#include <ramie/base/deadline.hpp>
#include <ramie/sync/deadline.hpp>

#include <chrono>
#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

namespace detail {

struct timeout_base {};
struct otherwise_base {};

template <class C>
inline constexpr bool is_timeout = std::derived_from<C, timeout_base>;
template <class C>
inline constexpr bool is_otherwise = std::derived_from<C, otherwise_base>;

struct do_nothing {
  void operator()() const noexcept {}
};

}  // namespace detail

/// Made by on_timeout.
template <class F>
struct timeout_case : detail::timeout_base {
  std::chrono::steady_clock::time_point deadline;
  F f;
  timeout_case(std::chrono::steady_clock::time_point d, F function) : deadline{d}, f{std::move(function)} {}
  void finish() { std::invoke(f); }
  [[nodiscard]] static std::monostate outcome() noexcept { return {}; }
};

/// Made by otherwise.
template <class F>
struct otherwise_case : detail::otherwise_base {
  F f;
  explicit otherwise_case(F function) : f{std::move(function)} {}
  void finish() { std::invoke(f); }
  [[nodiscard]] static std::monostate outcome() noexcept { return {}; }
};

/// Chosen if no other case becomes ready within `timeout` from now, or until `deadline` of any clock; calls f(). (A
/// clock that is set meanwhile does not move the deadline of the case.)
template <class Rep, class Period, std::invocable F = detail::do_nothing>
[[nodiscard]] timeout_case<std::decay_t<F>> on_timeout(std::chrono::duration<Rep, Period> timeout, F&& f = {}) {
  return {detail::time_after(timeout), std::forward<F>(f)};
}
template <class Clock, class Duration, std::invocable F = detail::do_nothing>
[[nodiscard]] timeout_case<std::decay_t<F>> on_timeout(std::chrono::time_point<Clock, Duration> deadline, F&& f = {}) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>)
    return {detail::saturated(deadline), std::forward<F>(f)};
  else return {detail::time_after(detail::time_left(deadline)), std::forward<F>(f)};
}
/// Chosen if no other case is ready at once; calls f(). The select then never suspends. It is chosen only if at some
/// moment during the call none of the channels was ready.
/// Cases of other kinds than channels are looked at one after the other: a permit that moves from one semaphore to
/// another meanwhile may be missed.
template <std::invocable F = detail::do_nothing>
[[nodiscard]] otherwise_case<std::decay_t<F>> otherwise(F&& f = {}) {
  return otherwise_case<std::decay_t<F>>{std::forward<F>(f)};
}

}  // namespace ramie
