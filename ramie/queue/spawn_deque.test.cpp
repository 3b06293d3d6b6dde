// The spawn deque: the owner takes the newest, thieves the oldest; nothing is lost, nothing comes out twice.
#include <ramie/queue/spawn_deque.hpp>

#include <ramie/sched/testing.hpp>
#include <ramie/task/task.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::scaled;

class spawn_deques : public ::testing::Test {
 protected:
  void SetUp() override { init_fences(); }
  spawn_deque deque;
  std::array<task*, spawn_deque::steal_most> loot{};
};

TEST_F(spawn_deques, are_empty_at_first) {
  EXPECT_EQ(deque.size(), 0u);
  EXPECT_EQ(deque.pop(), nullptr);
  EXPECT_EQ(deque.pop_oldest(), nullptr);
  EXPECT_EQ(deque.steal(loot.data()), 0u);
  EXPECT_EQ(deque.pop(), nullptr);
}

TEST_F(spawn_deques, give_the_owner_the_newest_and_thieves_the_oldest) {
  std::vector<task> all(100);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(deque.push(&all[i]), i + 1);
  EXPECT_EQ(deque.pop(), &all[99]);
  EXPECT_EQ(deque.pop_oldest(), &all[0]);
  EXPECT_EQ(deque.size(), 98u);
  ASSERT_EQ(deque.steal(loot.data()), 32u);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(loot[i], &all[i + 1]);
  ASSERT_EQ(deque.steal(loot.data()), 32u);
  ASSERT_EQ(deque.steal(loot.data()), 17u);  // half of 34
  EXPECT_EQ(deque.pop_oldest(), &all[82]);
  for (std::size_t i = 98; i > 82; --i) ASSERT_EQ(deque.pop(), &all[i]);
  EXPECT_EQ(deque.pop(), nullptr);
  EXPECT_EQ(deque.size(), 0u);
}

TEST_F(spawn_deques, give_a_single_task_to_a_thief) {
  task one;
  deque.push(&one);
  EXPECT_EQ(deque.steal(loot.data()), 1u);
  EXPECT_EQ(loot[0], &one);
  EXPECT_EQ(deque.pop(), nullptr);
  EXPECT_EQ(deque.push(&one), 1u);
  EXPECT_EQ(deque.pop(), &one);
}

TEST_F(spawn_deques, let_the_newest_be_altered_in_its_place) {
  std::array<task, 3> all;
  int altered = 0;
  const auto count = [&] { ++altered; };
  EXPECT_FALSE(deque.alter_newest(&all[0], count));
  for (task& t : all) deque.push(&t);
  EXPECT_FALSE(deque.alter_newest(&all[1], count));
  EXPECT_EQ(altered, 0);
  EXPECT_TRUE(deque.alter_newest(&all[2], count));
  EXPECT_EQ(altered, 1);
  EXPECT_EQ(deque.size(), 3u);
  EXPECT_EQ(deque.pop(), &all[2]);
  EXPECT_FALSE(deque.alter_newest(&all[2], count));
  EXPECT_EQ(deque.steal(loot.data()), 1u);
  EXPECT_TRUE(deque.alter_newest(&all[1], count)) << "the last of all";
  EXPECT_EQ(deque.steal(loot.data()), 1u);
  EXPECT_EQ(loot[0], &all[1]);
  EXPECT_FALSE(deque.alter_newest(&all[1], count));
  EXPECT_EQ(altered, 2);
}

TEST_F(spawn_deques, grow) {
  std::vector<task> all(100'000);
  for (task& t : all) deque.push(&t);
  EXPECT_EQ(deque.size(), all.size());
  for (std::size_t i = 0; i < 50'000; ++i) ASSERT_EQ(deque.pop_oldest(), &all[i]);
  for (std::size_t i = all.size(); i > 50'000; --i) ASSERT_EQ(deque.pop(), &all[i - 1]);
  EXPECT_EQ(deque.pop(), nullptr);
}

TEST_F(spawn_deques, follow_a_model) {
  std::vector<task> all(200'000);
  std::vector<task*> model;  // oldest first, from `first` on
  std::size_t first = 0;
  std::size_t next = 0;
  std::mt19937 random{3};
  auto expected_newest = [&]() -> task* { return first == model.size() ? nullptr : model.back(); };
  while (next < all.size()) {
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
      case 3:
        model.push_back(&all[next]);
        deque.push(&all[next++]);
        break;
      case 4:
      case 5: {
        task* const t = expected_newest();
        ASSERT_EQ(deque.pop(), t);
        if (t != nullptr) model.pop_back();
        break;
      }
      case 6: {
        task* const t = first == model.size() ? nullptr : model[first];
        ASSERT_EQ(deque.pop_oldest(), t);
        if (t != nullptr) ++first;
        break;
      }
      default:
        if (random() % 16 != 0) break;
        const std::size_t got = deque.steal(loot.data());
        ASSERT_EQ(got, std::min<std::size_t>((model.size() - first + 1) / 2, spawn_deque::steal_most));
        for (std::size_t i = 0; i < got; ++i) ASSERT_EQ(loot[i], model[first++]);
    }
    ASSERT_EQ(deque.size(), model.size() - first);
  }
}

/// One owner, three thieves. `depth`: about how many tasks lie in the deque; small values make the last task contested,
/// large ones make it grow while thieves steal.
void contest(std::size_t n, unsigned depth) {
  init_fences();
  constexpr int thieves = 3;
  spawn_deque deque;
  const auto all = std::make_unique<task[]>(n);
  const auto taken = std::make_unique<std::atomic<std::uint8_t>[]>(n);
  std::atomic<bool> over{false};
  std::atomic<int> disorder{0};
  std::atomic<std::size_t> stolen{0};
  auto number_of = [&](const task* t) { return static_cast<std::int64_t>(t - all.get()); };
  auto take = [&](const task* t) {
    taken[static_cast<std::size_t>(number_of(t))].fetch_add(1, std::memory_order_relaxed);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < thieves; ++i)
    threads.emplace_back([&] {
      std::array<task*, spawn_deque::steal_most> loot{};
      std::int64_t last = -1;
      while (!over.load(std::memory_order_acquire)) {
        const std::size_t got = deque.steal(loot.data());
        for (std::size_t k = 0; k < got; ++k) {
          take(loot[k]);
          // Older tasks are always nearer to the top.
          if (number_of(loot[k]) <= last) disorder.fetch_add(1);
          last = number_of(loot[k]);
        }
        stolen.fetch_add(got, std::memory_order_relaxed);
        if (got == 0) ::sched_yield();
      }
    });
  std::mt19937 random{depth};
  std::size_t in = 0;
  while (in < 64) deque.push(&all[in++]);
  testing::hold_until([&] { return stolen.load(std::memory_order_relaxed) != 0; });  // the thieves are active
  while (in < n) {
    for (unsigned long burst = random() % depth + 1; burst > 0 && in < n; --burst) deque.push(&all[in++]);
    for (unsigned long burst = random() % (depth + depth / 4 + 2); burst > 0; --burst) {
      const task* t = random() % 16 == 0 ? deque.pop_oldest() : deque.pop();
      if (t == nullptr) break;
      take(t);
    }
  }
  while (const task* t = deque.pop()) take(t);  // the thieves take the rest
  over.store(true, std::memory_order_release);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(deque.size(), 0u);
  EXPECT_EQ(disorder.load(), 0);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += taken[i].load(std::memory_order_relaxed) != 1 ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
}

TEST_F(spawn_deques, lose_and_double_nothing_when_nearly_empty) {
  contest(static_cast<std::size_t>(scaled(3'000'000)), 2);
}
TEST_F(spawn_deques, lose_and_double_nothing_at_medium_depth) {
  contest(static_cast<std::size_t>(scaled(3'000'000)), 60);
}
TEST_F(spawn_deques, lose_and_double_nothing_while_they_grow) {
  for (int i = 0; i < 5; ++i) contest(static_cast<std::size_t>(scaled(500'000)), 20'000);
}

TEST_F(spawn_deques, hold_without_membarrier) {
  if (std::getenv("RAMIE_MEMBARRIER") != nullptr) GTEST_SKIP() << "is the child";
  const int status = testing::run_self("RAMIE_MEMBARRIER", "0", "spawn_deques.lose*");
  if (status == 127) GTEST_SKIP() << "this program cannot start itself here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ramie::detail
