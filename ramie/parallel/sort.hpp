// Sorting in place.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/partition.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace ramie::detail {

/// Quicksort, which is handed to std::sort for small parts and, as D. Musser's introsort, where it makes no progress.
template <class Iterator, class Comp, class Proj>
class quick_sort {
 public:
  static constexpr bool is_small =
      std::is_trivially_copyable_v<std::iter_value_t<Iterator>> && sizeof(std::iter_value_t<Iterator>) <= 16;

  quick_sort(loop_state& loop, Iterator first, Comp& comp, Proj& proj) noexcept
      : loop_{loop}, first_{first}, comp_{comp}, proj_{proj} {}

  /// A frame of its own, as fold::run.
  RAMIE_NOINLINE void run(std::size_t begin, std::size_t end, int depth) noexcept {
    try {
      while (end - begin > leaf && depth-- > 0 && loop_.wanted() != 0) {
        if (this_fiber::stop_requested()) [[unlikely]]
          throw cancelled{};
        const auto [low, high] = split(begin, end);
        if (thieves_are_hungry()) {
          fork_join([=, this]() noexcept { run(begin, low, depth); }, [=, this]() noexcept { run(high, end, depth); });
          return;
        }
        run(begin, low, depth);
        begin = high;
      }
      if (loop_.wanted() != 0) std::ranges::sort(at(begin), at(end), std::ref(comp_), std::ref(proj_));
    } catch (...) {
      loop_.fail(std::current_exception());
    }
  }

 private:
  // A part that takes some microseconds. Small elements are split by a loop without branches, which beats std::sort's
  // down to smaller parts.
  static constexpr std::size_t leaf = is_small ? 256 : 1024;
  // From here on a split itself is shared.
  static constexpr std::size_t shared_split = std::size_t{1} << 17;

  [[nodiscard]] Iterator at(std::size_t i) const { return advanced(first_, i); }
  bool less(std::size_t i, std::size_t j) {
    return std::invoke(comp_, std::invoke(proj_, *at(i)), std::invoke(proj_, *at(j)));
  }
  std::size_t median(std::size_t a, std::size_t b, std::size_t c) {
    if (less(b, a)) std::swap(a, b);
    if (!less(c, b)) return b;
    return less(c, a) ? a : c;
  }

  struct borders {
    std::size_t low;   // before it: less than the pivot
    std::size_t high;  // from it on: not less; between them: equal
  };
  borders split(std::size_t begin, std::size_t end) {
    // The median of three medians of three, after J. Bentley and D. McIlroy.
    const std::size_t step = (end - begin) / 10;
    const auto third = [&](std::size_t i) {
      return median(begin + i * step, begin + (i + 1) * step, begin + (i + 2) * step);
    };
    std::ranges::iter_swap(at(begin), at(median(third(1), third(4), third(7))));
    // A copy of what is small, for compilers keep it in a register.
    using held = std::conditional_t<is_small, const std::iter_value_t<Iterator>, std::iter_reference_t<Iterator>>;
    held pivot = *at(begin);
    auto is_less = [&](auto&& x) -> bool {
      return std::invoke(comp_, std::invoke(proj_, std::forward<decltype(x)>(x)), std::invoke(proj_, pivot));
    };
    const std::size_t low = begin + partition(begin + 1, end, is_less);
    std::ranges::iter_swap(at(begin), at(low));
    if (low - begin > (end - begin) / 8) return {low, low + 1};
    // Perhaps many are equal to the pivot: they are in place already, and would make the next splits useless.
    held same = *at(low);
    auto is_equal = [&](auto&& x) -> bool {
      return !std::invoke(comp_, std::invoke(proj_, same), std::invoke(proj_, std::forward<decltype(x)>(x)));
    };
    return {low, low + 1 + partition(low + 1, end, is_equal)};
  }
  template <class Pred>
  std::size_t partition(std::size_t begin, std::size_t end, Pred& pred) {
    return end - begin >= shared_split && thieves_are_hungry() ? partition_all(at(begin), end - begin, pred)
                                                               : partition_part(at(begin), end - begin, pred);
  }

  loop_state& loop_;
  Iterator first_;
  Comp& comp_;
  Proj& proj_;
};

}  // namespace ramie::detail

namespace ramie::parallel {

/// Sorts the range by comp and proj; equal elements in no particular order. Needs no memory but O(workers) words. If
/// comp throws, the values of elements are unspecified. Otherwise as for_each.
template <range R, class Comp = std::ranges::less, class Proj = std::identity>
  requires std::sortable<std::ranges::iterator_t<R>, Comp, Proj>
std::ranges::borrowed_iterator_t<R> sort(R&& r, Comp comp = {}, Proj proj = {}) {
  const auto first = std::ranges::begin(r);
  const std::size_t size = detail::size_of(r);
  const auto last = detail::advanced(first, size);
  using quick_sort = detail::quick_sort<std::ranges::iterator_t<R>, Comp, Proj>;
  if (!quick_sort::is_small && detail::workers_here() == 1) {
    std::ranges::sort(first, last, std::ref(comp), std::ref(proj));
    return last;
  }
  detail::loop_state loop{size};
  if (detail::current_worker() != nullptr) loop.begin();
  quick_sort{loop, first, comp, proj}.run(0, size, 2 * static_cast<int>(std::bit_width(size)));
  loop.end();
  return last;
}

}  // namespace ramie::parallel
