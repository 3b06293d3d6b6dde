// Waiting for the first of several channel operations to become possible, as Go's select does.
#pragma once

#include <ramie/channel/cases.hpp>
#include <ramie/channel/on_ready.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <ranges>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

namespace detail {

/// S1 to S4. no_case: nothing in time.
template <class Cases, class Suspend>
RAMIE_ALWAYS_INLINE std::size_t select_one(Cases& cases, std::size_t n, bool waits, const std::source_location& where,
                                           Suspend suspend) {
  if (waits) ready_point();
  for (;;) {
    if (!waits) return select_poll(cases, n);
    if (const std::size_t ready = select_ready(cases, n); ready != no_case) return ready;
    const wait_site site{"select", where};
    wait pause{wait::kind::cancellable, site};
    std::size_t served = no_case;
    switch (select_add(cases, n, pause, served)) {
      case select_case::step::done: return served;
      case select_case::step::again: continue;
      default: break;
    }
    wake_reason why;
    try {
      why = suspend(pause);
    } catch (...) {
      select_take_out(cases, n);
      throw;
    }
    served = select_take_out(cases, n);
    if (why == wake_reason::cancelled) return begin_again([&] { return select_one(cases, n, waits, where, suspend); });
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

template <class C>
inline constexpr bool is_mixed = is_waitable<C>;
template <class C>
inline constexpr bool is_mixed<guarded_case<C>> = is_waitable<C>;

/// How the cases of a select are listed: those on channels alone, as most are, without a look at their kind.
template <bool Mixed, bool InOrder>
struct case_listing {
  using entry = std::conditional_t<Mixed, mixed_case, select_case*>;
  using plain_list = std::conditional_t<Mixed, mixed_cases, case_pointers>;
  using list = std::conditional_t<InOrder, cases_in_order<plain_list>, plain_list>;
};

/// Not a named case that refers to a value whose lifetime is unknown, or that can be sent only once.
template <class C>
inline constexpr bool refers_to_gone = std::is_lvalue_reference_v<C> && refers_to_rvalue<std::remove_cvref_t<C>>;
template <class C>
inline constexpr bool is_sent_again = std::is_lvalue_reference_v<C> && sends_its_own<std::remove_cvref_t<C>>;

/// Performs one of the cases, but for its function, and returns its place. `Given`: the types as the caller gave them,
/// references for named cases.
template <bool InOrder, class... Given>
RAMIE_ALWAYS_INLINE std::size_t select_among(const std::source_location& where,
                                             std::remove_reference_t<Given>&... all) {
  constexpr std::size_t N = (std::size_t{is_waited_for<std::remove_cvref_t<Given>>} + ... + 0);
  constexpr bool mixed = (is_mixed<std::remove_cvref_t<Given>> || ... || false);
  using listing = case_listing<mixed, InOrder>;
  static_assert((std::size_t{is_timeout<std::remove_cvref_t<Given>>} + ... + 0) <= 1,
                "ramie::select: one on_timeout at most");
  static_assert((std::size_t{is_otherwise<std::remove_cvref_t<Given>>} + ... + 0) <= 1,
                "ramie::select: one otherwise at most");
  constexpr bool polls = (is_otherwise<std::remove_cvref_t<Given>> || ... || false);
  constexpr bool timed = (is_timeout<std::remove_cvref_t<Given>> || ... || false);
  static_assert(!(polls && timed), "ramie::select: with otherwise it never waits, so there is no use for on_timeout");
  static_assert(
      !(refers_to_gone<Given> || ...),
      "ramie::select: a case that sends a value given as an rvalue refers to that value; make the case in the "
      "call of select, or give std::ref(value)");
  static_assert(!(is_sent_again<Given> || ...),
                "ramie::select: a named case that sends its own copy of a value could send it only once; make the case "
                "in the call of select, or give std::ref(value)");
  std::array<typename listing::entry, N == 0 ? 1 : N> pointers;
  std::array<std::size_t, N == 0 ? 1 : N> places{};
  const std::chrono::steady_clock::time_point* deadline = nullptr;
  std::size_t spare = no_case;  // the place of on_timeout or otherwise
  std::size_t n = 0;
  std::size_t place = 0;
  const auto enter = [&](auto& c) RAMIE_LAMBDA_INLINE {
    using kind = std::remove_reference_t<decltype(c)>;
    if constexpr (is_guarded<kind>) {
      if (c.on) {
        pointers[n] = c.guarded;
        places[n++] = place;
      }
    } else if constexpr (is_channel_case<kind> || is_waitable<kind>) {
      pointers[n] = &c;
      places[n++] = place;
    } else {
      if constexpr (is_timeout<kind>) deadline = &c.deadline;
      spare = place;
    }
    ++place;
  };
  (enter(all), ...);
  typename listing::list cases{};
  cases.first = pointers.data();
  const std::size_t served = select_one(cases, n, !polls, deadline, where);
  return served == no_case ? spare : places[served];
}

template <bool InOrder, class... Given>
RAMIE_ALWAYS_INLINE std::size_t select_and_finish(const std::source_location& where,
                                                  std::remove_reference_t<Given>&... all) {
  static_assert(!(keeps_outcome<std::remove_cvref_t<Given>> || ...),
                "ramie::select: a case of on_recv or on_send without a function loses its outcome here; give it a "
                "function, or a variable for the outcome, or call select_value");
  const std::size_t fired = select_among<InOrder, Given...>(where, all...);
  std::size_t place = 0;
  const auto finish = [&](auto& c) RAMIE_LAMBDA_INLINE {
    if (place++ == fired) c.finish();
  };
  (finish(all), ...);
  return fired;
}

template <class... Given>
using outcome_of = std::variant<decltype(std::declval<Given&>().outcome())...>;

template <class... Given, std::size_t... Place>
outcome_of<Given...> outcome_at(std::size_t fired, std::index_sequence<Place...>, Given&... all) {
  std::optional<outcome_of<Given...>> made;
  ((Place == fired ? static_cast<void>(made.emplace(std::in_place_index<Place>, all.outcome())) : void()), ...);
  return std::move(*made);
}

}  // namespace detail

/// Waits until one of the cases is ready, performs it, and calls its function; returns its place among the arguments.
/// Of several ready ones each is equally likely. A closed channel is ready. The same channel may be in several cases; a
/// select does not match its own cases; a case that is twice among the arguments counts once. Nothing is allocated.
/// Suspends (a plain thread: blocks) unless there is an `otherwise` case. Throws `cancelled` if the fiber is asked to
/// stop, having performed none; what moving an element, or the function, throws.
template <class First, class... Cases>
  requires(detail::any_case<std::remove_cvref_t<First>> && (detail::any_case<std::remove_cvref_t<Cases>> && ...))
RAMIE_ALWAYS_INLINE std::size_t select(First&& first, Cases&&... rest) {
  return detail::select_and_finish<false, First, Cases...>(std::source_location::current(), first, rest...);
}

/// The same, but of several ready cases the first is taken. A case that is always ready starves those after it.
template <class First, class... Cases>
  requires(detail::any_case<std::remove_cvref_t<First>> && (detail::any_case<std::remove_cvref_t<Cases>> && ...))
std::size_t select_in_order(First&& first, Cases&&... rest) {
  return detail::select_and_finish<true, First, Cases...>(std::source_location::current(), first, rest...);
}

/// Same as select, for cases without functions: returns a variant with the outcome of the case that was performed;
/// index() is its position. The outcome is std::optional<T> for on_recv(c), channel_status for on_send(c, value), and
/// otherwise monostate.
template <class First, class... Cases>
  requires(detail::any_case<std::remove_cvref_t<First>> && (detail::any_case<std::remove_cvref_t<Cases>> && ...))
[[nodiscard]] auto select_value(First&& first, Cases&&... rest) {
  const std::size_t fired =
      detail::select_among<false, First, Cases...>(std::source_location::current(), first, rest...);
  return detail::outcome_at(fired, std::make_index_sequence<1 + sizeof...(Cases)>{}, first, rest...);
}

/// select over any number of cases of one type, say a std::vector of on_recv with std::function, or of on_ready, and
/// then perhaps an on_timeout or otherwise. Returns the index in `cases`; their number if on_timeout or otherwise was
/// taken. Suspends and throws as `select` does; invalid_argument if there is no case at all.
template <std::ranges::random_access_range R, class... Spare>
  requires(
      sizeof...(Spare) <= 1 &&
      (detail::is_channel_case<std::ranges::range_value_t<R>> || detail::is_waitable<std::ranges::range_value_t<R>>) &&
      ((detail::is_timeout<std::remove_cvref_t<Spare>> || detail::is_otherwise<std::remove_cvref_t<Spare>>) && ...))
std::size_t select(R&& cases, Spare&&... spare) {
  static_assert(!detail::sends_its_own<std::ranges::range_value_t<R>>,
                "ramie::select: a kept case that sends its own copy of a value could send it only once; give "
                "std::ref(value)");
  struct {
    std::ranges::iterator_t<R> first;
    using kind = std::conditional_t<detail::is_waitable<std::ranges::range_value_t<R>>, detail::waitable_case,
                                    detail::select_case>;
    kind& operator[](std::size_t i) const { return first[static_cast<std::ranges::range_difference_t<R>>(i)]; }
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
