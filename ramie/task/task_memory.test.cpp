// What a task costs, and the caches of task blocks.
#include <ramie/task/task_memory.hpp>

#include <ramie/sched/testing.hpp>
#include <ramie/task/task.hpp>

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ramie::detail {
namespace {

TEST(task_memory, of_a_task_never_started_is_at_most_128_bytes) {
  // With a closure of five words, what malloc adds, and the slots of a spawn deque that has just grown (twice as many
  // as tasks).
  struct closure {
    void* words[5];
  };
  static_assert(sizeof(task) <= 64);
  static_assert(task_cache::list_of(sizeof(task) + sizeof(closure)) == 0);
  if (testing::sanitized) GTEST_SKIP() << "the sanitizer's malloc is another one";
  constexpr std::size_t slots = 2 * sizeof(void*);
  const auto list = static_cast<std::uint8_t>(task_cache::list_of(sizeof(task) + sizeof(closure)));
  std::vector<void*> blocks;
  std::size_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    blocks.push_back(allocate_task(list));
    bytes += ::malloc_usable_size(blocks.back()) + sizeof(std::size_t) + slots;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back()) % task_alignment, 0u);
  }
  // On average: malloc adds the rest of a block that is too small to be split off.
  EXPECT_LE(bytes / blocks.size(), 128u);
  for (void* b : blocks) free_task_memory(b, list);
}

TEST(task_memory, comes_in_three_sizes) {
  for (std::size_t list = 0; list < task_cache::block_sizes.size(); ++list) {
    EXPECT_EQ(task_cache::list_of(task_cache::block_sizes[list]), list);
    EXPECT_EQ(task_cache::list_of(task_cache::block_sizes[list] + 1), list + 1);
  }
  EXPECT_EQ(task_cache::list_of(1), 0u);
  EXPECT_EQ(task_cache::block_sizes.size(), task_cache::no_list);
}

TEST(task_memory, is_reused_last_in_first_out) {
  trim_task_memory();
  task_cache cache;
  std::array<void*, 10> blocks{};
  for (void*& b : blocks) b = ::operator new(task_cache::block_sizes[1]);
  for (std::size_t list = 0; list < 3; ++list) EXPECT_EQ(cache.take(list), nullptr);
  for (void* b : blocks) cache.give(1, b);
  EXPECT_EQ(cache.take(0), nullptr);
  for (std::size_t i = blocks.size(); i-- > 0;) EXPECT_EQ(cache.take(1), blocks[i]);
  EXPECT_EQ(cache.take(1), nullptr);
  for (void* b : blocks) ::operator delete(b);
}

TEST(task_memory, goes_through_the_depot_and_comes_back) {
  // AddressSanitizer and malloc would report blocks that are lost or freed twice.
  constexpr int n = 10'000;
  trim_task_memory();
  task_cache cache;
  std::vector<void*> blocks;
  for (int i = 0; i < n; ++i) {
    void* b = ::operator new(task_cache::block_sizes[0]);
    std::memset(b, 0x5a, task_cache::block_sizes[0]);
    cache.give(0, b);
    blocks.push_back(b);
  }
  // Another cache can take all except what the first one itself holds: a full magazine and one in use.
  task_cache other;
  std::vector<void*> found;
  while (void* b = other.take(0)) found.push_back(b);
  EXPECT_GE(found.size(), n - 2 * task_cache::magazine_size);
  while (void* b = cache.take(0)) found.push_back(b);
  std::sort(blocks.begin(), blocks.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, blocks);
  for (void* b : blocks) ::operator delete(b);
}

TEST(task_memory, is_given_back_by_a_trim) {
  trim_task_memory();
  task_cache cache;
  for (int i = 0; i < 3000; ++i) cache.give(2, ::operator new(task_cache::block_sizes[2]));
  cache.flush();
  void* b = cache.take(2);
  EXPECT_NE(b, nullptr);
  cache.give(2, b);
  cache.flush();
  trim_task_memory();
  EXPECT_EQ(cache.take(2), nullptr);
}

TEST(task_memory, may_be_freed_by_another_worker) {
  // Closures of all sizes, started here and run anywhere; contents checked.
  scheduler runtime{testing::with_workers(3)};
  std::atomic<int> wrong{0};
  auto wave = [&]<std::size_t n>(std::array<unsigned char, n> filled, testing::countdown& ended) {
    filled.fill(static_cast<unsigned char>(n));
    testing::start_here([&wrong, &ended, filled] {
      for (const unsigned char c : filled) wrong.fetch_add(c != static_cast<unsigned char>(n) ? 1 : 0);
      ended.down();
    });
  };
  for (int round = 0; round < 10; ++round)
    testing::run_on(runtime, [&] {
      constexpr int each = testing::scaled(2000);
      testing::countdown ended{5 * each};
      for (int i = 0; i < each; ++i) {
        wave(std::array<unsigned char, 8>{}, ended);
        wave(std::array<unsigned char, 100>{}, ended);
        wave(std::array<unsigned char, 300>{}, ended);
        wave(std::array<unsigned char, 500>{}, ended);
        wave(std::array<unsigned char, 2000>{}, ended);
        if (i % 100 == 0) testing::yield_always();
      }
      ended.await();
    });
  EXPECT_EQ(wrong.load(), 0);
  testing::wait_until_empty(runtime);
  runtime.stop();
}

}  // namespace
}  // namespace ramie::detail
