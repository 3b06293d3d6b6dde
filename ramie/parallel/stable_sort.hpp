// Sorting that keeps the order of equal elements.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/merge.hpp>
#include <ramie/parallel/moved_elements.hpp>
#include <ramie/parallel/partition.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <new>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::detail {

/// Merge sort between the range and a buffer of its size, which holds the elements at first. Small parts are left to
/// std::stable_sort.
template <class Iterator, class Comp, class Proj>
class merge_sort {
 public:
  using value = std::iter_value_t<Iterator>;
  merge_sort(loop_state& loop, Iterator range, value* buffer, Comp& comp, Proj& proj) noexcept
      : loop_{loop}, range_{range}, buffer_{buffer}, comp_{comp}, proj_{proj} {}

  /// Sorts what is in this part of the buffer, to there or to the range. A frame of its own, as fold::run.
  RAMIE_NOINLINE void run(std::size_t begin, std::size_t end, bool to_buffer) noexcept {
    try {
      if (loop_.wanted() == 0) return;
      if (end - begin <= leaf) return sort_leaf(begin, end, to_buffer);
      const std::size_t middle = begin + (end - begin) / 2;
      auto low = [=, this]() noexcept { run(begin, middle, !to_buffer); };
      auto high = [=, this]() noexcept { run(middle, end, !to_buffer); };
      if (thieves_are_hungry()) {
        fork_join(low, high);
      } else {
        low();
        high();
      }
      if (loop_.wanted() == 0) return;
      if (to_buffer) merge(range_, buffer_, begin, middle, end);
      else merge(buffer_, range_, begin, middle, end);
    } catch (...) {
      loop_.fail(std::current_exception());
    }
  }

 private:
  static constexpr std::size_t leaf = 1024;           // takes some ten microseconds
  static constexpr std::size_t shared_merge = 16384;  // from here on a merge itself is shared

  void sort_leaf(std::size_t begin, std::size_t end, bool to_buffer) {
    if (this_fiber::stop_requested()) [[unlikely]]
      throw cancelled{};
    std::ranges::stable_sort(buffer_ + begin, buffer_ + end, std::ref(comp_), std::ref(proj_));
    if (!to_buffer) std::ranges::move(buffer_ + begin, buffer_ + end, advanced(range_, begin));
  }

  template <class From, class To>
  void merge(From from, To to, std::size_t begin, std::size_t middle, std::size_t end) {
    auto less = [this](auto&& y, auto&& x) -> bool {
      return std::invoke(comp_, std::invoke(proj_, std::forward<decltype(y)>(y)),
                         std::invoke(proj_, std::forward<decltype(x)>(x)));
    };
    const auto take = [](const auto& at) -> decltype(auto) { return std::ranges::iter_move(at); };
    const From low = advanced(from, begin);
    const From high = advanced(from, middle);
    if (end - begin < shared_merge) {
      merge_part(low, high, high, advanced(from, end), advanced(to, begin), less, take);
      return;
    }
    // All borders before anything is moved.
    const std::size_t pieces = pieces_here();
    const std::size_t size = end - begin;
    const auto start_of = [&](std::size_t i) { return size / pieces * i + std::min(i, size % pieces); };
    std::vector<std::size_t> from_low(pieces + 1);
    for (std::size_t i = 0; i <= pieces; ++i)
      from_low[i] = merge_path(low, middle - begin, high, end - middle, start_of(i), less);
    for_pieces(pieces, [&](std::size_t i) {
      merge_part(advanced(low, from_low[i]), advanced(low, from_low[i + 1]), advanced(high, start_of(i) - from_low[i]),
                 advanced(high, start_of(i + 1) - from_low[i + 1]), advanced(to, begin + start_of(i)), less, take);
    });
  }

  loop_state& loop_;
  Iterator range_;
  value* buffer_;
  Comp& comp_;
  Proj& proj_;
};

}  // namespace ramie::detail

namespace ramie::parallel {

/// Sorts the range by comp and proj; equal elements keep their order. Needs a buffer for as many elements; where that
/// cannot be had, elements may throw when they are moved, or there is one worker: std::ranges::stable_sort. If comp
/// throws, or the fiber is cancelled, the values of elements are unspecified: they are in the buffer, and end with it.
/// Otherwise as for_each.
template <range R, class Comp = std::ranges::less, class Proj = std::identity>
  requires std::sortable<std::ranges::iterator_t<R>, Comp, Proj>
std::ranges::borrowed_iterator_t<R> stable_sort(R&& r, Comp comp = {}, Proj proj = {}) {
  using iterator = std::ranges::iterator_t<R>;
  using value = std::ranges::range_value_t<R>;
  const iterator first = std::ranges::begin(r);
  const std::size_t size = detail::size_of(r);
  const iterator last = detail::advanced(first, size);
  if constexpr (std::is_nothrow_move_constructible_v<value>) {
    std::optional<detail::moved_elements<value>> buffer;
    if (detail::workers_here() != 1) {
      try {
        buffer.emplace(size);
      } catch (const std::bad_alloc&) {
        buffer.reset();
      }
    }
    if (buffer.has_value()) {
      buffer->fill(size, [&](auto put) {
        detail::for_chunks(size, [&](std::size_t begin, std::size_t end) {
          for (; begin != end; ++begin) put(begin, detail::advanced(first, begin));
        });
      });
      detail::loop_state loop{size};
      loop.begin();
      detail::merge_sort<iterator, Comp, Proj>{loop, first, buffer->begin(), comp, proj}.run(0, size, false);
      loop.end();
      return last;
    }
  }
  std::ranges::stable_sort(first, last, std::ref(comp), std::ref(proj));
  return last;
}

}  // namespace ramie::parallel
