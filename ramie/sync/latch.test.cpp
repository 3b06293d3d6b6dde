#include <ramie/sync/latch.hpp>

#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>

namespace ramie {
namespace {

using namespace sync_tests;

class latches : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, latches, settings(), ::testing::PrintToStringParamName());

TEST_P(latches, open_when_all_have_counted) {
  runtime rt{options()};
  for (int round = 0; round < rounds(300); ++round) {
    latch all{6};
    std::atomic<int> counted_down{0};
    crowd(rt, 6, 2, [&](int who) {
      if (who < 4) {
        ++counted_down;
        all.count_down();
      } else if (who == 4) {
        ++counted_down;
        ++counted_down;
        all.arrive_and_wait(2);
        EXPECT_EQ(counted_down, 6);
      } else {
        all.wait();
        EXPECT_EQ(counted_down, 6);
        EXPECT_TRUE(all.try_wait());
      }
    });
  }
}

TEST_P(latches, are_open_at_zero) {
  const auto use = [] {
    latch open{0};
    open.wait();
    EXPECT_TRUE(open.try_wait());
    EXPECT_TRUE(open.wait_for(0s));
    EXPECT_THROW(open.count_down(), usage_error);
    open.count_down(0);
    latch closed{2};
    EXPECT_FALSE(closed.try_wait());
    EXPECT_THROW(closed.count_down(3), usage_error);
    EXPECT_THROW(closed.count_down(-1), usage_error);
    closed.count_down(2);
    closed.wait();
  };
  use();
  in_runtime(use);
}

TEST_P(latches, wait_no_longer_than_told) {
  const auto use = [] {
    latch l{1};
    EXPECT_FALSE(l.wait_for(2ms));
    EXPECT_FALSE(l.wait_until(std::chrono::system_clock::now() + 1ms));
    std::thread other{[&] { l.count_down(); }};
    EXPECT_TRUE(l.wait_for(1h));
    other.join();
  };
  use();
  in_runtime(use);
}

TEST(latch_counts, out_of_range_are_refused) {
  EXPECT_TRUE(contains(message_of<invalid_argument>([] { latch l{-1}; }), "latch: a count of -1"));
  EXPECT_THROW(latch{latch::max() + 1}, invalid_argument);
  latch most{latch::max()};
  most.count_down(latch::max());
  EXPECT_TRUE(most.try_wait());
}

TEST_P(latches, are_cancelled) {
  in_runtime([] {
    latch l{1};
    expect_cancelled([&] { l.wait(); });
    expect_cancelled([&] { static_cast<void>(l.wait_for(1h)); });
    l.count_down();
  });
}

TEST_P(latches, may_be_destroyed_by_a_waiter) {
  runtime rt{options()};
  for (int round = 0; round < rounds(1'000); ++round) {
    auto l = std::make_unique<latch>(2);
    latch* raw = l.get();
    auto h = rt.spawn([owned = std::move(l), round]() mutable {
      if (round % 3 == 0) await([&] { return owned->try_wait(); });
      else if (round % 3 == 1) owned->wait();
      else await([&] { return owned->wait_for(10us); });
      owned.reset();
    });
    auto other = rt.spawn([raw] { raw->count_down(); });
    raw->count_down();
    h.join();
    other.join();
  }
}

}  // namespace
}  // namespace ramie
