// The merge of two sorted ranges.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace ramie::detail {

/// Moves or copies the merge of [a, a_end) and [b, b_end) to `out`. less(y, x): does y of b go before x of a?
template <class A, class B, class Out, class Less, class Take>
void merge_part(A a, A a_end, B b, B b_end, Out out, Less& less, Take take) {
  if constexpr (std::is_trivially_copyable_v<std::iter_value_t<A>> && std::is_same_v<A, B> &&
                sizeof(std::iter_value_t<A>) <= 16) {
    // Without a branch that nobody can predict.
    while (a != a_end && b != b_end) {
      const bool from_b = static_cast<bool>(less(*b, *a));
      *out = take(from_b ? b : a);
      b += from_b ? 1 : 0;
      a += from_b ? 0 : 1;
      ++out;
    }
  } else {
    while (a != a_end && b != b_end) {
      if (less(*b, *a)) {
        *out = take(b);
        ++b;
      } else {
        *out = take(a);
        ++a;
      }
      ++out;
    }
  }
  for (; a != a_end; ++a, ++out) *out = take(a);
  for (; b != b_end; ++b, ++out) *out = take(b);
}

/// Of the first `count` elements of the merge, how many are from a? (Merge path: S. Odeh, O. Green, Z. Mwassi,
/// O. Shmueli, Y. Birk, 2012.)
template <class A, class B, class Less>
std::size_t merge_path(A a, std::size_t a_size, B b, std::size_t b_size, std::size_t count, Less& less) {
  std::size_t low = count > b_size ? count - b_size : 0;
  std::size_t high = std::min(count, a_size);
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (less(*advanced(b, count - middle - 1), *advanced(a, middle))) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// merge_part by all workers: each chunk of the output finds its inputs. For copies: where elements are moved, a chunk
/// could look at some that another one has moved already.
template <class A, class B, class Out, class Less, class Take>
void merge_all(A a, std::size_t a_size, B b, std::size_t b_size, Out out, Less& less, Take take) {
  for_chunks(a_size + b_size, [&](std::size_t begin, std::size_t end) {
    const std::size_t a_begin = merge_path(a, a_size, b, b_size, begin, less);
    const std::size_t a_stop = merge_path(a, a_size, b, b_size, end, less);
    merge_part(advanced(a, a_begin), advanced(a, a_stop), advanced(b, begin - a_begin), advanced(b, end - a_stop),
               advanced(out, begin), less, take);
  });
}

}  // namespace ramie::detail

namespace ramie::parallel {

/// Copies the elements of two sorted ranges to `out`, sorted; of equal ones those of r1 first. `out` must not overlap
/// with them. Otherwise as for_each.
template <range R1, range R2, std::random_access_iterator Out, class Comp = std::ranges::less,
          class Proj1 = std::identity, class Proj2 = std::identity>
  requires std::mergeable<std::ranges::iterator_t<R1>, std::ranges::iterator_t<R2>, Out, Comp, Proj1, Proj2>
std::ranges::merge_result<std::ranges::borrowed_iterator_t<R1>, std::ranges::borrowed_iterator_t<R2>, Out> merge(
    R1&& r1, R2&& r2, Out out, Comp comp = {}, Proj1 proj1 = {}, Proj2 proj2 = {}) {
  const auto a = detail::pointer_or_iterator(r1);
  const auto b = detail::pointer_or_iterator(r2);
  const std::size_t a_size = detail::size_of(r1);
  const std::size_t b_size = detail::size_of(r2);
  auto less = [&](auto&& y, auto&& x) -> bool {
    return std::invoke(comp, std::invoke(proj2, std::forward<decltype(y)>(y)),
                       std::invoke(proj1, std::forward<decltype(x)>(x)));
  };
  detail::merge_all(a, a_size, b, b_size, out, less, [](const auto& at) -> decltype(auto) { return *at; });
  return {detail::advanced(std::ranges::begin(r1), a_size), detail::advanced(std::ranges::begin(r2), b_size),
          detail::advanced(out, a_size + b_size)};
}

}  // namespace ramie::parallel
