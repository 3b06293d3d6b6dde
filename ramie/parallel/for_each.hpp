// Loops over ranges: for_each, transform, invoke.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <utility>

namespace ramie::parallel {

/// Calls f(proj(element)) for each element, in no particular order, several at the same time; returns when all have
/// ended. If f cannot be called with an element but with a chunk (`chunk_of<R>`, a std::span), it gets chunks that
/// together are the range. f and proj are shared by all workers, or copied; they may suspend. An element must not wait
/// for another one: they may be done one after the other. If f throws, elements not yet begun are left out, waits of
/// others throw `cancelled`, and the first exception is rethrown,
/// `cancelled` only if there is no other. A stop request or a deadline ends the loop between
/// two chunks, by `cancelled`. On a plain thread: a loop.
template <range R, class F, class Proj = std::identity>
  requires(detail::element_body<F, R, Proj> || detail::chunk_body<F, R, Proj>)
std::ranges::borrowed_iterator_t<R> for_each(R&& r, F f, Proj proj = {}) {
  const auto first = std::ranges::begin(r);
  const std::size_t size = detail::size_of(r);
  detail::for_chunks(size, [&](std::size_t begin, std::size_t end) {
    if constexpr (detail::chunk_body<F, R, Proj>) {
      f(detail::chunk_from<R>(first, begin, end));
    } else {
      detail::local_function<F> call = f;
      detail::local_function<Proj> project = proj;
      const auto stop = detail::advanced(first, end);
      for (auto at = detail::advanced(first, begin); at != stop; ++at) std::invoke(call, std::invoke(project, *at));
    }
  });
  return detail::advanced(first, size);
}

/// Writes f(proj(element)) of each element to the place in `out` that corresponds to it, which may be the element
/// itself. `out` needs as many elements as the range. Otherwise as for_each.
template <range R, std::random_access_iterator Out, class F, class Proj = std::identity>
  requires(detail::element_body<F, R, Proj> &&
           std::indirectly_writable<Out, std::invoke_result_t<F&, detail::projected_t<R, Proj>>>)
std::ranges::unary_transform_result<std::ranges::borrowed_iterator_t<R>, Out> transform(R&& r, Out out, F f,
                                                                                        Proj proj = {}) {
  const auto first = std::ranges::begin(r);
  const std::size_t size = detail::size_of(r);
  detail::for_chunks(size, [&](std::size_t begin, std::size_t end) {
    detail::local_function<F> call = f;
    detail::local_function<Proj> project = proj;
    const auto stop = detail::advanced(first, end);
    Out to = detail::advanced(out, begin);
    for (auto at = detail::advanced(first, begin); at != stop; ++at, ++to)
      *to = std::invoke(call, std::invoke(project, *at));
  });
  return {detail::advanced(first, size), detail::advanced(out, size)};
}

/// The same with pairs of elements of two ranges, as many as the shorter one has.
template <range R1, range R2, std::random_access_iterator Out, class F, class Proj1 = std::identity,
          class Proj2 = std::identity>
  requires(std::invocable<F&, detail::projected_t<R1, Proj1>, detail::projected_t<R2, Proj2>>)
std::ranges::binary_transform_result<std::ranges::borrowed_iterator_t<R1>, std::ranges::borrowed_iterator_t<R2>, Out>
transform(R1&& r1, R2&& r2, Out out, F f, Proj1 proj1 = {}, Proj2 proj2 = {}) {
  const auto first1 = std::ranges::begin(r1);
  const auto first2 = std::ranges::begin(r2);
  const std::size_t size = std::min(detail::size_of(r1), detail::size_of(r2));
  detail::for_chunks(size, [&](std::size_t begin, std::size_t end) {
    detail::local_function<F> call = f;
    detail::local_function<Proj1> project1 = proj1;
    detail::local_function<Proj2> project2 = proj2;
    const auto stop = detail::advanced(first1, end);
    auto at2 = detail::advanced(first2, begin);
    Out to = detail::advanced(out, begin);
    for (auto at1 = detail::advanced(first1, begin); at1 != stop; ++at1, ++at2, ++to)
      *to = std::invoke(call, std::invoke(project1, *at1), std::invoke(project2, *at2));
  });
  return {detail::advanced(first1, size), detail::advanced(first2, size), detail::advanced(out, size)};
}

/// Calls each function of a range. For a number known when the program is written there is `fork_join`, which returns
/// results.
template <range R>
  requires std::invocable<std::ranges::range_reference_t<R>>
void invoke(R&& functions) {
  for_each(functions, [](auto&& f) { std::forward<decltype(f)>(f)(); });
}

}  // namespace ramie::parallel
