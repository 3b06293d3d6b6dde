#include <ramie/sync/barrier.hpp>

#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>
#include <optional>

namespace ramie {
namespace {

using namespace sync_tests;

class barriers : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, barriers, settings(), ::testing::PrintToStringParamName());

TEST_P(barriers, keep_all_in_step) {
  runtime rt{options()};
  constexpr int parties = 6;
  barrier<> meet{parties};
  std::vector<int> phase(parties);
  const int phases = rounds(500);
  crowd(rt, parties - 2, 2, [&](int who) {
    for (int i = 1; i <= phases; ++i) {
      phase[static_cast<std::size_t>(who)] = i;
      meet.arrive_and_wait();
      for (const int other : phase) EXPECT_EQ(other, i);
      meet.arrive_and_wait();
    }
  });
}

TEST_P(barriers, run_their_completion_once_a_phase_before_anybody_goes_on) {
  runtime rt{options()};
  std::atomic<int> completions{0};
  std::atomic<int> arrived{0};
  barrier meet{5, [&]() noexcept {
                 EXPECT_EQ(arrived.load(), 5 * (completions.load() + 1));
                 this_fiber::yield();
                 ++completions;
               }};
  const int phases = rounds(300);
  crowd(rt, 4, 1, [&](int) {
    for (int i = 1; i <= phases; ++i) {
      ++arrived;
      meet.arrive_and_wait();
      EXPECT_EQ(completions.load(), i);
    }
  });
}

TEST_P(barriers, let_go_who_drops_out) {
  runtime rt{options()};
  std::atomic<int> completions{0};
  barrier meet{4, [&]() noexcept { ++completions; }};
  crowd(rt, 4, 0, [&](int who) {
    for (int i = 0; i < who; ++i) meet.arrive_and_wait();
    meet.arrive_and_drop();
  });
  EXPECT_EQ(completions, 4);  // with 4, 3, 2 and 1 parties
}

TEST_P(barriers, part_arrival_from_waiting) {
  in_runtime([] {
    barrier<> meet{3};
    auto token = meet.arrive();
    auto waiter = spawn([&, t = std::move(token)]() mutable { meet.wait(std::move(t)); });
    let_others_run();
    auto last = meet.arrive(2);
    waiter.join();
    meet.wait(std::move(last));  // over already
  });
}

TEST_P(barriers, name_misuse) {
  in_runtime([] {
    EXPECT_THROW(barrier<>{-1}, invalid_argument);
    barrier<> meet{1};
    EXPECT_THROW(static_cast<void>(meet.arrive(2)), usage_error);
    EXPECT_THROW(static_cast<void>(meet.arrive(-1)), usage_error);
    meet.arrive_and_drop();
    EXPECT_THROW(meet.arrive_and_wait(), usage_error);
  });
}

TEST_P(barriers, are_cancelled_with_the_arrival_made) {
  in_runtime([] {
    barrier<> meet{21};
    // A fiber that is stopped before its start runs all the same, up to its first wait.
    expect_cancelled([&] { meet.arrive_and_wait(); });
    meet.arrive_and_wait();  // after 20 that gave up
  });
}

TEST_P(barriers, may_be_destroyed_by_a_waiter) {
  runtime rt{options()};
  for (int round = 0; round < rounds(500); ++round) {
    auto meet = std::make_unique<barrier<>>(2);
    auto* raw = meet.get();
    auto h = rt.spawn([owned = std::move(meet)]() mutable {
      auto token = owned->arrive();
      owned->wait(std::move(token));
      owned.reset();
    });
    static_cast<void>(raw->arrive());
    h.join();
  }
}

}  // namespace
}  // namespace ramie
