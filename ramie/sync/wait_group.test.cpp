#include <ramie/sync/wait_group.hpp>

#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>

namespace ramie {
namespace {

using namespace sync_tests;

class wait_groups : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, wait_groups, settings(), ::testing::PrintToStringParamName());

TEST_P(wait_groups, wait_for_all_work_again_and_again) {
  in_runtime([] {
    wait_group group;
    for (int round = 0; round < rounds(100); ++round) {
      std::atomic<int> done{0};
      for (int i = 0; i < 10; ++i) {
        group.add();
        spawn([&] {
          if (done.load() % 3 == 0) this_fiber::yield();
          ++done;
          group.done();
        }).detach();
      }
      group.wait();
      EXPECT_EQ(done, 10);
    }
  });
}

TEST_P(wait_groups, count_work_that_makes_work) {
  in_runtime([] {
    struct tree {
      wait_group group;
      std::atomic<int> nodes{0};
      void grow(int depth) {
        ++nodes;
        if (depth > 0) {
          group.add(2);
          for (int i = 0; i < 2; ++i) spawn([this, depth] { grow(depth - 1); }).detach();
        }
        group.done();
      }
    } t;
    t.group.add();
    t.grow(6);
    t.group.wait();
    EXPECT_EQ(t.nodes, 127);
  });
}

TEST_P(wait_groups, let_many_wait) {
  runtime rt{options()};
  wait_group group{1};
  std::atomic<bool> over{false};
  crowd(rt, 6, 2, [&](int who) {
    if (who == 0) {
      this_fiber::yield();
      over = true;
      group.done();
    } else {
      group.wait();
      EXPECT_TRUE(over);
    }
  });
}

TEST_P(wait_groups, do_not_go_below_zero) {
  const auto use = [] {
    wait_group group;
    group.wait();
    EXPECT_THROW(group.done(), usage_error);
    group.add(3);
    EXPECT_THROW(group.add(-4), usage_error);
    EXPECT_FALSE(group.try_wait());
    group.add(-3);
    EXPECT_TRUE(group.try_wait());
    group.wait();
  };
  use();
  in_runtime(use);
}

TEST_P(wait_groups, wait_no_longer_than_told_and_are_cancelled) {
  in_runtime([] {
    wait_group group{1};
    EXPECT_FALSE(group.wait_for(1ms));
    EXPECT_FALSE(group.wait_until(std::chrono::system_clock::now() + 1ms));
    expect_cancelled([&] { group.wait(); });
    group.done();
    EXPECT_TRUE(group.wait_for(0s));
  });
}

TEST_P(wait_groups, may_be_destroyed_by_a_waiter) {
  runtime rt{options()};
  for (int round = 0; round < rounds(1'000); ++round) {
    auto group = std::make_unique<wait_group>(1);
    wait_group* raw = group.get();
    auto h = rt.spawn([owned = std::move(group), round]() mutable {
      if (round % 2 == 0) owned->wait();
      else await([&] { return owned->try_wait(); });
      owned.reset();
    });
    raw->done();
    h.join();
  }
}

TEST(wait_group_counts, out_of_range_are_refused) {
  EXPECT_TRUE(contains(message_of<invalid_argument>([] { wait_group{-1}; }), "wait_group: a count of -1"));
}

}  // namespace
}  // namespace ramie
