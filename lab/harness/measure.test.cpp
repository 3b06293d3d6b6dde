#include <lab/harness/measure.hpp>

#include <lab/harness/error.hpp>
#include <lab/workloads/registry.hpp>

#include <gtest/gtest.h>

namespace ramie::lab {
namespace {

record measure(const std::string& style, bool yardstick = true) {
  const workload& w = *find_workload("self-test");
  return measure_here(w, {.workload = w.name,
                          .style = style,
                          .workers = 1,
                          .runs = 3,
                          .yardstick = yardstick,
                          .parameters = {{"units", 10}}});
}

TEST(measure_here, keeps_every_run_and_its_neighbour) {
  const record r = measure("right");
  EXPECT_TRUE(r.ok) << r.error;
  EXPECT_EQ(r.seconds.size(), 3U);
  EXPECT_EQ(r.plain_seconds.size(), 3U);
  EXPECT_EQ(r.busy_cores.size(), 3U);
  EXPECT_EQ(r.figures.at("answer"), (std::vector<double>{42, 42, 42}));
  EXPECT_EQ(r.units, 10);
  EXPECT_EQ(r.unit, "unit");
  EXPECT_EQ(r.workers, 1);
  EXPECT_GT(r.base_rss_bytes, 0);
  EXPECT_GE(r.peak_rss_bytes, r.base_rss_bytes);
}

TEST(measure_here, can_do_without_yardstick) {
  const record r = measure("right", false);
  EXPECT_TRUE(r.ok);
  EXPECT_TRUE(r.plain_seconds.empty());
  EXPECT_FALSE(r.ratio_to_plain());
}

TEST(measure_here, makes_the_yardstick_its_own_neighbour) { EXPECT_EQ(measure("plain").ratio_to_plain(), 1); }

TEST(measure_here, notices_a_wrong_result) {
  const record r = measure("wrong");
  EXPECT_FALSE(r.ok);
  EXPECT_EQ(r.error, "wrong result from wrong");
  EXPECT_EQ(r.seconds.size(), 3U);
}

TEST(measure_here, keeps_what_was_thrown) {
  const record r = measure("throws");
  EXPECT_FALSE(r.ok);
  EXPECT_EQ(r.error, "thrown on purpose");
  EXPECT_FALSE(r.ns_per_unit());
}

TEST(measure_here, repeats_until_a_run_takes_as_long_as_asked_for) {
  const workload& w = *find_workload("self-test");
  const record r = measure_here(w, {.workload = w.name,
                                    .style = "right",
                                    .workers = 1,
                                    .runs = 2,
                                    .least_ms = 2,
                                    .yardstick = false,
                                    .parameters = {{"units", 10}}});
  EXPECT_TRUE(r.ok) << r.error;
  ASSERT_EQ(r.repeats.size(), 2U);
  ASSERT_EQ(r.seconds.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GE(r.seconds[i] * static_cast<double>(r.repeats[i]), 1.999e-3);
    EXPECT_LE(r.repeats[i], 20);  // each takes 100 us or more
  }
  EXPECT_EQ(r.units, 10);  // of one repetition
  EXPECT_EQ(r.figures.at("answer"), (std::vector<double>{42, 42}));
}

TEST(measure_here, refuses_unknown_styles) { EXPECT_THROW(measure("tea"), usage_error); }

}  // namespace
}  // namespace ramie::lab
