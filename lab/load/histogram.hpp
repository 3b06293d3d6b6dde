// How long requests took: counts in classes whose width is at most 1/64 of their value, after HdrHistogram (Gil Tene).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramie::lab {

/// Not thread-safe. Times are in nanoseconds; what is less than 0 counts as 0.
class histogram {
 public:
  void add(std::int64_t ns) {
    ++counts_[place(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)))];
    ++total_;
  }
  void clear() {
    std::fill(counts_.begin(), counts_.end(), 0);
    total_ = 0;
  }
  [[nodiscard]] std::int64_t total() const { return total_; }

  /// The least bound that `share` (0 to 1) of all times do not exceed, at most 1/64 too large; 0 if there are no times.
  [[nodiscard]] std::int64_t quantile(double share) const {
    const auto wanted = static_cast<std::int64_t>(std::llround(share * static_cast<double>(total_)));
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > 0 && seen >= wanted) return bound(i);
    }
    return 0;
  }

 private:
  static constexpr int exact_bits = 7;  // values below 2^7 have a class each, and each power of two above it 2^6
  static constexpr std::size_t half = std::size_t{1} << (exact_bits - 1);

  static std::size_t place(std::uint64_t ns) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(ns)) - exact_bits);
    return static_cast<std::size_t>(shift) * half + static_cast<std::size_t>(ns >> shift);
  }
  /// The greatest value of a class.
  static std::int64_t bound(std::size_t i) {
    const std::size_t shift = i < 2 * half ? 0 : i / half - 1;
    return static_cast<std::int64_t>(((static_cast<std::uint64_t>(i - shift * half) + 1) << shift) - 1);
  }

  std::vector<std::int64_t> counts_ = std::vector<std::int64_t>((64 - exact_bits) * half + 2 * half);
  std::int64_t total_ = 0;
};

}  // namespace ramie::lab
