// Algorithms that keep some elements and close the gaps: copy_if, unique.
#pragma once

#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/moved_elements.hpp>
#include <ramie/parallel/partition.hpp>
#include <ramie/parallel/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::detail {

/// Works through a range in rounds of as many elements as fit into the caches: each piece of a round lists the elements
/// to keep, then it is known where each goes. So keep(i) is called once for each, and the memory is O(workers).
class compaction {
 public:
  explicit compaction(std::size_t size)
      : size_{size},
        pieces_{pieces_here()},
        piece_{std::clamp<std::size_t>(size / pieces_here(), 1, piece_most)},
        kept_(pieces_here() * piece_),
        ends_(pieces_here()) {}

  /// The most elements of a round.
  [[nodiscard]] std::size_t round_most() const noexcept { return pieces_ * piece_; }

  /// For each round: place(begin, end, kept, at), where at(k) is the index of the k-th of `kept` elements to keep.
  template <class Keep, class Place>
  void operator()(Keep keep, Place place) {
    for (std::size_t begin = 0; begin < size_; begin += round_most()) {
      const std::size_t end = std::min(begin + round_most(), size_);
      const std::size_t count = (end - begin + piece_ - 1) / piece_;
      for_pieces(count, [&](std::size_t i) {
        const std::size_t from = begin + i * piece_;
        const std::size_t to = std::min(from + piece_, end);
        std::uint16_t* list = kept_.data() + i * piece_;
        std::size_t n = 0;
        for (std::size_t at = from; at != to; ++at) {  // without a branch on the outcome
          list[n] = static_cast<std::uint16_t>(at - from);
          n += keep(at, begin) ? 1 : 0;
        }
        ends_[i] = n;
      });
      for (std::size_t i = 1; i < count; ++i) ends_[i] += ends_[i - 1];
      place(begin, end, ends_[count - 1], count);
    }
  }

  /// f(k, index) for each element that is kept, the k-th of this round.
  template <class F>
  void for_kept(std::size_t begin, std::size_t count, F f) {
    for_pieces(count, [&](std::size_t i) {
      const std::uint16_t* list = kept_.data() + i * piece_;
      const std::size_t from = begin + i * piece_;
      std::size_t k = i == 0 ? 0 : ends_[i - 1];
      for (const std::uint16_t* const stop = list + (ends_[i] - k); list != stop; ++list, ++k) f(k, from + *list);
    });
  }

 private:
  static constexpr std::size_t piece_most = 8192;  // a guess: 64 KiB of doubles, and 16 of the list
  std::size_t size_;
  std::size_t pieces_;
  std::size_t piece_;
  std::vector<std::uint16_t> kept_;
  std::vector<std::size_t> ends_;  // of each piece: elements to keep in it and those before
};

}  // namespace ramie::detail

namespace ramie::parallel {

/// Copies the elements of whose projection pred is true to `out`, in order. pred is called once for each element.
/// Otherwise as for_each.
template <range R, std::random_access_iterator Out, class Proj = std::identity,
          std::indirect_unary_predicate<std::projected<std::ranges::iterator_t<R>, Proj>> Pred>
  requires std::indirectly_copyable<std::ranges::iterator_t<R>, Out>
std::ranges::copy_if_result<std::ranges::borrowed_iterator_t<R>, Out> copy_if(R&& r, Out out, Pred pred,
                                                                              Proj proj = {}) {
  const auto first = std::ranges::begin(r);
  const std::size_t size = detail::size_of(r);
  const auto last = detail::advanced(first, size);
  if (detail::workers_here() == 1) {
    auto result = std::ranges::copy_if(first, last, out, std::ref(pred), std::ref(proj));
    return {last, result.out};
  }
  detail::compaction rounds{size};
  rounds([&](std::size_t i,
             std::size_t) -> bool { return std::invoke(pred, std::invoke(proj, *detail::advanced(first, i))); },
         [&](std::size_t begin, std::size_t, std::size_t kept, std::size_t pieces) {
           rounds.for_kept(begin, pieces, [&](std::size_t k, std::size_t i) {
             *detail::advanced(out, k) = *detail::advanced(first, i);
           });
           out = detail::advanced(out, kept);
         });
  return {last, out};
}

/// Removes all but the first of equal neighbours, by comp (an equivalence) and proj; returns what is left over at the
/// end, as std::ranges::unique. If elements may throw when they are moved, or there is one worker: that. Otherwise as
/// for_each.
template <
    range R, class Proj = std::identity,
    std::indirect_equivalence_relation<std::projected<std::ranges::iterator_t<R>, Proj>> Comp = std::ranges::equal_to>
  requires std::permutable<std::ranges::iterator_t<R>>
std::ranges::borrowed_subrange_t<R> unique(R&& r, Comp comp = {}, Proj proj = {}) {
  using value = std::ranges::range_value_t<R>;
  const auto first = std::ranges::begin(r);
  const std::size_t size = detail::size_of(r);
  const auto last = detail::advanced(first, size);
  if constexpr (std::is_nothrow_move_constructible_v<value>) {
    if (detail::workers_here() != 1) {
      detail::compaction rounds{size};
      detail::moved_elements<value> buffer{std::min(size, rounds.round_most())};
      std::size_t done = 0;  // elements that are in their places
      rounds(
          [&](std::size_t i, std::size_t round) -> bool {
            if (i == 0) return true;
            // What was before this round may have been moved; the last one kept is equal to it.
            const std::size_t before = i == round ? done - 1 : i - 1;
            return !std::invoke(comp, std::invoke(proj, *detail::advanced(first, before)),
                                std::invoke(proj, *detail::advanced(first, i)));
          },
          [&](std::size_t begin, std::size_t end, std::size_t kept, std::size_t pieces) {
            if (done != begin || kept != end - begin) {
              // By way of the buffer, for the places of some are those of others.
              buffer.fill(kept, [&](auto put) {
                rounds.for_kept(begin, pieces,
                                [&](std::size_t k, std::size_t i) { put(k, detail::advanced(first, i)); });
              });
              shield([&] {
                detail::for_chunks(kept, [&](std::size_t from, std::size_t to) {
                  std::ranges::move(buffer.begin() + from, buffer.begin() + to, detail::advanced(first, done + from));
                });
              });
              buffer.drop();
            }
            done += kept;
          });
      return {detail::advanced(first, done), last};
    }
  }
  auto rest = std::ranges::unique(first, last, std::ref(comp), std::ref(proj));
  return {rest.begin(), last};
}

}  // namespace ramie::parallel
