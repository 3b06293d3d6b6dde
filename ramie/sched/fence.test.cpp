// Asymmetric fences, by the litmus test that they are for: each side stores its own word, fences, and loads the
// other's. Without fences both may find the other's word still unset; with them, never.
#include <ramie/sched/fence.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>

namespace ramie::detail {
namespace {

using testing::hold_until;
using testing::scaled;

/// Lets both sides go through `rounds` cells, close to each other in time. Returns how often both missed the other.
template <class Left, class Right>
int both_missed(int rounds, Left left_fence, Right right_fence) {
  struct alignas(64) cell {
    std::atomic<int> left{0};
    alignas(64) std::atomic<int> right{0};
    alignas(64) int left_saw = 0;
    alignas(64) int right_saw = 0;
  };
  constexpr int cells = 512;
  const auto all = std::make_unique<cell[]>(cells);
  struct alignas(64) progress {
    std::atomic<int> at{0};
  } left_at, right_at, batch, ready;
  // Waits for the other side to come to the same cell, but not long: it may have been preempted.
  auto meet = [](std::atomic<int>& mine, const std::atomic<int>& other, int i) {
    mine.store(i + 1, std::memory_order_relaxed);
    // No spin_pause: it would make the meeting too inexact for the few nanoseconds that a store takes to be seen.
    for (int look = 0; look < 1000 && other.load(std::memory_order_relaxed) <= i; ++look) compiler_fence();
  };
  std::thread right{[&] {
    for (int first = 0; first < rounds; first += cells) {
      hold_until([&] { return batch.at.load(std::memory_order_acquire) > first; });
      for (int i = 0; i < cells; ++i) {
        meet(right_at.at, left_at.at, first + i);
        cell& c = all[static_cast<std::size_t>(i)];
        c.right.store(1, std::memory_order_relaxed);
        right_fence();
        c.right_saw = c.left.load(std::memory_order_relaxed);
      }
      ready.at.store(first + 1, std::memory_order_release);
    }
  }};
  int missed = 0;
  for (int first = 0; first < rounds; first += cells) {
    batch.at.store(first + 1, std::memory_order_release);
    for (int i = 0; i < cells; ++i) {
      meet(left_at.at, right_at.at, first + i);
      cell& c = all[static_cast<std::size_t>(i)];
      c.left.store(1, std::memory_order_relaxed);
      left_fence();
      c.left_saw = c.right.load(std::memory_order_relaxed);
    }
    hold_until([&] { return ready.at.load(std::memory_order_acquire) > first; });
    for (int i = 0; i < cells; ++i) {
      cell& c = all[static_cast<std::size_t>(i)];
      if (c.left_saw == 0 && c.right_saw == 0) ++missed;
      c.left.store(0, std::memory_order_relaxed);
      c.right.store(0, std::memory_order_relaxed);
    }
  }
  right.join();
  return missed;
}

TEST(fences, without_any_both_sides_miss_each_other) {
  // Says that the test can fail. If it never happens on this machine, the others prove nothing: that is printed, not an
  // error.
  const int missed = both_missed(scaled(1'000'000), [] { compiler_fence(); }, [] { compiler_fence(); });
  std::printf("without fences: both missed in %d of %d rounds\n", missed, scaled(1'000'000));
}

TEST(fences, light_against_heavy) {
  init_fences();
  EXPECT_EQ(both_missed(scaled(1'000'000), [] { light_fence(); }, [] { heavy_fence(); }), 0);
  EXPECT_EQ(both_missed(scaled(1'000'000), [] { heavy_fence(); }, [] { light_fence(); }), 0);
}

TEST(fences, heavy_against_heavy) {
  init_fences();
  EXPECT_EQ(both_missed(scaled(200'000), [] { heavy_fence(); }, [] { heavy_fence(); }), 0);
}

TEST(fences, full_against_full) {
  EXPECT_EQ(both_missed(scaled(1'000'000), [] { full_fence(); }, [] { full_fence(); }), 0);
}

TEST(fences, are_decided_once) {
  init_fences();
  const bool decided = asymmetric_fences;
  ASSERT_EQ(::setenv("RAMIE_MEMBARRIER", decided ? "0" : "1", 1), 0);
  init_fences();
  EXPECT_EQ(asymmetric_fences, decided);
  ::unsetenv("RAMIE_MEMBARRIER");
}

TEST(fences_of_a_child, are_as_the_environment_says) {
  const char* wish = std::getenv("RAMIE_MEMBARRIER");
  if (wish == nullptr || *wish != '0') GTEST_SKIP() << "for the test below";
  init_fences();
  EXPECT_FALSE(asymmetric_fences);
}

TEST(fences, hold_without_membarrier) {
  if (const char* wish = std::getenv("RAMIE_MEMBARRIER"); wish != nullptr) GTEST_SKIP() << "is the child";
  const int status = testing::run_self("RAMIE_MEMBARRIER", "0", "fences_of_a_child.*:fences.light*:fences.heavy*");
  if (status == 127) GTEST_SKIP() << "this program cannot start itself here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ramie::detail
