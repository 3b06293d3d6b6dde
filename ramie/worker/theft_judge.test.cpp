// When a thief judges that its thefts were in vain.
#include <ramie/worker/theft_judge.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ramie::detail {
namespace {

class thefts : public ::testing::Test {
 protected:
  /// Steals 32 tasks, runs `more` besides, and needs `ns` for each.
  std::uint64_t steal(std::uint64_t ns, std::uint64_t more = 0) {
    judge.stole(now, dispatches, 32);
    dispatches += 32 + more;
    now += cycles_in_ns(ns * (32 + more));
    return judge.nothing_left(now, dispatches);
  }
  theft_judge judge;
  std::uint64_t now = cycles_in_us(1000);
  std::uint64_t dispatches = 7;
};

constexpr std::uint64_t tiny = theft_judge::tiny_task_ns / 2;

TEST_F(thefts, of_tiny_tasks_stop_after_a_few) {
  for (std::uint32_t i = 1; i < theft_judge::in_vain_least; ++i) EXPECT_EQ(steal(tiny), 0u);
  EXPECT_EQ(steal(tiny), cycles_in_us(theft_judge::leave_us));
}

TEST_F(thefts, in_vain_stop_for_longer_each_time_up_to_a_bound) {
  std::uint64_t left = 0;
  while (left == 0) left = steal(tiny);
  for (std::uint32_t i = 0; i < theft_judge::leave_doublings_most; ++i) {
    const std::uint64_t before = left;
    left = steal(tiny);
    EXPECT_EQ(left, 2 * before);
  }
  EXPECT_EQ(steal(tiny), left);
}

TEST_F(thefts, of_larger_tasks_go_on) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(steal(2 * theft_judge::tiny_task_ns), 0u);
}

TEST_F(thefts, that_lead_to_more_tasks_go_on_however_tiny) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(steal(tiny, 1000), 0u);
}

TEST_F(thefts, that_were_worth_it_make_good_for_those_that_were_not) {
  while (steal(tiny) == 0) {
  }
  steal(tiny);
  EXPECT_EQ(steal(tiny, 1000), 0u);
  for (std::uint32_t i = 1; i < theft_judge::in_vain_least; ++i) EXPECT_EQ(steal(tiny), 0u);
  EXPECT_EQ(steal(tiny), cycles_in_us(theft_judge::leave_us));
}

TEST_F(thefts, are_judged_once) {
  while (steal(tiny) == 0) {
  }
  EXPECT_EQ(judge.nothing_left(now, dispatches), 0u);
}

// Tasks that were spawned while thefts were off are not left alone for good, although no more are spawned.
TEST(thefts_of_a_runtime, come_back_for_larger_tasks) {
  scheduler runtime{testing::with_workers(2)};
  std::atomic<bool> helped{false};
  std::atomic<int> left{0};
  // Until one is helped: the other's thread may have been stopped all the while.
  while (!helped.load()) {
    testing::run_on(runtime, [&] {
      worker* const here = worker::current();
      here->leave_new_until.store(cycles() + cycles_in_us(100'000), std::memory_order_relaxed);
      for (int i = 0; i < 20'000; ++i) {
        left.fetch_add(1, std::memory_order_relaxed);
        testing::start_here([&left, &helped, here] {
          if (current_worker() != here) helped.store(true, std::memory_order_relaxed);
          const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds{100};
          while (!helped.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < end) spin_pause();
          left.fetch_sub(1, std::memory_order_release);
        });
      }
    });
    testing::hold_until([&] { return left.load(std::memory_order_acquire) == 0; });
  }
  runtime.stop();
}

TEST_F(thefts, that_did_not_take_place_are_not_judged) { EXPECT_EQ(judge.nothing_left(now, 1000), 0u); }

}  // namespace
}  // namespace ramie::detail
