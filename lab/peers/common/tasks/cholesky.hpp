// The factor L of a symmetric matrix A = L L', tile by tile (A. Buttari and others, 2009): in each step a task for each
// tile that changes. Cilk's cholesky has a sparse matrix as a tree; this one is dense, as in linear algebra's
// libraries.
#pragma once

#include "dense.hpp"

#include <utility>

namespace tasks {

/// L of one tile, in its place.
inline void factor_diagonal(double* a) {
  for (std::size_t k = 0; k < tile; ++k) {
    const double root = a[k * tile + k] = std::sqrt(a[k * tile + k]);
    for (std::size_t i = k + 1; i < tile; ++i) a[i * tile + k] /= root;
    for (std::size_t i = k + 1; i < tile; ++i)
      for (std::size_t j = k + 1; j <= i; ++j) a[i * tile + j] -= a[i * tile + k] * a[j * tile + k];
  }
}
/// b L'^-1
inline void divide_by_transposed(const double* diagonal, double* b) {
  for (std::size_t i = 0; i < tile; ++i)
    for (std::size_t k = 0; k < tile; ++k) {
      double value = b[i * tile + k];
      for (std::size_t j = 0; j < k; ++j) value -= b[i * tile + j] * diagonal[k * tile + j];
      b[i * tile + k] = value / diagonal[k * tile + k];
    }
}
/// c -= a b'
inline void subtract_product_transposed(double* c, const double* a, const double* b) {
  double turned[tile * tile];
  for (std::size_t i = 0; i < tile; ++i)
    for (std::size_t j = 0; j < tile; ++j) turned[j * tile + i] = b[i * tile + j];
  subtract_product(c, a, turned);
}

/// Tiles at and below the diagonal, row by row.
class lower_tiles {
 public:
  explicit lower_tiles(std::size_t side)
      : side_{side}, values_(random_values(side * (side + 1) / 2 * tile * tile, 11)) {
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t k = 0; k < tile; ++k) at(i, i)[k * tile + k] += static_cast<double>(2 * side * tile);
  }
  [[nodiscard]] std::size_t side() const { return side_; }
  [[nodiscard]] double* at(std::size_t i, std::size_t j) { return &values_[(i * (i + 1) / 2 + j) * tile * tile]; }
  /// Of an element at or below the diagonal.
  [[nodiscard]] double element(std::size_t i, std::size_t j) {
    return at(i / tile, j / tile)[i % tile * tile + j % tile];
  }

 private:
  std::size_t side_;
  std::vector<double> values_;
};

template <class Crew>
void factor_symmetric(lower_tiles& a) {
  const std::size_t side = a.side();
  for (std::size_t k = 0; k < side; ++k) {
    factor_diagonal(a.at(k, k));
    const std::size_t rest = side - k - 1;
    Crew::all(rest, [&](std::size_t i) { divide_by_transposed(a.at(k, k), a.at(k + 1 + i, k)); });
    Crew::all(rest * (rest + 1) / 2, [&](std::size_t at) {
      // The row of the at-th of all tiles of a triangle.
      auto i = static_cast<std::size_t>((std::sqrt(8.0 * static_cast<double>(at) + 1) - 1) / 2);
      const std::size_t j = at - i * (i + 1) / 2;
      subtract_product_transposed(a.at(k + 1 + i, k + 1 + j), a.at(k + 1 + i, k), a.at(k + 1 + j, k));
    });
  }
}

/// `size`: tiles of 32 x 32 in a column. A unit: an operation on tiles.
template <class Crew, class Time>
result cholesky(std::int64_t size, const Time& time) {
  lower_tiles a{static_cast<std::size_t>(size)};
  const std::size_t n = a.side() * tile;
  const std::vector<double> x = random_values(n, 3);
  std::vector<double> expected(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) expected[i] += a.element(std::max(i, j), std::min(i, j)) * x[j];
  const double seconds = time([&] { factor_symmetric<Crew>(a); });
  std::vector<double> upper(n);
  std::vector<double> both(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i; j < n; ++j) upper[i] += a.element(j, i) * x[j];
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) both[i] += a.element(i, j) * upper[j];
  const std::int64_t operations = size * (size + 1) * (size + 2) / 6;
  return {seconds, operations, about_equal(expected, both)};
}

}  // namespace tasks
