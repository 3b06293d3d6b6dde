#include <lab/harness/statistics.hpp>

#include <gtest/gtest.h>

#include <stdexcept>

namespace ramie::lab {
namespace {

using values = std::vector<double>;

TEST(median, takes_the_middle_of_an_odd_number) { EXPECT_EQ(median(values{9, 1, 5}), 5); }

TEST(median, takes_the_mean_of_the_two_in_the_middle) { EXPECT_EQ(median(values{4, 1, 100, 2}), 3); }

TEST(median, of_one_value_is_that_value) { EXPECT_EQ(median(values{7}), 7); }

TEST(median, of_nothing_is_refused) { EXPECT_THROW(median(values{}), std::invalid_argument); }

TEST(summarise, gives_extremes_and_spread) {
  const summary s = summarise(values{10, 8, 12});
  EXPECT_EQ(s.median, 10);
  EXPECT_EQ(s.min, 8);
  EXPECT_EQ(s.max, 12);
  EXPECT_DOUBLE_EQ(s.spread, 0.4);
}

TEST(summarise, has_no_spread_around_zero) { EXPECT_EQ(summarise(values{0, 0}).spread, 0); }

TEST(paired_ratio, compares_neighbours) {
  // The machine became half as fast meanwhile: both sides of a pair show it, so the ratio does not.
  EXPECT_EQ(paired_ratio(values{2, 2, 4, 4}, values{1, 1, 2, 2}), 2);
}

TEST(paired_ratio, is_the_median_of_the_ratios) { EXPECT_EQ(paired_ratio(values{2, 30, 4}, values{1, 1, 1}), 4); }

TEST(paired_ratio, refuses_what_is_not_paired) {
  EXPECT_THROW(paired_ratio(values{1, 2}, values{1}), std::invalid_argument);
  EXPECT_THROW(paired_ratio(values{}, values{}), std::invalid_argument);
  EXPECT_THROW(paired_ratio(values{1}, values{0}), std::invalid_argument);
}

}  // namespace
}  // namespace ramie::lab
