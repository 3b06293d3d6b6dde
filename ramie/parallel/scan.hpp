// Prefix sums.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/partition.hpp>
#include <ramie/parallel/ranges.hpp>
#include <ramie/parallel/reduce.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::detail {

/// Works through a range in rounds of as many elements as fit into the caches, so that it is read from memory once. In
/// a round each piece is first reduced, which tells what comes before the next, and then scanned. The first piece is
/// scanned at once, since what comes before it is known, and the last need not be reduced.
template <class T, bool inclusive, class Iterator, class Out, class Op>
class scan {
 public:
  scan(Iterator first, Out out, Op& op) noexcept : first_{first}, out_{out}, op_{op} {}

  void operator()(std::size_t size, std::optional<T> before) {
    if (workers_here() == 1) {
      scan_part(0, size, std::move(before));
      return;
    }
    const std::size_t piece = std::clamp<std::size_t>(size / pieces_here(), 1, piece_most);
    std::vector<std::optional<T>> totals(pieces_here());  // of a piece, later of all up to its end
    for (std::size_t begin = 0; begin < size;) {
      const std::size_t end = std::min(size, begin + piece * totals.size());
      const std::size_t count = (end - begin + piece - 1) / piece;
      const auto begin_of = [&](std::size_t i) { return std::min(begin + i * piece, end); };
      for_pieces(std::max<std::size_t>(count - 1, 1), [&](std::size_t i) {
        totals[i] =
            i == 0 ? scan_part(begin, begin_of(1), std::move(before)) : reduce_part(begin_of(i), begin_of(i + 1));
      });
      for (std::size_t i = 1; i + 1 < count; ++i) totals[i] = op_(*totals[i - 1], *std::move(totals[i]));
      if (count > 1) {
        for_pieces(count - 1, [&](std::size_t i) {
          std::optional<T> all = scan_part(begin_of(i + 1), begin_of(i + 2), totals[i]);
          if (i + 2 == count) before = std::move(all);
        });
      } else {
        before = std::move(totals[0]);
      }
      begin = end;
    }
  }

 private:
  static constexpr std::size_t piece_most = 8192;  // a guess: 64 KiB of doubles

  T reduce_part(std::size_t begin, std::size_t end) {
    local_function<Op> op = op_;
    auto map = [](auto&& x) -> T { return static_cast<T>(std::forward<decltype(x)>(x)); };
    return reduce_in_order<T>(advanced(first_, begin), end - begin, op, map);
  }

  /// Returns the total up to `end`.
  std::optional<T> scan_part(std::size_t begin, std::size_t end, std::optional<T> before) {
    if (begin == end) return before;
    local_function<Op> op = op_;
    Iterator at = advanced(first_, begin);
    const Iterator stop = advanced(first_, end);
    Out to = advanced(out_, begin);
    if constexpr (inclusive) {
      T total = before.has_value() ? static_cast<T>(op(*std::move(before), *at)) : static_cast<T>(*at);
      *to = total;
      ++at;
      ++to;
      if constexpr (adds_floats) total = scan_groups(at, to, end - begin - 1, total);
      for (; at != stop; ++at, ++to) *to = total = op(std::move(total), *at);
      return total;
    } else {
      T total = *std::move(before);
      if constexpr (adds_floats) total = scan_groups(at, to, end - begin, total);
      for (; at != stop; ++at, ++to) {
        T next = op(total, *at);  // before *to is written: it may be the element
        *to = std::move(total);
        total = std::move(next);
      }
      return total;
    }
  }

  static constexpr bool adds_floats =
      std::is_floating_point_v<T> && (std::is_same_v<Op, std::plus<>> || std::is_same_v<Op, std::plus<T>>);

  /// By groups of four, as many as there are in `left` elements; returns the total. Each addition of floating-point
  /// numbers waits four cycles or so for the one before; here only one in four waits for the group before.
  static T scan_groups(Iterator& at, Out& to, std::size_t left, T total) {
    for (; left >= 4; left -= 4) {
      const T a = static_cast<T>(*at);  // all before places are written, which may be theirs
      const T b = static_cast<T>(*++at);
      const T c = static_cast<T>(*++at);
      const T d = static_cast<T>(*++at);
      ++at;
      const T two = a + b;
      const T next = total + (two + (c + d));
      if constexpr (!inclusive) *to++ = total;
      *to++ = total + a;
      *to++ = total + two;
      *to++ = total + (two + c);
      if constexpr (inclusive) *to++ = next;
      total = next;
    }
    return total;
  }

  Iterator first_;
  Out out_;
  Op& op_;
};

}  // namespace ramie::detail

namespace ramie::parallel {

/// Writes e1, e1 op e2, e1 op e2 op e3 ... to `out`, which may be the range itself. op must be associative; it is
/// called up to twice as often as in a loop. Otherwise as for_each. Returns the end of the output.
template <range R, std::random_access_iterator Out, class Op = std::plus<>>
  requires std::indirectly_writable<Out, const std::ranges::range_value_t<R>&>
Out inclusive_scan(R&& r, Out out, Op op = {}) {
  using value = std::ranges::range_value_t<R>;
  const std::size_t size = detail::size_of(r);
  detail::scan<value, true, std::ranges::iterator_t<R>, Out, Op>{std::ranges::begin(r), out, op}(size, std::nullopt);
  return detail::advanced(out, size);
}

/// The same after `init`: init op e1, init op e1 op e2 ...
template <range R, std::random_access_iterator Out, class Op, class T>
  requires std::indirectly_writable<Out, const T&>
Out inclusive_scan(R&& r, Out out, Op op, T init) {
  const std::size_t size = detail::size_of(r);
  detail::scan<T, true, std::ranges::iterator_t<R>, Out, Op>{std::ranges::begin(r), out, op}(size, std::move(init));
  return detail::advanced(out, size);
}

/// Writes what comes before each element: init, init op e1, init op e1 op e2 ...
template <range R, std::random_access_iterator Out, class T, class Op = std::plus<>>
  requires std::indirectly_writable<Out, const T&>
Out exclusive_scan(R&& r, Out out, T init, Op op = {}) {
  const std::size_t size = detail::size_of(r);
  detail::scan<T, false, std::ranges::iterator_t<R>, Out, Op>{std::ranges::begin(r), out, op}(size, std::move(init));
  return detail::advanced(out, size);
}

}  // namespace ramie::parallel
