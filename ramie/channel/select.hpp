// Waiting for whichever of several channel operations becomes possible first, as Go's select does.
#pragma once

#include <ramie/base/deadline.hpp>
#include <ramie/channel/channel.hpp>
#include <ramie/channel/select_case.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <source_location>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

[[noreturn]] void throw_no_cases();

struct timeout_base {};
struct otherwise_base {};

template <class C>
inline constexpr bool is_channel_case = std::derived_from<C, select_case>;
template <class C>
inline constexpr bool is_timeout = std::derived_from<C, timeout_base>;
template <class C>
inline constexpr bool is_otherwise = std::derived_from<C, otherwise_base>;
template <class C>
concept any_case = is_channel_case<C> || is_timeout<C> || is_otherwise<C>;

}  // namespace detail

/// Made by on_recv.
template <class T, class F>
class recv_case : public detail::select_case {
 public:
  recv_case(channel<T>& from, F f)
      : select_case{from.core(), false, &attempt_it, &slot_of}, from_{&from}, f_{std::move(f)} {}
  void finish() { std::invoke(f_, std::move(got_)); }

 private:
  static channel_status attempt_it(select_case& me, detail::operation*& served) {
    auto& self = static_cast<recv_case&>(me);
    self.got_.reset();
    return self.from_->take(self.got_, served);
  }
  static void* slot_of(select_case& me) noexcept {
    auto& self = static_cast<recv_case&>(me);
    self.got_.reset();
    return &self.got_;
  }
  channel<T>* from_;
  F f_;
  std::optional<T> got_;
};

/// Made by on_send.
template <class T, class F>
class send_case : public detail::select_case {
 public:
  template <class U>
  send_case(channel<T>& to, U&& value, F f)
      : select_case{to.core(), true, &attempt_it, &slot_of},
        to_{&to},
        value_(std::forward<U>(value)),
        f_{std::move(f)} {}
  void finish() { std::invoke(f_, status()); }

 private:
  static channel_status attempt_it(select_case& me, detail::operation*& served) {
    auto& self = static_cast<send_case&>(me);
    return self.to_->give(self.value_, served);
  }
  static void* slot_of(select_case& me) noexcept { return std::addressof(static_cast<send_case&>(me).value_); }
  channel<T>* to_;
  T value_;
  F f_;
};

/// Made by on_timeout.
template <class F>
struct timeout_case : detail::timeout_base {
  std::chrono::steady_clock::time_point deadline;
  F f;
  timeout_case(std::chrono::steady_clock::time_point d, F function) : deadline{d}, f{std::move(function)} {}
  void finish() { std::invoke(f); }
};

/// Made by otherwise.
template <class F>
struct otherwise_case : detail::otherwise_base {
  F f;
  explicit otherwise_case(F function) : f{std::move(function)} {}
  void finish() { std::invoke(f); }
};

/// A case that receives: f(std::optional<T>), empty if the channel is closed and drained.
template <class T, class F>
  requires std::invocable<F&, std::optional<T>>
[[nodiscard]] recv_case<T, std::decay_t<F>> on_recv(channel<T>& from, F&& f) {
  return {from, std::forward<F>(f)};
}
/// A case that sends `value`: f(channel_status), ok or closed. The value is kept in the case, and lost with it if
/// another one is served.
template <class T, class U, class F>
  requires std::invocable<F&, channel_status> && std::constructible_from<T, U&&>
[[nodiscard]] send_case<T, std::decay_t<F>> on_send(channel<T>& to, U&& value, F&& f) {
  return {to, std::forward<U>(value), std::forward<F>(f)};
}
/// The case for when none of the others is ready within `timeout` from now, or until `deadline`: f().
template <class Rep, class Period, std::invocable F>
[[nodiscard]] timeout_case<std::decay_t<F>> on_timeout(std::chrono::duration<Rep, Period> timeout, F&& f) {
  return {detail::time_after(timeout), std::forward<F>(f)};
}
template <std::invocable F>
[[nodiscard]] timeout_case<std::decay_t<F>> on_timeout(std::chrono::steady_clock::time_point deadline, F&& f) {
  return {deadline, std::forward<F>(f)};
}
/// The case for when none of the others is ready at once: f(). The select then never suspends.
template <std::invocable F>
[[nodiscard]] otherwise_case<std::decay_t<F>> otherwise(F&& f) {
  return otherwise_case<std::decay_t<F>>{std::forward<F>(f)};
}

namespace detail {

/// S1 to S4. no_case: nothing in time.
template <class Cases, class Suspend>
RAMIE_ALWAYS_INLINE std::size_t select_one(Cases& cases, std::size_t n, bool waits, const std::source_location& where,
                                           Suspend suspend) {
  for (;;) {
    if (const std::size_t ready = select_ready(cases, n); ready != no_case || !waits) return ready;
    const wait_site site{"select", where};
    wait pause{wait::kind::cancellable, site};
    std::size_t served = no_case;
    std::size_t added = n;
    switch (select_add(cases, added, pause, served)) {
      case select_case::step::done: return served;
      case select_case::step::again: continue;
      default: break;
    }
    wake_reason why;
    try {
      why = suspend(pause);
    } catch (...) {
      select_take_out(cases, added);
      throw;
    }
    served = select_take_out(cases, added);
    if (why == wake_reason::cancelled) throw_wait_cancelled();
    if (why == wake_reason::timeout) return no_case;
    if (served != no_case && !cases[served].must_retry()) return served;
  }
}

template <class Cases>
RAMIE_ALWAYS_INLINE std::size_t select_one(Cases& cases, std::size_t n, bool waits,
                                           const std::chrono::steady_clock::time_point* deadline,
                                           const std::source_location& where) {
  if (deadline == nullptr)
    return select_one(cases, n, waits, where, [](wait& pause) RAMIE_LAMBDA_INLINE { return pause.suspend(); });
  return select_one(cases, n, waits, where, [deadline](wait& pause) { return pause.suspend_until(*deadline); });
}

template <std::size_t N, class... Cases>
RAMIE_ALWAYS_INLINE std::size_t select_among(const std::source_location& where, Cases&... all) {
  static_assert((std::size_t{is_timeout<Cases>} + ... + 0) <= 1, "ramie::select: one on_timeout at most");
  static_assert((std::size_t{is_otherwise<Cases>} + ... + 0) <= 1, "ramie::select: one otherwise at most");
  constexpr bool polls = (is_otherwise<Cases> || ... || false);
  constexpr bool timed = (is_timeout<Cases> || ... || false);
  static_assert(!(polls && timed), "ramie::select: with otherwise it never waits, so there is no use for on_timeout");
  std::array<select_case*, N == 0 ? 1 : N> pointers;
  std::array<std::size_t, N == 0 ? 1 : N> places{};
  const std::chrono::steady_clock::time_point* deadline = nullptr;
  std::size_t spare = no_case;  // the place of on_timeout or otherwise
  std::size_t n = 0;
  std::size_t place = 0;
  const auto enter = [&](auto& c) RAMIE_LAMBDA_INLINE {
    using kind = std::remove_reference_t<decltype(c)>;
    if constexpr (is_channel_case<kind>) {
      pointers[n] = &c;
      places[n++] = place;
    } else {
      if constexpr (is_timeout<kind>) deadline = &c.deadline;
      spare = place;
    }
    ++place;
  };
  (enter(all), ...);
  case_pointers cases{pointers.data()};
  const std::size_t served = select_one(cases, n, !polls, deadline, where);
  const std::size_t fired = served == no_case ? spare : places[served];
  place = 0;
  const auto finish = [&](auto& c) RAMIE_LAMBDA_INLINE {
    if (place++ == fired) c.finish();
  };
  (finish(all), ...);
  return fired;
}

}  // namespace detail

/// Waits until one of the cases is ready, does it, and calls its function; returns its place among the arguments. Of
/// several ready ones each is equally likely. A closed channel is ready. The same channel may be in several cases; a
/// select never meets itself. Nothing is allocated. Suspends (a plain thread: blocks), not with `otherwise`. Throws
/// `cancelled` if the fiber is asked to stop while it waits; what moving an element, or the function, throws.
template <detail::any_case First, detail::any_case... Cases>
RAMIE_ALWAYS_INLINE std::size_t select(First&& first, Cases&&... rest) {
  constexpr std::size_t channels =
      (std::size_t{detail::is_channel_case<First>} + ... + std::size_t{detail::is_channel_case<Cases>});
  return detail::select_among<channels>(std::source_location::current(), first, rest...);
}

/// The same over any number of cases of one type, say a std::vector of on_recv with std::function, and then perhaps an
/// on_timeout or otherwise. Returns the index in `cases`; their number if it was the last one. Throws invalid_argument
/// if there is no case at all.
template <std::ranges::random_access_range R, class... Spare>
  requires(sizeof...(Spare) <= 1 && detail::is_channel_case<std::ranges::range_value_t<R>> &&
           ((detail::is_timeout<std::remove_cvref_t<Spare>> || detail::is_otherwise<std::remove_cvref_t<Spare>>) &&
            ...))
std::size_t select(R&& cases, Spare&&... spare) {
  struct {
    std::ranges::iterator_t<R> first;
    detail::select_case& operator[](std::size_t i) const {
      return first[static_cast<std::ranges::range_difference_t<R>>(i)];
    }
  } list{std::ranges::begin(cases)};
  const auto n = static_cast<std::size_t>(std::ranges::size(cases));
  constexpr bool polls = (detail::is_otherwise<std::remove_cvref_t<Spare>> || ... || false);
  const std::chrono::steady_clock::time_point* deadline = nullptr;
  if constexpr (!polls) ((deadline = &spare.deadline), ...);
  if (n == 0 && sizeof...(Spare) == 0) detail::throw_no_cases();
  const std::size_t fired = detail::select_one(list, n, !polls, deadline, std::source_location::current());
  if (fired != detail::no_case) {
    list.first[static_cast<std::ranges::range_difference_t<R>>(fired)].finish();
    return fired;
  }
  (spare.finish(), ...);
  return n;
}

}  // namespace ramie
