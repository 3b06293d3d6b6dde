// Which workers sleep and which are woken: the set by itself, and that no wake-up is lost between publishers and
// sleepers.
#include <ramie/worker/idle_set.hpp>

#include <ramie/machine/topology_testing.hpp>
#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <memory>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::countdown;
using testing::hold_until;
using testing::run_on;
using testing::scaled;

/// Workers that never run, to be put into a set.
class idle_sets : public ::testing::Test {
 protected:
  void SetUp() override { set.reserve(4); }
  testing::idle_crew crew{4};
  std::vector<std::unique_ptr<worker>>& workers = crew.owned;
  idle_set set;
};

TEST_F(idle_sets, wake_the_last_that_fell_asleep) {
  EXPECT_FALSE(set.hint());
  EXPECT_FALSE(set.wake_one());
  for (int i = 0; i < 3; ++i) set.enter(*workers[static_cast<std::size_t>(i)]);
  EXPECT_EQ(set.sleeping(), 3u);
  EXPECT_TRUE(set.hint());
  EXPECT_TRUE(workers[2]->idle.load());
  ASSERT_TRUE(set.wake_one());
  EXPECT_EQ(workers[2]->wake_token.load(), 1u);
  EXPECT_EQ(workers[0]->wake_token.load(), 0u);
  EXPECT_TRUE(workers[2]->searching);
  EXPECT_FALSE(workers[2]->idle.load());
  EXPECT_EQ(set.sleeping(), 2u);
}

TEST_F(idle_sets, wake_one_nearby_if_there_is_one) {
  const topology map = testing::made_up{.caches = 2, .cores = 2};
  for (int i = 0; i < 4; ++i)
    workers[static_cast<std::size_t>(i)]->place.store(std::bit_cast<std::uint64_t>(map.at(i)));
  for (const std::size_t i : {0u, 1u, 2u}) set.enter(*workers[i]);
  const auto woken = [&](std::size_t i) { return workers[i]->wake_token.load() == 1; };
  ASSERT_TRUE(set.wake_one(true, workers[0].get()));
  EXPECT_TRUE(woken(1));
  ASSERT_TRUE(set.wake_one(true, workers[3].get()));
  EXPECT_TRUE(woken(2));
  ASSERT_TRUE(set.wake_one(true, workers[3].get()));
  EXPECT_TRUE(woken(0)) << "far, but the only one";
  EXPECT_FALSE(set.wake_one(true, workers[3].get()));
}

TEST_F(idle_sets, wake_nobody_while_somebody_searches) {
  set.enter(*workers[0]);
  set.enter(*workers[1]);
  ASSERT_TRUE(set.wake_one());
  EXPECT_FALSE(set.hint());
  EXPECT_FALSE(set.wake_one());
  // The last searcher is asked to pass the search on.
  EXPECT_TRUE(set.end_search(*workers[1]));
  EXPECT_TRUE(set.hint());
  EXPECT_TRUE(set.wake_one());
  EXPECT_FALSE(set.end_search(*workers[0]));  // none sleeps
}

TEST_F(idle_sets, let_half_of_the_workers_search) {
  EXPECT_TRUE(set.begin_search(*workers[0], 4));
  EXPECT_TRUE(set.begin_search(*workers[1], 4));
  EXPECT_FALSE(set.begin_search(*workers[2], 4));
  EXPECT_FALSE(set.end_search(*workers[0]));
  EXPECT_TRUE(set.begin_search(*workers[2], 4));
  EXPECT_FALSE(set.begin_search(*workers[3], 1));
  static_cast<void>(set.end_search(*workers[1]));
  static_cast<void>(set.end_search(*workers[2]));
  EXPECT_TRUE(set.begin_search(*workers[3], 1));  // one always may
}

TEST_F(idle_sets, let_a_sleeper_leave_once) {
  set.enter(*workers[0]);
  EXPECT_TRUE(set.leave(*workers[0]));
  EXPECT_TRUE(workers[0]->searching);
  EXPECT_FALSE(set.leave(*workers[0]));
  set.enter(*workers[0]);  // ends the search
  EXPECT_FALSE(workers[0]->searching);
  ASSERT_TRUE(set.wake_one());
  EXPECT_FALSE(set.leave(*workers[0]));  // the token is there already
  EXPECT_EQ(workers[0]->wake_token.load(), 1u);
}

TEST_F(idle_sets, wake_all) {
  for (auto& w : workers) set.enter(*w);
  set.wake_all();
  EXPECT_EQ(set.sleeping(), 0u);
  for (auto& w : workers) EXPECT_EQ(w->wake_token.load(), 1u);
}

class wake_ups : public ::testing::TestWithParam<int> {
 protected:
  scheduler runtime{testing::with_workers(GetParam())};
  void TearDown() override { runtime.stop(); }
};
INSTANTIATE_TEST_SUITE_P(workers, wake_ups, ::testing::Values(1, 2, 4),
                         [](const auto& p) { return std::to_string(p.param); });

TEST_P(wake_ups, of_injected_tasks_are_not_lost) {
  // One task at a time, from outside, to workers that are falling asleep, asleep, or awake. A lost wake-up hangs
  // here. The pauses sweep over the time that a worker takes to fall asleep.
  for (int i = 0; i < scaled(20'000); ++i) {
    std::atomic<bool> ran{false};
    testing::start(runtime, [&] { ran.store(true, std::memory_order_release); });
    hold_until([&] { return ran.load(std::memory_order_acquire); });
    const auto until = steady::now() + std::chrono::microseconds{(i * 7) % 150};
    while (steady::now() < until) spin_pause();
  }
}

TEST_P(wake_ups, of_parked_fibers_are_not_lost) {
  // A plain thread and a fiber in turn, by wakes alone.
  std::atomic<std::uint64_t> fiber{0};
  std::atomic<std::uint64_t> thread{0};
  const int rounds = scaled(20'000);
  testing::start(runtime, [&] {
    for (int i = 0; i < rounds; ++i) {
      wait pause{wait::kind::uninterruptible};
      fiber.store(pause.ref().bits());
      if (i > 0) {
        hold_until([&] { return thread.load() != 0; });
        wake(waiter_ref::from_bits(thread.exchange(0)));
      }
      pause.suspend();
    }
    hold_until([&] { return thread.load() != 0; });
    wake(waiter_ref::from_bits(thread.exchange(0)));
  });
  for (int i = 0; i < rounds; ++i) {
    hold_until([&] { return fiber.load() != 0; });
    const waiter_ref other = waiter_ref::from_bits(fiber.exchange(0));
    wait pause{wait::kind::uninterruptible};
    thread.store(pause.ref().bits());
    EXPECT_TRUE(wake(other));
    EXPECT_EQ(pause.suspend(), wake_reason::event);
  }
}

TEST_P(wake_ups, of_spawned_tasks_are_not_lost) {
  // The fiber occupies its worker, so another worker must take the task; on a single worker it yields.
  const bool alone = GetParam() == 1;
  run_on(runtime, [&] {
    for (int i = 0; i < scaled(3000); ++i) {
      std::atomic<bool> ran{false};
      testing::start_here([&] { ran.store(true, std::memory_order_release); });
      if (alone) {
        while (!ran.load(std::memory_order_acquire)) testing::yield_always();
      } else {
        hold_until([&] { return ran.load(std::memory_order_acquire); });
      }
    }
  });
}

TEST_P(wake_ups, of_fork_jobs_are_not_lost) {
  if (GetParam() == 1) GTEST_SKIP() << "nobody to take them";
  run_on(runtime, [&] {
    for (int i = 0; i < scaled(3000); ++i) {
      std::atomic<bool> ran{false};
      testing::fork_two([&] { hold_until([&] { return ran.load(std::memory_order_acquire); }); },
                        [&] { ran.store(true, std::memory_order_release); });
    }
  });
}

}  // namespace
}  // namespace ramie::detail
