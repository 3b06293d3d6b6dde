// Searches that end early: find, find_if, find_if_not, any_of, all_of, none_of.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ranges>
#include <utility>

namespace ramie::detail {

/// The index of the first element that matches, or, if `any` is enough, 0 for any; the size of the range if none does.
/// A worker that finds one cuts the loop there: the others stop at the end of their chunk.
template <class R, class Pred, class Proj>
std::size_t first_match(R& r, Pred& pred, Proj& proj, bool any) {
  const auto first = std::ranges::begin(r);
  loop_state loop{size_of(r)};
  for_chunks(loop, [&](std::size_t begin, std::size_t end) {
    const auto stop = advanced(first, end);
    // Not std::ranges::find_if, which does not unroll its loop in gcc's library.
    const auto at = std::find_if(advanced(first, begin), stop, [&](auto&& element) -> bool {
      return std::invoke(pred, std::invoke(proj, std::forward<decltype(element)>(element)));
    });
    if (at != stop) loop.cut(any ? 0 : static_cast<std::size_t>(at - first));
  });
  return loop.wanted();
}

}  // namespace ramie::detail

namespace ramie::parallel {

/// The first element of whose projection pred is true, or the end. pred may be called for later elements as well, in no
/// particular order. Otherwise as for_each.
template <range R, class Proj = std::identity,
          std::indirect_unary_predicate<std::projected<std::ranges::iterator_t<R>, Proj>> Pred>
std::ranges::borrowed_iterator_t<R> find_if(R&& r, Pred pred, Proj proj = {}) {
  return detail::advanced(std::ranges::begin(r), detail::first_match(r, pred, proj, false));
}

/// The first of whose projection it is false.
template <range R, class Proj = std::identity,
          std::indirect_unary_predicate<std::projected<std::ranges::iterator_t<R>, Proj>> Pred>
std::ranges::borrowed_iterator_t<R> find_if_not(R&& r, Pred pred, Proj proj = {}) {
  auto other = [&pred](auto&& element) -> bool { return !std::invoke(pred, std::forward<decltype(element)>(element)); };
  return detail::advanced(std::ranges::begin(r), detail::first_match(r, other, proj, false));
}

/// The first whose projection equals `value`.
template <range R, class T, class Proj = std::identity>
  requires std::indirect_binary_predicate<std::ranges::equal_to, std::projected<std::ranges::iterator_t<R>, Proj>,
                                          const T*>
std::ranges::borrowed_iterator_t<R> find(R&& r, const T& value, Proj proj = {}) {
  auto equal = [&value](auto&& element) -> bool { return element == value; };
  return detail::advanced(std::ranges::begin(r), detail::first_match(r, equal, proj, false));
}

/// Is pred true of any element's projection? False for an empty range. Otherwise as find_if.
template <range R, class Proj = std::identity,
          std::indirect_unary_predicate<std::projected<std::ranges::iterator_t<R>, Proj>> Pred>
bool any_of(R&& r, Pred pred, Proj proj = {}) {
  return detail::size_of(r) != 0 && detail::first_match(r, pred, proj, true) == 0;
}
template <range R, class Proj = std::identity,
          std::indirect_unary_predicate<std::projected<std::ranges::iterator_t<R>, Proj>> Pred>
bool none_of(R&& r, Pred pred, Proj proj = {}) {
  return !parallel::any_of(r, std::move(pred), std::move(proj));
}
template <range R, class Proj = std::identity,
          std::indirect_unary_predicate<std::projected<std::ranges::iterator_t<R>, Proj>> Pred>
bool all_of(R&& r, Pred pred, Proj proj = {}) {
  return !parallel::any_of(
      r, [&pred](auto&& element) -> bool { return !std::invoke(pred, std::forward<decltype(element)>(element)); },
      std::move(proj));
}

}  // namespace ramie::parallel
