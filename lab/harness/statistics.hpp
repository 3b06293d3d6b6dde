// Statistics of several runs of the same thing.
#pragma once

#include <span>
#include <vector>

namespace ramie::lab {

struct summary {
  double median;
  double min;
  double max;
  double spread;  // (max - min) / median, 0 where the median is 0
};

/// The middle value; of an even number of values the mean of the two in the middle. Throws std::invalid_argument if
/// there is none.
double median(std::span<const double> values);

/// Throws std::invalid_argument if `values` is empty.
summary summarise(std::span<const double> values);

/// The median of values[i] / yardstick[i]: neighbours in time, so that a machine that changes its speed
/// from one minute to the next changes both. Throws std::invalid_argument if there is no pair, the sizes differ or a
/// yardstick value is not positive.
double paired_ratio(std::span<const double> values, std::span<const double> yardstick);

}  // namespace ramie::lab
