// The factors L and U of a matrix of tiles most of which are empty, as in the Barcelona suite's sparselu: in each step
// a task for each tile that changes. Which tiles are empty differs from there.
#pragma once

#include "dense.hpp"

#include <memory>
#include <utility>

namespace tasks {

class sparse_tiles {
 public:
  /// Tiles around the diagonal, and every third of every third row.
  explicit sparse_tiles(std::size_t side) : side_{side}, tiles_(side * side) {
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t j = 0; j < side; ++j) {
        if (i != j && i + 1 != j && j + 1 != i && (i % 3 != 0 || j % 3 != 0)) continue;
        const std::vector<double> values = random_values(tile * tile, i * side + j + 7);
        double* const at = made(i, j);
        std::copy(values.begin(), values.end(), at);
        // Far more than the rest of its row, so that no rows have to change places.
        for (std::size_t k = 0; i == j && k < tile; ++k) at[k * tile + k] += static_cast<double>(side * tile);
      }
  }
  [[nodiscard]] std::size_t side() const { return side_; }
  /// Null if it is empty.
  [[nodiscard]] double* at(std::size_t i, std::size_t j) const { return tiles_[i * side_ + j].get(); }
  /// The tile, of zeros if it was empty.
  double* made(std::size_t i, std::size_t j) {
    auto& t = tiles_[i * side_ + j];
    if (t == nullptr) t = std::make_unique<double[]>(tile * tile);
    return t.get();
  }

  /// The product with a vector of the elements (row, column) that `wanted` wants.
  template <class Wanted>
  std::vector<double> product(const std::vector<double>& x, Wanted wanted) const {
    std::vector<double> y(x.size());
    for (std::size_t row = 0; row < x.size(); ++row)
      for (std::size_t j = 0; j < side_; ++j) {
        const double* const t = at(row / tile, j);
        for (std::size_t k = 0; t != nullptr && k < tile; ++k)
          if (wanted(row, j * tile + k)) y[row] += t[row % tile * tile + k] * x[j * tile + k];
      }
    return y;
  }

 private:
  std::size_t side_;
  std::vector<std::unique_ptr<double[]>> tiles_;
};

/// L and U of one tile, in its place; L has ones on its diagonal, which are not stored.
inline void factor_tile(double* a) {
  for (std::size_t k = 0; k < tile; ++k)
    for (std::size_t i = k + 1; i < tile; ++i) {
      const double factor = a[i * tile + k] /= a[k * tile + k];
      for (std::size_t j = k + 1; j < tile; ++j) a[i * tile + j] -= factor * a[k * tile + j];
    }
}
/// L^-1 b, for a tile to the right
inline void divide_by_lower(const double* diagonal, double* b) {
  for (std::size_t k = 0; k < tile; ++k)
    for (std::size_t i = k + 1; i < tile; ++i)
      for (std::size_t j = 0; j < tile; ++j) b[i * tile + j] -= diagonal[i * tile + k] * b[k * tile + j];
}
/// b U^-1, for a tile below
inline void divide_by_upper(const double* diagonal, double* b) {
  for (std::size_t i = 0; i < tile; ++i)
    for (std::size_t k = 0; k < tile; ++k) {
      const double factor = b[i * tile + k] /= diagonal[k * tile + k];
      for (std::size_t j = k + 1; j < tile; ++j) b[i * tile + j] -= factor * diagonal[k * tile + j];
    }
}

/// Returns the number of operations on tiles.
template <class Crew>
std::int64_t factor_sparse(sparse_tiles& a) {
  std::int64_t operations = 0;
  std::vector<std::size_t> right;
  std::vector<std::size_t> below;
  for (std::size_t k = 0; k < a.side(); ++k) {
    factor_tile(a.at(k, k));
    right.clear();
    below.clear();
    for (std::size_t i = k + 1; i < a.side(); ++i) {
      if (a.at(k, i) != nullptr) right.push_back(i);
      if (a.at(i, k) != nullptr) below.push_back(i);
    }
    Crew::all(right.size() + below.size(), [&](std::size_t i) {
      if (i < right.size()) divide_by_lower(a.at(k, k), a.at(k, right[i]));
      else divide_by_upper(a.at(k, k), a.at(below[i - right.size()], k));
    });
    Crew::all(right.size() * below.size(), [&](std::size_t at) {
      const std::size_t i = below[at / right.size()];
      const std::size_t j = right[at % right.size()];
      subtract_product(a.made(i, j), a.at(i, k), a.at(k, j));
    });
    operations += static_cast<std::int64_t>(1 + right.size() + below.size() + right.size() * below.size());
  }
  return operations;
}

/// `size`: tiles of 32 x 32 in a row and in a column. A unit: an operation on tiles.
template <class Crew, class Time>
result sparselu(std::int64_t size, const Time& time) {
  sparse_tiles a{static_cast<std::size_t>(size)};
  const std::vector<double> x = random_values(a.side() * tile, 3);
  const std::vector<double> expected = a.product(x, [](std::size_t, std::size_t) { return true; });
  std::int64_t operations = 0;
  const double seconds = time([&] { operations = factor_sparse<Crew>(a); });
  const std::vector<double> upper = a.product(x, [](std::size_t i, std::size_t j) { return i <= j; });
  std::vector<double> both = a.product(upper, [](std::size_t i, std::size_t j) { return i > j; });
  for (std::size_t i = 0; i < both.size(); ++i) both[i] += upper[i];
  return {seconds, operations, about_equal(expected, both)};
}

}  // namespace tasks
