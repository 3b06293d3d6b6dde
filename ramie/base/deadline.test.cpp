#include <ramie/base/deadline.hpp>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ramie::detail
