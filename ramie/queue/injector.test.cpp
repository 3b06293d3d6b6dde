// The injection queue: first in first out within a kind, refused stacks stay where they are, nothing lost among many
// threads.
#include <ramie/queue/injector.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::scaled;

constexpr auto any = [](const stack&) { return true; };

TEST(injectors, are_empty_at_first) {
  injector queue;
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_FALSE(queue.pop(false, any));
  EXPECT_FALSE(queue.pop(true, any));
}

TEST(injectors, are_first_in_first_out_within_a_kind) {
  injector queue;
  std::vector<task> tasks(10);
  const auto stacks = std::unique_ptr<stack[]>(new stack[10]{});
  for (std::size_t i = 0; i < 10; ++i) {
    queue.push_new(&tasks[i]);
    queue.push(&stacks[i]);
  }
  EXPECT_EQ(queue.size(), 20u);
  EXPECT_EQ(queue.pop(true, any).start, &tasks[0]);
  EXPECT_EQ(queue.pop(false, any).resume, &stacks[0]);
  for (std::size_t i = 1; i < 10; ++i) EXPECT_EQ(queue.pop(false, any).resume, &stacks[i]);
  for (std::size_t i = 1; i < 10; ++i) EXPECT_EQ(queue.pop(false, any).start, &tasks[i]);
  EXPECT_EQ(queue.size(), 0u);
  // Again, after it became empty.
  queue.push_new(&tasks[3]);
  EXPECT_EQ(queue.pop(false, any).start, &tasks[3]);
  EXPECT_FALSE(queue.pop(false, any));
}

TEST(injectors, leave_refused_stacks_in_place) {
  injector queue;
  const auto stacks = std::unique_ptr<stack[]>(new stack[6]{});
  for (std::uint32_t i = 0; i < 6; ++i) {
    queue.push(&stacks[i]);
  }
  const auto odd = [&](const stack& s) { return (&s - stacks.get()) % 2 == 1; };
  const auto none = [](const stack&) { return false; };
  EXPECT_FALSE(queue.pop(false, none));
  EXPECT_EQ(queue.pop(false, odd).resume, &stacks[1]);
  EXPECT_EQ(queue.pop(false, odd).resume, &stacks[3]);
  EXPECT_EQ(queue.pop(false, odd).resume, &stacks[5]);  // the last: the next push must not be linked to it
  EXPECT_FALSE(queue.pop(false, odd));
  queue.push(&stacks[5]);
  for (const std::uint32_t i : {0u, 2u, 4u, 5u}) EXPECT_EQ(queue.pop(false, any).resume, &stacks[i]);
  EXPECT_EQ(queue.size(), 0u);
  queue.push(&stacks[0]);
  EXPECT_EQ(queue.pop(false, [](const stack&) { return true; }).resume, &stacks[0]);
}

TEST(injectors, lose_and_double_nothing) {
  injector queue;
  const auto n =
      static_cast<std::size_t>(scaled(20'000));  // refused stacks are passed over one by one, so not too many
  const auto tasks = std::make_unique<task[]>(n);
  const auto stacks = std::unique_ptr<stack[]>(new stack[n]{});
  const auto seen = std::make_unique<std::atomic<std::uint8_t>[]>(2 * n);
  std::atomic<std::size_t> left{2 * n};
  std::vector<std::thread> threads;
  for (std::size_t producer = 0; producer < 2; ++producer)
    threads.emplace_back([&, producer] {
      for (std::size_t i = producer; i < n; i += 2) {
        queue.push_new(&tasks[i]);
        queue.push(&stacks[i]);
      }
    });
  for (int consumer = 0; consumer < 3; ++consumer)
    threads.emplace_back([&, consumer] {
      const auto wanted = [&](const stack& s) { return consumer == 0 || (&s - stacks.get()) % 3 != 0; };
      for (bool tasks_first = false; left.load(std::memory_order_relaxed) != 0; tasks_first = !tasks_first) {
        const injector::item item = queue.pop(tasks_first, wanted);
        if (!item) {
          ::sched_yield();
          continue;
        }
        const std::size_t number = item.start != nullptr ? static_cast<std::size_t>(item.start - tasks.get())
                                                         : n + static_cast<std::size_t>(item.resume - stacks.get());
        seen[number].fetch_add(1, std::memory_order_relaxed);
        left.fetch_sub(1, std::memory_order_relaxed);
      }
    });
  for (std::thread& t : threads) t.join();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 2 * n; ++i) wrong += seen[i].load() != 1 ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace ramie::detail
