// A product of matrices by seven products of half the size (V. Strassen, 1969), each a task, as in the Barcelona
// suite's and Cilk's strassen, down to 64 x 64.
#pragma once

#include "dense.hpp"

#include <memory>

namespace tasks {

inline constexpr std::size_t strassen_leaf = 64;

/// c = a b
inline void multiply_leaf(matrix a, matrix b, matrix c) {
  for (std::size_t i = 0; i < strassen_leaf; ++i) {
    double* const out = c.row(i);
    std::fill_n(out, strassen_leaf, 0.0);
    for (std::size_t k = 0; k < strassen_leaf; ++k) {
      const double factor = a.row(i)[k];
      const double* const in = b.row(k);
      for (std::size_t j = 0; j < strassen_leaf; ++j) out[j] += factor * in[j];
    }
  }
}

/// out = a + factor b, of n x n
inline void add(std::size_t n, matrix a, double factor, matrix b, matrix out) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) out.row(i)[j] = a.row(i)[j] + factor * b.row(i)[j];
}

template <class Crew>
void multiply(std::size_t n, matrix a, matrix b, matrix c) {
  if (n <= strassen_leaf) return multiply_leaf(a, b, c);
  const std::size_t h = n / 2;
  // Quarters are 0 and 1 above, 2 and 3 below. A factor is a quarter, or one plus or minus another.
  struct factor {
    std::size_t quarter, other;
    double sign;  // 0: no other
  };
  struct pair {
    factor of_a, of_b;
  };
  static constexpr pair pairs[7] = {{{0, 3, 1}, {0, 3, 1}},  {{2, 3, 1}, {0, 0, 0}}, {{0, 0, 0}, {1, 3, -1}},
                                    {{3, 0, 0}, {2, 0, -1}}, {{0, 1, 1}, {3, 0, 0}}, {{2, 0, -1}, {0, 1, 1}},
                                    {{1, 3, -1}, {2, 3, 1}}};
  const auto quarter = [h](matrix m, std::size_t q) { return m.part(q / 2 * h, q % 2 * h); };
  const auto memory = std::make_unique_for_overwrite<double[]>(21 * h * h);
  const auto scratch = [&](std::size_t i) { return matrix{memory.get() + i * h * h, h}; };
  const auto value = [&](matrix m, const factor& f, matrix room) {
    if (f.sign == 0) return quarter(m, f.quarter);
    add(h, quarter(m, f.quarter), f.sign, quarter(m, f.other), room);
    return room;
  };
  Crew::all(7, [&](std::size_t i) {
    const matrix left = value(a, pairs[i].of_a, scratch(7 + i));
    const matrix right = value(b, pairs[i].of_b, scratch(14 + i));
    multiply<Crew>(h, left, right, scratch(i));
  });
  Crew::all(4, [&](std::size_t q) {
    const matrix out = quarter(c, q);
    const auto join = [&](std::size_t first, std::size_t second) { add(h, scratch(first), 1, scratch(second), out); };
    if (q == 1) return join(2, 4);
    if (q == 2) return join(1, 3);
    // The outer ones have four terms.
    const bool is_first = q == 0;
    add(h, scratch(0), is_first ? 1.0 : -1.0, scratch(is_first ? 3 : 1), out);
    add(h, out, is_first ? -1.0 : 1.0, scratch(is_first ? 4 : 2), out);
    add(h, out, 1, scratch(is_first ? 6 : 5), out);
  });
}

/// `size`: rows and columns, 64 times a power of two. A unit: a product of 64 x 64.
template <class Crew, class Time>
result strassen(std::int64_t size, const Time& time) {
  const auto n = static_cast<std::size_t>(size);
  static std::vector<double> a;
  static std::vector<double> b;
  if (a.size() != n * n) {
    a = random_values(n * n, 1);
    b = random_values(n * n, 2);
  }
  std::vector<double> c(n * n);
  const matrix left{a.data(), n};
  const matrix right{b.data(), n};
  const matrix out{c.data(), n};
  const double seconds = time([&] { multiply<Crew>(n, left, right, out); });
  std::int64_t leaves = 1;
  for (std::size_t side = n; side > strassen_leaf; side /= 2) leaves *= 7;
  const std::vector<double> x = random_values(n, 3);
  return {seconds, leaves, about_equal(product(n, left, product(n, right, x)), product(n, out, x))};
}

}  // namespace tasks
