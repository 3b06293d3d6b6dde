#include <lab/harness/statistics.hpp>

#include <algorithm>
#include <stdexcept>

namespace ramie::lab {

double median(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument{"median of no values"};
  std::vector<double> sorted{values.begin(), values.end()};
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

summary summarise(std::span<const double> values) {
  const double middle = median(values);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {.median = middle, .min = *least, .max = *most, .spread = middle == 0 ? 0 : (*most - *least) / middle};
}

double paired_ratio(std::span<const double> values, std::span<const double> yardstick) {
  if (values.size() != yardstick.size()) throw std::invalid_argument{"values and yardstick are not pairs"};
  std::vector<double> ratios;
  ratios.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(yardstick[i] > 0)) throw std::invalid_argument{"a yardstick must be positive"};
    ratios.push_back(values[i] / yardstick[i]);
  }
  return median(ratios);
}

}  // namespace ramie::lab
