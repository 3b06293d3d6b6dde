// Partition in place.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::detail {

/// Pieces for algorithms that need some memory for each: enough that one which takes longer than others hardly matters.
[[nodiscard]] inline std::size_t pieces_here() noexcept { return 4 * workers_here(); }

/// Moves those of which is_first is true to the front, and returns their number. Without a branch on the outcome where
/// elements are small: N. Lomuto's scheme.
template <class Iterator, class Pred>
std::size_t partition_part(Iterator first, std::size_t size, Pred& is_first) {
  using value = std::iter_value_t<Iterator>;
  if constexpr (std::is_trivially_copyable_v<value> && sizeof(value) <= 16 &&
                std::is_same_v<std::iter_reference_t<Iterator>, value&>) {
    Iterator front = first;
    const Iterator stop = advanced(first, size);
    for (Iterator at = first; at != stop; ++at) {
      const value x = *at;
      *at = *front;
      *front = x;
      front += is_first(x) ? 1 : 0;
    }
    return static_cast<std::size_t>(front - first);
  } else {
    const auto behind = std::ranges::partition(first, advanced(first, size), std::ref(is_first));
    return static_cast<std::size_t>(behind.begin() - first);
  }
}

/// Positions in a range, a list of runs.
class run_list {
 public:
  explicit run_list(std::size_t runs_most) { runs_.reserve(runs_most); }
  void add(std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    runs_.push_back({size_, begin});
    size_ += end - begin;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  struct place {
    std::size_t position;
    std::size_t left;  // in its run
  };
  [[nodiscard]] place at(std::size_t index) const noexcept {
    const auto after =
        std::upper_bound(runs_.begin(), runs_.end(), index, [](std::size_t i, const run& r) { return i < r.index; });
    const std::size_t end = after == runs_.end() ? size_ : after->index;
    return {after[-1].position + (index - after[-1].index), end - index};
  }

 private:
  struct run {
    std::size_t index;  // of its first position in the list
    std::size_t position;
  };
  std::vector<run> runs_;
  std::size_t size_ = 0;
};

/// partition_part by all workers: each piece is partitioned; then what is on the wrong side changes places, pair by
/// pair.
template <class Iterator, class Pred>
std::size_t partition_all(Iterator first, std::size_t size, Pred& is_first) {
  const std::size_t pieces = std::min(pieces_here(), size / 1024 + 1);  // a guess: a microsecond each
  if (pieces < 2 || workers_here() == 1) return partition_part(first, size, is_first);
  const auto begin_of = [&](std::size_t piece) { return size / pieces * piece + std::min(piece, size % pieces); };
  std::vector<std::size_t> firsts(pieces);
  for_pieces(pieces, [&](std::size_t i) {
    firsts[i] = partition_part(advanced(first, begin_of(i)), begin_of(i + 1) - begin_of(i), is_first);
  });
  std::size_t border = 0;
  for (const std::size_t n : firsts) border += n;

  run_list low(pieces);   // before the border, but not of the first kind
  run_list high(pieces);  // the reverse; there are as many
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t middle = begin_of(i) + firsts[i];
    low.add(middle, std::min(begin_of(i + 1), border));
    high.add(std::max(begin_of(i), border), middle);
  }
  for_chunks(low.size(), [&](std::size_t begin, std::size_t end) {
    while (begin != end) {
      const run_list::place a = low.at(begin);
      const run_list::place b = high.at(begin);
      const std::size_t n = std::min({a.left, b.left, end - begin});
      const auto from = advanced(first, a.position);
      const auto to = advanced(first, b.position);
      std::ranges::swap_ranges(from, advanced(from, n), to, advanced(to, n));
      begin += n;
    }
  });
  return border;
}

}  // namespace ramie::detail

namespace ramie::parallel {

/// Reorders the range so that the elements of whose projection pred is true come first, in no particular order; returns
/// those of which it is false. If pred throws, all elements are there still, in some order. Otherwise as for_each.
template <range R, class Proj = std::identity,
          std::indirect_unary_predicate<std::projected<std::ranges::iterator_t<R>, Proj>> Pred>
  requires std::permutable<std::ranges::iterator_t<R>>
std::ranges::borrowed_subrange_t<R> partition(R&& r, Pred pred, Proj proj = {}) {
  const auto first = std::ranges::begin(r);
  const std::size_t size = detail::size_of(r);
  auto is_first = [&](auto&& element) -> bool {
    return std::invoke(pred, std::invoke(proj, std::forward<decltype(element)>(element)));
  };
  const std::size_t border = detail::partition_all(first, size, is_first);
  return {detail::advanced(first, border), detail::advanced(first, size)};
}

}  // namespace ramie::parallel
