// What parallel algorithms work on, and how bodies are called: by element or by chunk.
#pragma once

#include <ramie/base/config.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>

namespace ramie::parallel {

/// Elements that can be reached in any order, and their number is known: vectors, spans, deques, std::views::iota of
/// two integers, a std::ranges::subrange of two iterators.
template <class R>
concept range = std::ranges::random_access_range<R> && std::ranges::sized_range<R>;

/// A part of a range, for bodies that take many elements at once. It converts to std::span where elements are adjacent.
template <range R>
using chunk_of = std::ranges::subrange<std::ranges::iterator_t<R>>;

}  // namespace ramie::parallel

namespace ramie::detail {

template <class R>
[[nodiscard]] std::size_t size_of(R& r) noexcept {
  return static_cast<std::size_t>(std::ranges::size(r));
}

/// A pointer where elements are adjacent, for compilers know pointers best.
template <class R>
[[nodiscard]] auto pointer_or_iterator(R& r) {
  if constexpr (std::ranges::contiguous_range<R>) return std::ranges::data(r);
  else return std::ranges::begin(r);
}

/// `at` moved by n elements.
template <class Iterator>
[[nodiscard]] RAMIE_ALWAYS_INLINE Iterator advanced(Iterator at, std::size_t n) {
  return at + static_cast<std::iter_difference_t<Iterator>>(n);
}

template <class R>
[[nodiscard]] RAMIE_ALWAYS_INLINE auto chunk_from(const std::ranges::iterator_t<R>& first, std::size_t begin,
                                                  std::size_t end) {
  return std::ranges::subrange{advanced(first, begin), advanced(first, end)};
}

template <class R, class Proj>
using projected_t = std::invoke_result_t<Proj&, std::ranges::range_reference_t<R>>;

/// Called with each element, after its projection.
template <class F, class R, class Proj = std::identity>
concept element_body =
    std::invocable<Proj&, std::ranges::range_reference_t<R>> && std::invocable<F&, projected_t<R, Proj>>;
/// Called with chunks, if it cannot be called with an element.
template <class F, class R, class Proj = std::identity>
concept chunk_body =
    !element_body<F, R, Proj> && std::same_as<Proj, std::identity> && std::invocable<F&, parallel::chunk_of<R>>;

/// A function to use in a loop over a chunk: a copy where that is cheap, for compilers keep what is local in registers;
/// otherwise the function itself.
template <class F>
using local_function = std::conditional_t<std::is_trivially_copyable_v<F> && sizeof(F) <= 64, F, F&>;

}  // namespace ramie::detail
