// The smallest and the largest element.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <utility>

namespace ramie::parallel {

/// The first of the smallest elements, by comp and proj; the end of an empty range. Otherwise as for_each.
template <range R, class Proj = std::identity,
          std::indirect_strict_weak_order<std::projected<std::ranges::iterator_t<R>, Proj>> Comp = std::ranges::less>
std::ranges::borrowed_iterator_t<R> min_element(R&& r, Comp comp = {}, Proj proj = {}) {
  using iterator = std::ranges::iterator_t<R>;
  const iterator first = std::ranges::begin(r);
  detail::loop_state loop{detail::size_of(r)};
  const std::optional<iterator> found = detail::fold_chunks<iterator>(
      loop,
      [&](std::size_t begin, std::size_t end) {
        return std::ranges::min_element(detail::chunk_from<R>(first, begin, end), std::ref(comp), std::ref(proj));
      },
      [&](iterator a, iterator b) { return std::invoke(comp, std::invoke(proj, *b), std::invoke(proj, *a)) ? b : a; });
  return found.value_or(first);
}

/// The first of the largest.
template <range R, class Proj = std::identity,
          std::indirect_strict_weak_order<std::projected<std::ranges::iterator_t<R>, Proj>> Comp = std::ranges::less>
std::ranges::borrowed_iterator_t<R> max_element(R&& r, Comp comp = {}, Proj proj = {}) {
  return parallel::min_element(
      std::forward<R>(r), [&comp](auto&& a, auto&& b) -> bool { return std::invoke(comp, b, a); }, std::move(proj));
}

/// The first of the smallest and the last of the largest, as std::ranges::minmax_element.
template <range R, class Proj = std::identity,
          std::indirect_strict_weak_order<std::projected<std::ranges::iterator_t<R>, Proj>> Comp = std::ranges::less>
std::ranges::minmax_element_result<std::ranges::borrowed_iterator_t<R>> minmax_element(R&& r, Comp comp = {},
                                                                                       Proj proj = {}) {
  using iterator = std::ranges::iterator_t<R>;
  using both = std::ranges::minmax_element_result<iterator>;
  const iterator first = std::ranges::begin(r);
  detail::loop_state loop{detail::size_of(r)};
  const auto less = [&](iterator a, iterator b) {
    return static_cast<bool>(std::invoke(comp, std::invoke(proj, *a), std::invoke(proj, *b)));
  };
  const std::optional<both> found = detail::fold_chunks<both>(
      loop,
      [&](std::size_t begin, std::size_t end) {
        return std::ranges::minmax_element(detail::chunk_from<R>(first, begin, end), std::ref(comp), std::ref(proj));
      },
      [&](both a, both b) { return both{less(b.min, a.min) ? b.min : a.min, less(b.max, a.max) ? a.max : b.max}; });
  if (!found.has_value()) return {first, first};
  return {found->min, found->max};
}

}  // namespace ramie::parallel
