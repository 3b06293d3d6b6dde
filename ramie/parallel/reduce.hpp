// Reductions: reduce, transform_reduce, count_if.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

namespace ramie::parallel {

/// As first argument of a reduction: its result is the same, bit for bit, for any number of workers and at every call.
/// The grouping then depends on the number of elements alone.
struct deterministic_t {
  explicit deterministic_t() = default;
};
inline constexpr deterministic_t deterministic{};

}  // namespace ramie::parallel

namespace ramie::detail {

/// Halves down to blocks, whose number and sizes depend on the number of elements alone.
template <class T, class Chunk, class Op>
T reduce_fixed_here(std::size_t begin, std::size_t end, std::size_t block, Chunk& chunk, Op& op) {
  if (end - begin <= block) return chunk(begin, end);
  const std::size_t middle = begin + (end - begin) / 2;
  T left = reduce_fixed_here<T>(begin, middle, block, chunk, op);
  return op(std::move(left), reduce_fixed_here<T>(middle, end, block, chunk, op));
}

/// The same tree by all workers: what takes some microseconds is done in one go.
template <class T, class Chunk, class Op>
std::optional<T> reduce_fixed(loop_state& loop, std::size_t begin, std::size_t end, std::size_t block, Chunk& chunk,
                              Op& op) noexcept {
  try {
    if (loop.wanted() == 0) return std::nullopt;
    if (end - begin <= std::max(block, 4 * loop.quick())) {
      if (this_fiber::stop_requested()) [[unlikely]]
        throw cancelled{};
      const std::uint64_t before = cycles();
      std::optional<T> total{reduce_fixed_here<T>(begin, end, block, chunk, op)};
      const std::uint64_t took = std::max<std::uint64_t>(cycles() - before, 1);
      loop.set_quick(static_cast<std::size_t>((end - begin) * cycles_in_us(1) / took));
      return total;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    auto low = [&]() noexcept { return reduce_fixed<T>(loop, begin, middle, block, chunk, op); };
    auto high = [&]() noexcept { return reduce_fixed<T>(loop, middle, end, block, chunk, op); };
    std::optional<T> left;
    std::optional<T> right;
    if (thieves_are_hungry()) {
      std::tie(left, right) = fork_join(low, high);
    } else {
      left = low();
      right = high();
    }
    if (!left.has_value() || !right.has_value()) return std::nullopt;
    return op(*std::move(left), *std::move(right));
  } catch (...) {
    loop.fail(std::current_exception());
    return std::nullopt;
  }
}

template <class T, class Op, class R, class Map>
concept reduction =
    std::move_constructible<T> && std::invocable<Op&, T, T> && (element_body<Map, R> || chunk_body<Map, R>);

template <class T, class R, class Op, class Map>
auto reduce_chunk(R& r, Op& op, Map& map) {
  return [&, first = std::ranges::begin(r)](std::size_t begin, std::size_t end) -> T {
    if constexpr (chunk_body<Map, R>) {
      return static_cast<T>(map(chunk_from<R>(first, begin, end)));
    } else {
      local_function<Op> join = op;
      local_function<Map> call = map;
      auto value = [&call](auto&& element) RAMIE_LAMBDA_INLINE -> T {
        return static_cast<T>(std::invoke(call, std::forward<decltype(element)>(element)));
      };
      return reduce_in_order<T>(advanced(first, begin), end - begin, join, value);
    }
  };
}

}  // namespace ramie::detail

namespace ramie::parallel {

/// init op map(e1) op map(e2) ..., in order, with any grouping: op must be associative; it need not be commutative. If
/// map cannot be called with an element but with a chunk (`chunk_of<R>`, a std::span), it gets chunks, and returns the
/// value of each. `init` for an empty range. Otherwise as for_each.
template <range R, class T, class Op, class Map>
  requires detail::reduction<T, Op, R, Map>
T transform_reduce(R&& r, T init, Op op, Map map) {
  detail::loop_state loop{detail::size_of(r)};
  std::optional<T> total = detail::fold_chunks<T>(loop, detail::reduce_chunk<T, R>(r, op, map), op);
  if (!total.has_value()) return init;
  return static_cast<T>(op(std::move(init), *std::move(total)));
}

/// The same, deterministic. If `map` takes chunks, their sizes depend on the number of elements alone, and are 4,096 at
/// most.
template <range R, class T, class Op, class Map>
  requires detail::reduction<T, Op, R, Map>
T transform_reduce(deterministic_t, R&& r, T init, Op op, Map map) {
  const std::size_t size = detail::size_of(r);
  if (size == 0) return init;
  // Fine enough to be shared by many workers, coarse enough not to cost more than the elements. Eight at least, for a
  // block costs a call.
  const std::size_t block = std::clamp<std::size_t>(size / 1024, 8, 4096);
  detail::loop_state loop{size};
  auto chunk = detail::reduce_chunk<T, R>(r, op, map);
  if (detail::current_worker() != nullptr) loop.begin();
  std::optional<T> total = detail::reduce_fixed<T>(loop, 0, size, block, chunk, op);
  loop.end();
  return static_cast<T>(op(std::move(init), *std::move(total)));
}

/// init op map(a1, b1) op map(a2, b2) ..., of the elements of two ranges, as many as the shorter one has. Without op
/// and map: init and the sum of the products. Otherwise as for one range.
template <range R1, range R2, class T, class Op = std::plus<>, class Map = std::multiplies<>>
  requires(std::move_constructible<T> && std::invocable<Op&, T, T> &&
           std::invocable<Map&, std::ranges::range_reference_t<R1>, std::ranges::range_reference_t<R2>>)
T transform_reduce(R1&& r1, R2&& r2, T init, Op op = {}, Map map = {}) {
  const auto first1 = detail::pointer_or_iterator(r1);
  const auto first2 = detail::pointer_or_iterator(r2);
  detail::loop_state loop{std::min(detail::size_of(r1), detail::size_of(r2))};
  std::optional<T> total = detail::fold_chunks<T>(
      loop,
      [&](std::size_t begin, std::size_t end) -> T {
        detail::local_function<Op> join = op;
        detail::local_function<Map> call = map;
        auto value = [&call, at1 = first1, at2 = first2](std::size_t i) RAMIE_LAMBDA_INLINE -> T {
          return static_cast<T>(std::invoke(call, *detail::advanced(at1, i), *detail::advanced(at2, i)));
        };
        return detail::reduce_in_order<T>(detail::counting<std::size_t>{begin}, end - begin, join, value);
      },
      op);
  if (!total.has_value()) return init;
  return static_cast<T>(op(std::move(init), *std::move(total)));
}

/// init op proj(e1) op proj(e2) ..., as transform_reduce. Without init and op: the sum.
template <range R, class T = std::ranges::range_value_t<R>, class Op = std::plus<>, class Proj = std::identity>
  requires(detail::element_body<Proj, R> && std::invocable<Op&, T, T>)
T reduce(R&& r, T init = {}, Op op = {}, Proj proj = {}) {
  return parallel::transform_reduce(r, std::move(init), std::move(op), std::move(proj));
}
template <range R, class T = std::ranges::range_value_t<R>, class Op = std::plus<>, class Proj = std::identity>
  requires(detail::element_body<Proj, R> && std::invocable<Op&, T, T>)
T reduce(deterministic_t, R&& r, T init = {}, Op op = {}, Proj proj = {}) {
  return parallel::transform_reduce(deterministic, r, std::move(init), std::move(op), std::move(proj));
}

/// The number of elements of whose projection pred is true. Otherwise as for_each.
template <range R, class Pred, class Proj = std::identity>
  requires std::indirect_unary_predicate<Pred, std::projected<std::ranges::iterator_t<R>, Proj>>
std::ranges::range_difference_t<R> count_if(R&& r, Pred pred, Proj proj = {}) {
  using count = std::ranges::range_difference_t<R>;
  return parallel::transform_reduce(r, count{0}, std::plus<>{}, [&](chunk_of<R> part) {
    detail::local_function<Pred> matches = pred;
    detail::local_function<Proj> project = proj;
    count found = 0;
    for (auto&& element : part)
      found += std::invoke(matches, std::invoke(project, std::forward<decltype(element)>(element))) ? 1 : 0;
    return found;
  });
}

/// The number of elements whose projection equals `value`.
template <range R, class T, class Proj = std::identity>
std::ranges::range_difference_t<R> count(R&& r, const T& value, Proj proj = {}) {
  return parallel::count_if(r, [&value](const auto& element) { return element == value; }, std::move(proj));
}

}  // namespace ramie::parallel
