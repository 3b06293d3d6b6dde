#include <lab/load/histogram.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace ramie::lab {
namespace {

TEST(histogram, an_empty_one_has_no_times) { EXPECT_EQ(histogram{}.quantile(0.5), 0); }

TEST(histogram, small_times_are_exact) {
  histogram h;
  for (int ns = 1; ns <= 100; ++ns) h.add(ns);
  EXPECT_EQ(h.total(), 100);
  EXPECT_EQ(h.quantile(0), 1);
  EXPECT_EQ(h.quantile(0.5), 50);
  EXPECT_EQ(h.quantile(0.99), 99);
  EXPECT_EQ(h.quantile(1), 100);
}

TEST(histogram, quantiles_are_those_of_a_sorted_list) {
  std::mt19937_64 random{1};
  std::vector<std::int64_t> times;
  histogram h;
  for (int i = 0; i < 100'000; ++i) {
    // Over nine powers of ten, as latencies are.
    times.push_back(static_cast<std::int64_t>(std::exp(std::uniform_real_distribution{0.0, 20.7}(random))));
    h.add(times.back());
  }
  std::sort(times.begin(), times.end());
  for (const double share : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::llround(share * static_cast<double>(times.size())));
    const auto exact = static_cast<double>(times[std::max<std::size_t>(rank, 1) - 1]);
    EXPECT_GE(static_cast<double>(h.quantile(share)), exact) << share;
    EXPECT_LE(static_cast<double>(h.quantile(share)), exact * (1 + 1.0 / 64)) << share;
  }
}

TEST(histogram, the_greatest_and_the_least_times_have_a_place) {
  histogram h;
  h.add(-5);
  EXPECT_EQ(h.quantile(1), 0);
  h.add(INT64_MAX);
  EXPECT_EQ(h.quantile(1), INT64_MAX);
  h.clear();
  EXPECT_EQ(h.total(), 0);
  EXPECT_EQ(h.quantile(1), 0);
}

}  // namespace
}  // namespace ramie::lab
