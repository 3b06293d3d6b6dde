#include <ramie/base/deadline.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ramie::detail {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using seconds_as_double = std::chrono::duration<double>;

constexpr clock::time_point never = clock::time_point::max();

/// How far from the present, which lies between two readings of the clock.
template <class Duration>
void expect_after(Duration duration, clock::duration expected) {
  const auto before = clock::now();
  const auto at = time_after(duration);
  const auto after = clock::now();
  EXPECT_GE(at, before + expected);
  EXPECT_LE(at, after + expected);
}

TEST(time_after, adds_what_it_is_given) {
  expect_after(1500ms, 1500ms);
  expect_after(24h, 24h);
  expect_after(seconds_as_double{0.25}, 250ms);
  expect_after(std::chrono::duration<std::uint8_t>{200}, 200s);
}

TEST(time_after, rounds_up) { expect_after(std::chrono::duration<std::int64_t, std::pico>{1001}, 2ns); }

TEST(time_after, takes_what_is_over_for_now) {
  expect_after(0ns, 0ns);
  expect_after(-1h, 0ns);
  expect_after(std::chrono::nanoseconds::min(), 0ns);
  expect_after(std::chrono::hours::min(), 0ns);
  expect_after(seconds_as_double{-1e300}, 0ns);
}

TEST(time_after, takes_what_the_clock_cannot_count_for_never) {
  EXPECT_EQ(time_after(std::chrono::nanoseconds::max()), never);
  EXPECT_EQ(time_after(std::chrono::hours::max()), never);
  EXPECT_EQ(time_after(seconds_as_double{1e300}), never);
  EXPECT_EQ(time_after(seconds_as_double{std::numeric_limits<double>::infinity()}), never);
  EXPECT_EQ(time_after(seconds_as_double{std::nan("")}), never);
  EXPECT_LT(time_after(std::chrono::hours{24 * 365 * 145}), never);
}

/// Its epoch is as far in the future as the clock can count.
struct late_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<late_clock>;
  static time_point now() noexcept { return time_point{duration::min() + 1000h}; }
};

template <class Clock>
class time_left_by : public testing::Test {};
using clocks =
    testing::Types<std::chrono::system_clock, std::chrono::steady_clock, std::chrono::file_clock, late_clock>;
TYPED_TEST_SUITE(time_left_by, clocks);

TYPED_TEST(time_left_by, a_clock_is_the_difference) {
  const clock::duration left = time_left(TypeParam::now() + 1h);
  EXPECT_LE(left, 1h);
  EXPECT_GT(left, 30min);
  EXPECT_EQ(time_left(TypeParam::now() - 1ms), 0s);
  EXPECT_EQ(time_left(TypeParam::now() - 100h), 0s);
}

TYPED_TEST(time_left_by, a_clock_reaches_to_the_ends_of_any_unit) {
  using own = TypeParam;
  using std::chrono::time_point;
  EXPECT_EQ(time_left(time_point<own, std::chrono::seconds>::max()), clock::duration::max());
  EXPECT_EQ(time_left(time_point<own, std::chrono::days>::max()), clock::duration::max());
  EXPECT_EQ(time_left(time_point<own, std::chrono::seconds>::min()), 0s);
  EXPECT_EQ(time_left(time_point<own, std::chrono::days>::min()), 0s);
  EXPECT_EQ(time_left(time_point<own>::max()), clock::duration::max());
  EXPECT_EQ(time_left(time_point<own>::min()), 0s);
  using fraction = time_point<own, std::chrono::duration<double>>;
  EXPECT_EQ(time_left(fraction{std::chrono::duration<double>{std::numeric_limits<double>::infinity()}}),
            clock::duration::max());
  EXPECT_EQ(time_left(fraction{std::chrono::duration<double>{-std::numeric_limits<double>::infinity()}}), 0s);
  EXPECT_EQ(time_left(fraction{std::chrono::duration<double>{std::numeric_limits<double>::quiet_NaN()}}), 0s);
}

}  // namespace
}  // namespace ramie::detail
