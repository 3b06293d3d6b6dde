// Loops over one, two and three dimensions by blocks.
#pragma once

#include <ramie/parallel/fold.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <tuple>

namespace ramie::parallel {

/// The indices of a block in one dimension: for (std::size_t i : rows).
struct index_range {
  std::size_t first;
  std::size_t last;  // one past the end
  [[nodiscard]] auto begin() const noexcept { return std::ranges::iota_view{first, last}.begin(); }
  [[nodiscard]] auto end() const noexcept { return std::ranges::iota_view{first, last}.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return last - first; }
};

}  // namespace ramie::parallel

namespace ramie::detail {

/// A grid cut into blocks, if none are asked for into some thousand squares or cubes.
template <std::size_t N>
class grid {
 public:
  grid(std::array<std::size_t, N> sizes, std::array<std::size_t, N> block) noexcept : sizes_{sizes}, block_{block} {
    // The side that a thousand squares or cubes would have: enough blocks for many workers, and few enough for one call
    // each to cost nothing.
    double cells = 1;
    for (const std::size_t s : sizes_) cells *= static_cast<double>(std::max<std::size_t>(s, 1));
    const double side = std::pow(cells / 1024, 1.0 / N);
    for (std::size_t d = 0; d < N; ++d) {
      if (block_[d] == 0) block_[d] = std::max<std::size_t>(1, static_cast<std::size_t>(side));
      counts_[d] = sizes_[d] / block_[d] + (sizes_[d] % block_[d] != 0 ? 1 : 0);
    }
  }
  [[nodiscard]] std::size_t blocks() const noexcept {
    std::size_t n = 1;
    for (const std::size_t c : counts_) n *= c;
    return n;
  }
  /// The range of block `at` in each dimension; the last dimension varies fastest.
  [[nodiscard]] std::array<parallel::index_range, N> block(std::size_t at) const noexcept {
    std::array<parallel::index_range, N> ranges{};
    for (std::size_t d = N; d-- != 0; at /= counts_[d]) {
      const std::size_t first = at % counts_[d] * block_[d];
      ranges[d] = {first, std::min(first + block_[d], sizes_[d])};
    }
    return ranges;
  }

 private:
  std::array<std::size_t, N> sizes_;
  std::array<std::size_t, N> block_;
  std::array<std::size_t, N> counts_{};
};

template <std::size_t N, class F>
void for_grid(const grid<N>& cells, F& f) {
  for_pieces(cells.blocks(), [&](std::size_t at) { std::apply(f, cells.block(at)); });
}

}  // namespace ramie::detail

namespace ramie::parallel {

/// Calls f(range) for index_ranges that together are 0 to `size`. Otherwise as for_each.
template <std::invocable<index_range> F>
void for_blocks(std::size_t size, F f) {
  detail::for_chunks(size, [&f](std::size_t begin, std::size_t end) { f(index_range{begin, end}); });
}

/// Calls f(rows, columns) for blocks that together are the grid, each an index_range. `block`: rows and columns of a
/// block; 0: chosen so that there are some thousand, about square. Neighbours in a row follow each other on a worker.
/// Otherwise as for_each.
template <std::invocable<index_range, index_range> F>
void for_blocks(std::size_t rows, std::size_t columns, F f, std::array<std::size_t, 2> block = {0, 0}) {
  detail::for_grid(detail::grid<2>{{rows, columns}, block}, f);
}

/// The same in three dimensions: f(planes, rows, columns).
template <std::invocable<index_range, index_range, index_range> F>
void for_blocks(std::size_t planes, std::size_t rows, std::size_t columns, F f,
                std::array<std::size_t, 3> block = {0, 0, 0}) {
  detail::for_grid(detail::grid<3>{{planes, rows, columns}, block}, f);
}

}  // namespace ramie::parallel
