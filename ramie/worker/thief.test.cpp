#include <ramie/worker/thief.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace ramie::detail {
namespace {

constexpr std::uint64_t long_ago = 1'000'000'000'000;  // cycles since the machine started

struct others {
  std::array<std::uint64_t, 3> searched{};
  std::uint64_t operator()(std::size_t i) const noexcept { return searched[i]; }
};

TEST(thief, sees_for_how_long_a_worker_has_stood_still) {
  thief t;
  t.reserve(3, false);
  t.begin_search(long_ago, 3);
  EXPECT_EQ(t.look_at(1, 10, 5, long_ago + 1).still, 0u) << "not seen before";
  EXPECT_EQ(t.look_at(1, 10, 5, long_ago + 101).still, 100u);
  const thief::standstill spawns = t.look_at(1, 10, 6, long_ago + 151);
  EXPECT_EQ(spawns.still, 150u);
  EXPECT_EQ(spawns.idle, 0u);
  EXPECT_EQ(t.look_at(1, 11, 6, long_ago + 161).still, 0u);
  EXPECT_EQ(t.look_at(2, 10, 5, long_ago + 161).still, 0u) << "each worker for itself";
  t.begin_search(long_ago + 1000, 3);
  EXPECT_EQ(t.look_at(1, 11, 6, long_ago + 1001).still, 0u) << "what was seen in another search says nothing";
}

TEST(thief, adds_up_its_searches) {
  thief t;
  t.reserve(3, false);
  t.begin_search(long_ago, 3);
  t.end_search(long_ago + 100);
  t.begin_search(long_ago + 500, 3);
  EXPECT_EQ(t.searching_for(long_ago + 530), 30u);
  t.end_search(long_ago + 550);
  EXPECT_EQ(t.searched(), 150u);
}

TEST(thief, is_short_of_work_when_it_searches_for_much_longer_than_the_other) {
  thief t;
  t.reserve(3, false);
  others seen;
  const std::uint64_t us = cycles_in_us(1);
  t.begin_search(long_ago, 3);
  EXPECT_FALSE(t.is_short_of_work(1, long_ago, 3, seen)) << "a window begins";
  EXPECT_FALSE(t.is_short_of_work(1, long_ago + thief::want_us * us, 3, seen));
  EXPECT_TRUE(t.is_short_of_work(1, long_ago + 2 * thief::want_us * us, 3, seen));
  seen.searched[1] = 250 * us;
  EXPECT_FALSE(t.is_short_of_work(1, long_ago + 2 * thief::want_us * us, 3, seen)) << "so has the other";
  EXPECT_TRUE(t.is_short_of_work(2, long_ago + 2 * thief::want_us * us, 3, seen));
  t.begin_window(long_ago + 450 * us, 3, seen);
  EXPECT_FALSE(t.is_short_of_work(2, long_ago + 500 * us, 3, seen)) << "it was given work";
}

TEST(thief, begins_a_window_anew_after_a_while) {
  thief t;
  t.reserve(3, false);
  const others seen;
  const std::uint64_t us = cycles_in_us(1);
  t.begin_search(long_ago, 3);
  t.begin_window(long_ago, 3, seen);
  const std::uint64_t later = long_ago + (thief::window_us + 1) * us;
  EXPECT_FALSE(t.is_short_of_work(1, later, 3, seen));
  EXPECT_FALSE(t.is_short_of_work(1, later + 10 * us, 3, seen)) << "only what it lacked since";
}

}  // namespace
}  // namespace ramie::detail
