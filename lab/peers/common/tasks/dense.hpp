// Square matrices and tiles of them, for strassen, cholesky and sparselu.
#pragma once

#include "crew.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tasks {

/// Part of a matrix, by rows.
struct matrix {
  double* at;
  std::size_t stride;
  double* row(std::size_t i) const { return at + i * stride; }
  matrix part(std::size_t i, std::size_t j) const { return {row(i) + j, stride}; }
};

/// Numbers from -1 to 1, the same in every run.
inline std::vector<double> random_values(std::size_t n, std::uint64_t seed) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = 2 * fraction(mixed(seed * 0x10001 + i)) - 1;
  return v;
}

/// The product of an n x n matrix and a vector.
inline std::vector<double> product(std::size_t n, matrix m, const std::vector<double>& x) {
  std::vector<double> y(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) y[i] += m.row(i)[j] * x[j];
  return y;
}

/// Do they differ by rounding alone? (Freivalds' check: two matrices are compared by their products with a vector.)
inline bool about_equal(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  return std::isfinite(difference) && difference <= 1e-9 * most;
}

/// Matrices in tiles: the side of one.
inline constexpr std::size_t tile = 32;
using tile_data = double[tile * tile];

/// c -= a b
inline void subtract_product(double* c, const double* a, const double* b) {
  for (std::size_t i = 0; i < tile; ++i)
    for (std::size_t k = 0; k < tile; ++k) {
      const double factor = a[i * tile + k];
      for (std::size_t j = 0; j < tile; ++j) c[i * tile + j] -= factor * b[k * tile + j];
    }
}

}  // namespace tasks
