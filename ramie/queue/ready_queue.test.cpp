// The ready queue keeps its order, in the ring and beyond it, and loses and duplicates nothing.
#include <ramie/queue/ready_queue.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::scaled;

/// Descriptors with numbers, as things to queue.
class items {
 public:
  explicit items(std::size_t n) : all_{new stack[n]{}} {}
  stack* operator[](std::size_t i) const { return &all_[i]; }
  [[nodiscard]] std::size_t number_of(const stack* s) const { return static_cast<std::size_t>(s - all_.get()); }

 private:
  std::unique_ptr<stack[]> all_;
};

class ready_queues : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { init_fences(); }  // before the queue is made
  ready_queue queue;
};

TEST_F(ready_queues, are_empty_at_first) {
  std::array<ready_item, ready_queue::steal_most> loot{};
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_FALSE(queue.pop());
  EXPECT_EQ(queue.steal_half(loot.data()), 0u);
}

TEST_F(ready_queues, are_first_in_first_out) {
  const items all{100};
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(queue.push(all[i]), i + 1);
  EXPECT_EQ(queue.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(queue.pop().as_stack(), all[i]);
  EXPECT_FALSE(queue.pop());
}

TEST_F(ready_queues, let_a_thief_pass_over_what_must_stay) {
  // Every third one is pinned, and there are more than the ring holds.
  constexpr std::size_t n = 2 * ready_queue::ring_size + 1;
  const testing::idle_tasks all{n};
  EXPECT_FALSE(queue.has_movable());
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 3 == 0) all[i].flags.fetch_or(task::pinned_flag);
    queue.push(&all[i]);
  }
  EXPECT_TRUE(queue.has_movable());
  std::vector<const task*> stolen;
  std::array<ready_item, ready_queue::steal_most> loot{};
  for (std::size_t taken; (taken = queue.steal_half(loot.data())) != 0;)
    for (std::size_t i = 0; i < taken; ++i) stolen.push_back(loot[i].as_resident());
  EXPECT_FALSE(queue.has_movable());
  std::size_t next = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 3 == 0) ASSERT_EQ(queue.pop().as_resident(), &all[i]);
    else ASSERT_EQ(stolen.at(next++), &all[i]);
  }
  EXPECT_FALSE(queue.pop());
}

TEST_F(ready_queues, keep_order_past_the_ring) {
  constexpr std::size_t n = 5 * ready_queue::ring_size + 3;
  const items all{n};
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_GE(queue.push(all[i]), std::min(i + 1, std::size_t{ready_queue::ring_size}));
  EXPECT_GE(queue.size(), ready_queue::ring_size);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(queue.pop().as_stack(), all[i]) << i;
  EXPECT_FALSE(queue.pop());
  EXPECT_EQ(queue.size(), 0u);
}

TEST_F(ready_queues, keep_order_while_they_go_in_and_out_of_overflow) {
  // Items come in the order of their numbers, so the model of the queue is a counter. Fills hover around the ring's
  // size.
  constexpr std::size_t n = 200'000;
  const items all{n};
  std::mt19937 random{7};
  std::size_t in = 0;
  std::size_t out = 0;
  std::array<ready_item, ready_queue::steal_most> loot{};
  while (out < n) {
    const std::size_t target = random() % (3 * ready_queue::ring_size);
    while (in < n && in - out < target) queue.push(all[in++]);
    const std::size_t rest = in == n ? 0 : random() % (2 * ready_queue::ring_size);
    while (in - out > rest) {
      if (random() % 8 == 0) {
        const std::size_t before = queue.size();
        const std::size_t stolen = queue.steal_half(loot.data());
        ASSERT_EQ(stolen, std::min<std::size_t>((before + 1) / 2, ready_queue::steal_most));
        for (std::size_t i = 0; i < stolen; ++i) ASSERT_EQ(loot[i].as_stack(), all[out++]);
      } else {
        ASSERT_EQ(queue.pop().as_stack(), all[out]);
        ++out;
      }
    }
    if (in == n && in == out) break;
  }
  EXPECT_FALSE(queue.pop());
}

TEST_F(ready_queues, give_thieves_half_rounded_up_but_not_too_much) {
  const items all{1000};
  std::array<ready_item, ready_queue::steal_most> loot{};
  queue.push(all[0]);
  EXPECT_EQ(queue.steal_half(loot.data()), 1u);
  for (std::size_t i = 0; i < 9; ++i) queue.push(all[i]);
  EXPECT_EQ(queue.steal_half(loot.data()), 5u);
  EXPECT_EQ(loot[0].as_stack(), all[0]);
  EXPECT_EQ(loot[4].as_stack(), all[4]);
  EXPECT_EQ(queue.pop().as_stack(), all[5]);
  while (queue.pop()) {
  }
  for (std::size_t i = 0; i < 1000; ++i) queue.push(all[i]);
  EXPECT_EQ(queue.steal_half(loot.data()), ready_queue::steal_most);
}

TEST_F(ready_queues, hold_residents_beside_fibers) {
  constexpr std::size_t n = 3 * ready_queue::ring_size;
  const items all{n};
  const auto residents = std::make_unique<task[]>(n);
  for (std::size_t i = 0; i < n; ++i) i % 3 == 0 ? queue.push(&residents[i]) : queue.push(all[i]);
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 3 == 0) {
      ASSERT_EQ(queue.pop_stack(), nullptr) << i;
      const ready_item item = queue.pop();
      ASSERT_TRUE(item.is_resident()) << i;
      ASSERT_EQ(item.as_resident(), &residents[i]);
    } else {
      ASSERT_EQ(queue.pop_stack(), all[i]) << i;
    }
  }
  EXPECT_EQ(queue.pop_stack(), nullptr);
}

TEST_F(ready_queues, give_the_kind_that_is_asked_for_in_few_steps) {
  if (!asymmetric_fences) GTEST_SKIP() << "then it always takes more";
  constexpr std::size_t n = ready_queue::ring_size + 1;  // one in the list behind the ring
  const items all{n};
  const auto residents = std::make_unique<task[]>(n);
  EXPECT_EQ(queue.try_pop_resident(), nullptr);
  EXPECT_EQ(queue.try_pop_stack(), nullptr);
  for (std::size_t i = 0; i < n; ++i) i % 3 == 0 ? queue.push(&residents[i]) : queue.push(all[i]);
  EXPECT_EQ(queue.try_pop_resident(), nullptr) << "there is a list";
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(queue.pop());
  for (std::size_t i = 2; i < n; ++i) {
    if (i % 3 == 0) {
      ASSERT_EQ(queue.try_pop_stack(), nullptr) << i;
      ASSERT_EQ(queue.try_pop_resident(), &residents[i]);
    } else {
      ASSERT_EQ(queue.try_pop_resident(), nullptr) << i;
      ASSERT_EQ(queue.try_pop_stack(), all[i]);
    }
  }
  EXPECT_EQ(queue.try_pop_resident(), nullptr);
  EXPECT_EQ(queue.size(), 0u);
}

TEST_F(ready_queues, lose_and_double_nothing_among_thieves) {
  // Items go in by number and come out oldest first, so each taker sees growing numbers.
  constexpr int thieves = 3;
  const auto n = static_cast<std::size_t>(scaled(4'000'000));
  const items all{n};
  const auto taken = std::make_unique<std::atomic<std::uint8_t>[]>(n);
  std::atomic<bool> over{false};
  std::atomic<int> disorder{0};
  auto take = [&](const stack* s, std::int64_t& last) {
    const std::size_t number = all.number_of(s);
    taken[number].fetch_add(1, std::memory_order_relaxed);
    if (static_cast<std::int64_t>(number) <= last) disorder.fetch_add(1);
    last = static_cast<std::int64_t>(number);
  };
  std::vector<std::thread> threads;
  std::atomic<std::size_t> stolen{0};
  for (int t = 0; t < thieves; ++t)
    threads.emplace_back([&] {
      std::array<ready_item, ready_queue::steal_most> loot{};
      std::int64_t last = -1;
      while (!over.load(std::memory_order_acquire)) {
        const std::size_t got = queue.steal_half(loot.data());
        for (std::size_t i = 0; i < got; ++i) take(loot[i].as_stack(), last);
        stolen.fetch_add(got, std::memory_order_relaxed);
        if (got == 0) ::sched_yield();
      }
    });
  std::mt19937 random{11};
  std::int64_t last = -1;
  std::size_t in = 0;
  while (in < 64) queue.push(all[in++]);
  testing::hold_until([&] { return stolen.load(std::memory_order_relaxed) != 0; });  // the thieves are active
  while (in < n) {
    // Now and then far beyond the ring.
    for (std::size_t burst = random() % (random() % 64 == 0 ? 4 * ready_queue::ring_size : 40); burst > 0 && in < n;
         --burst)
      queue.push(all[in++]);
    for (std::size_t burst = random() % 40; burst > 0; --burst)
      if (const ready_item item = queue.pop()) take(item.as_stack(), last);
  }
  while (const ready_item item = queue.pop()) take(item.as_stack(), last);
  over.store(true, std::memory_order_release);
  for (std::thread& t : threads) t.join();
  while (const ready_item item = queue.pop()) take(item.as_stack(), last);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(disorder.load(), 0);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += taken[i].load(std::memory_order_relaxed) != 1 ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
}

TEST_F(ready_queues, hold_without_membarrier) {
  if (std::getenv("RAMIE_MEMBARRIER") != nullptr) GTEST_SKIP() << "is the child";
  const int status = testing::run_self("RAMIE_MEMBARRIER", "0", "ready_queues.lose*");
  if (status == 127) GTEST_SKIP() << "this program cannot start itself here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ramie::detail
