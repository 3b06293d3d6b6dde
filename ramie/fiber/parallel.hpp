// Loops and reductions over ranges, by fork and join.
//
// Lazy binary splitting (A. Tzannes, G. Caragea, R. Barua, U. Vishkin, PPoPP 2010): a range is halved only while the
// worker's fork deque holds nothing to steal; otherwise the next few elements are done in place. The chunk between two
// such looks grows from 1 to a sixteenth of the rest, so that cheap bodies run in long loops and expensive ones are
// split finely at the end.
#pragma once

#include <ramie/fiber/fork_join.hpp>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

/// True if nothing is left for thieves on this worker. False on a plain thread: splitting has no use there.
RAMIE_ALWAYS_INLINE bool thieves_are_hungry() noexcept {
  const fork_deque* d = current_forks();
  return d != nullptr && d->top.load_relaxed() >= d->bottom.load_relaxed();
}

struct chunk_size {
  std::size_t fixed;  // 0: grows
  std::size_t next = 1;
  std::size_t of(std::size_t left) noexcept {
    if (fixed != 0) return fixed < left ? fixed : left;
    const std::size_t most = left / 16 > 1 ? left / 16 : 1;
    const std::size_t now = next < most ? next : most;
    next = now * 2;
    return now;
  }
};

template <class Index, class F>
void for_range(Index begin, std::size_t size, std::size_t grain, F& f) {
  chunk_size chunks{grain};
  while (size > (grain == 0 ? 1 : grain)) {
    if (thieves_are_hungry()) {
      const std::size_t half = size / 2;
      fork_join([&] { for_range(begin, half, grain, f); },
                [&] { for_range(begin + static_cast<std::iter_difference_t<Index>>(half), size - half, grain, f); });
      return;
    }
    for (std::size_t n = chunks.of(size); n != 0; --n, --size, ++begin) f(begin);
  }
  for (; size != 0; --size, ++begin) f(begin);
}

/// map(*at) op ..., from left to right, of at least one element. Four parts side by side where T is a number: else each
/// addition would wait for the one before. That needs no more than that op is associative.
template <class T, class Iterator, class Op, class Map>
RAMIE_ALWAYS_INLINE T reduce_in_order(Iterator at, std::size_t size, Op& op, Map& map) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (size >= 64) {  // a guess: 16 steps each
      const std::size_t quarter = size / 4;
      auto second = at + static_cast<std::iter_difference_t<Iterator>>(quarter);
      auto third = second + static_cast<std::iter_difference_t<Iterator>>(quarter);
      auto fourth = third + static_cast<std::iter_difference_t<Iterator>>(quarter);
      T a = map(*at);
      T b = map(*second);
      T c = map(*third);
      T d = map(*fourth);
      for (std::size_t n = quarter - 1; n != 0; --n) {
        a = op(a, map(*++at));
        b = op(b, map(*++second));
        c = op(c, map(*++third));
        d = op(d, map(*++fourth));
      }
      for (std::size_t n = size - 4 * quarter; n != 0; --n) d = op(d, map(*++fourth));
      return op(op(a, b), op(c, d));
    }
  }
  T total = map(*at);
  for (++at, --size; size != 0; ++at, --size) total = op(std::move(total), map(*at));
  return total;
}

template <class T, class Iterator, class Op, class Map>
T reduce_range(Iterator at, std::size_t size, std::size_t grain, Op& op, Map& map) {  // size > 0
  chunk_size chunks{grain};
  const auto take = [&](std::size_t n) {
    size -= n;
    return reduce_in_order<T>(std::exchange(at, at + static_cast<std::iter_difference_t<Iterator>>(n)), n, op, map);
  };
  T total = take(1);
  while (size > (grain == 0 ? 1 : grain)) {
    if (thieves_are_hungry()) {
      const std::size_t half = size / 2;
      auto [left, right] = fork_join([&] { return reduce_range<T>(at, half, grain, op, map); },
                                     [&] {
                                       return reduce_range<T>(at + static_cast<std::iter_difference_t<Iterator>>(half),
                                                              size - half, grain, op, map);
                                     });
      return op(std::move(total), op(std::move(left), std::move(right)));
    }
    total = op(std::move(total), take(chunks.of(size)));
  }
  if (size == 0) return total;
  return op(std::move(total), take(size));
}

/// Integers as an iterator whose element is itself: std::iota_view's iterator, without its compile time.
template <std::integral Int>
struct counting {
  using difference_type = std::ptrdiff_t;
  Int value;
  Int operator*() const noexcept { return value; }
  counting& operator++() noexcept {
    ++value;
    return *this;
  }
  counting operator+(std::ptrdiff_t n) const noexcept {
    return {
        static_cast<Int>(static_cast<std::make_unsigned_t<Int>>(value) + static_cast<std::make_unsigned_t<Int>>(n))};
  }
};

}  // namespace detail

/// Calls f(i) for each i in [begin, end), in no particular order, and returns when all have ended. `grain`: minimum
/// number of elements between two looks for idle workers; 0: chosen automatically. If f throws, elements not yet
/// started may be left out, and the exception is rethrown. f may suspend; the wait for it is not cancelled itself, as
/// that of fork_join. On a plain thread: a plain loop. Does nothing if end <= begin.
template <std::integral Int, class F>
  requires std::invocable<F&, Int>
void parallel_for(Int begin, std::type_identity_t<Int> end, F&& f, std::size_t grain = 0) {
  if (end <= begin) return;
  auto call = [&f](detail::counting<Int> i) { f(*i); };
  const auto size = static_cast<std::size_t>(static_cast<std::make_unsigned_t<Int>>(
      static_cast<std::make_unsigned_t<Int>>(end) - static_cast<std::make_unsigned_t<Int>>(begin)));
  detail::for_range(detail::counting<Int>{begin}, size, grain, call);
}

/// As above for the elements of a random-access range: f(*it).
template <std::random_access_iterator Iterator, class F>
  requires std::invocable<F&, std::iter_reference_t<Iterator>>
void parallel_for(Iterator begin, std::type_identity_t<Iterator> end, F&& f, std::size_t grain = 0) {
  if (end - begin <= 0) return;
  auto call = [&f](Iterator i) { f(*i); };
  detail::for_range(begin, static_cast<std::size_t>(end - begin), grain, call);
}

/// init op map(e1) op map(e2) ..., in order, with any grouping: `op` must be associative; it need not be commutative.
/// Returns `init` for an empty range. op and map may suspend. Otherwise same as parallel_for.
template <std::random_access_iterator Iterator, class T, class Op, class Map>
  requires std::invocable<Op&, T, T> && std::invocable<Map&, std::iter_reference_t<Iterator>>
T parallel_reduce(Iterator begin, std::type_identity_t<Iterator> end, T init, Op op, Map map, std::size_t grain = 0) {
  if (end - begin <= 0) return init;
  return op(std::move(init), detail::reduce_range<T>(begin, static_cast<std::size_t>(end - begin), grain, op, map));
}

/// The same without map: init op e1 op e2 ...
template <std::random_access_iterator Iterator, class T, class Op>
  requires std::invocable<Op&, T, T>
T parallel_reduce(Iterator begin, std::type_identity_t<Iterator> end, T init, Op op) {
  auto same = [](std::iter_reference_t<Iterator> element) -> T { return static_cast<T>(element); };
  return parallel_reduce(begin, end, std::move(init), std::move(op), same, 0);
}

}  // namespace ramie
