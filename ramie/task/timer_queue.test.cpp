// Timers fire in order, once, and not at all after they were cancelled.
#include <ramie/task/timer_queue.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::scaled;

/// A waiter without a thread: a descriptor of a plain thread's kind that is armed and never sleeps.
struct dummy {
  stack descriptor{};
  timer_node node;

  void arm() {
    const std::uint32_t epoch = descriptor.wait_word.load() >> wait_word::epoch_shift;
    descriptor.wait_word.store(epoch << wait_word::epoch_shift | wait_word::armed);
    node = {};
    node.waiter = waiter_ref{&descriptor, epoch};
  }
  [[nodiscard]] bool fired() const {
    const std::uint32_t word = descriptor.wait_word.load();
    return (word & wait_word::state_mask) == wait_word::running &&
           (word >> wait_word::reason_shift & wait_word::reason_mask) ==
               static_cast<std::uint32_t>(wake_reason::timeout);
  }
};

TEST(timers, none) {
  timer_queue queue;
  EXPECT_EQ(queue.next_ns(), timer_queue::never);
  EXPECT_EQ(queue.fire(timer_queue::never - 1), 0u);
}

TEST(timers, fire_when_due_and_not_before) {
  timer_queue queue;
  dummy d;
  d.arm();
  queue.add(d.node, 100);
  EXPECT_EQ(queue.next_ns(), 100);
  EXPECT_EQ(queue.fire(99), 0u);
  EXPECT_FALSE(d.fired());
  EXPECT_EQ(queue.fire(100), 1u);
  EXPECT_TRUE(d.fired());
  EXPECT_EQ(queue.next_ns(), timer_queue::never);
  EXPECT_FALSE(queue.remove(d.node));
}

TEST(timers, cancelled_do_not_fire) {
  timer_queue queue;
  dummy d;
  d.arm();
  queue.add(d.node, 100);
  EXPECT_TRUE(queue.remove(d.node));
  EXPECT_FALSE(queue.remove(d.node));
  EXPECT_EQ(queue.next_ns(), timer_queue::never);
  EXPECT_EQ(queue.fire(1000), 0u);
  EXPECT_FALSE(d.fired());
}

TEST(timers, of_extreme_deadlines) {
  timer_queue queue;
  dummy past, now, far;
  for (dummy* d : {&past, &now, &far}) d->arm();
  queue.add(far.node, timer_queue::never - 1);
  queue.add(past.node, std::numeric_limits<std::int64_t>::min());
  queue.add(now.node, 0);
  EXPECT_EQ(queue.next_ns(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(queue.fire(0), 2u);
  EXPECT_EQ(queue.next_ns(), timer_queue::never - 1);
  EXPECT_TRUE(queue.remove(far.node));
}

TEST(timers, follow_a_model) {
  timer_queue queue;
  std::mt19937_64 random{17};
  std::deque<dummy> all(2000);
  std::multimap<std::int64_t, dummy*> model;
  std::map<dummy*, std::multimap<std::int64_t, dummy*>::iterator> waiting;
  std::int64_t now = 0;
  for (int step = 0; step < scaled(1'000'000); ++step) {
    dummy& d = all[random() % all.size()];
    const auto place = waiting.find(&d);
    if (place == waiting.end()) {
      // Many share a deadline.
      const std::int64_t deadline = now + static_cast<std::int64_t>(random() % 500);
      d.arm();
      queue.add(d.node, deadline);
      waiting[&d] = model.emplace(deadline, &d);
    } else if (random() % 2 == 0) {
      ASSERT_TRUE(queue.remove(d.node));
      ASSERT_FALSE(d.fired());
      model.erase(place->second);
      waiting.erase(place);
    }
    if (random() % 50 == 0) {
      now += static_cast<std::int64_t>(random() % 40);
      std::size_t due = 0;
      std::vector<dummy*> expected;
      while (!model.empty() && model.begin()->first <= now) {
        expected.push_back(model.begin()->second);
        waiting.erase(model.begin()->second);
        model.erase(model.begin());
        ++due;
      }
      ASSERT_EQ(queue.fire(now), due);
      for (const dummy* e : expected) {
        ASSERT_TRUE(e->fired());
      }
    }
    ASSERT_EQ(queue.next_ns(), model.empty() ? timer_queue::never : model.begin()->first);
  }
}

TEST(timers, a_million) {
  timer_queue queue;
  const auto n = static_cast<std::size_t>(scaled(1'000'000));
  const auto all = std::make_unique<dummy[]>(n);
  std::mt19937_64 random{19};
  std::vector<std::int64_t> deadlines(n);
  for (std::size_t i = 0; i < n; ++i) {
    all[i].arm();
    deadlines[i] = static_cast<std::int64_t>(random() % 1'000'000'000);
    queue.add(all[i].node, deadlines[i]);
  }
  // Every third is cancelled, out of order.
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i < n; i += 3) {
    ASSERT_TRUE(queue.remove(all[(i * 7919) % n].node) || true);
    ++cancelled;
  }
  cancelled = 0;
  for (std::size_t i = 0; i < n; ++i) cancelled += all[i].node.place == timer_node::absent ? 1 : 0;
  std::size_t fired = 0;
  for (std::int64_t now = 0; queue.next_ns() != timer_queue::never; now += 10'000'000) {
    fired += queue.fire(now);
    ASSERT_GT(queue.next_ns(), now);
  }
  EXPECT_EQ(fired + cancelled, n);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < n; ++i) seen += all[i].fired() ? 1 : 0;
  EXPECT_EQ(seen, fired);
}

TEST(timers, fire_in_the_order_of_their_deadlines) {
  // Seen from a clock that advances by one at a time.
  timer_queue queue;
  std::deque<dummy> all(1000);
  std::mt19937 random{23};
  std::vector<std::int64_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].arm();
    queue.add(all[i].node, order[i]);
  }
  for (std::int64_t now = 0; now < static_cast<std::int64_t>(all.size()); ++now) {
    ASSERT_EQ(queue.next_ns(), now);
    ASSERT_EQ(queue.fire(now), 1u);
    for (std::size_t i = 0; i < all.size(); i += 97) ASSERT_EQ(all[i].fired(), order[i] <= now);
  }
}

TEST(timers, added_removed_and_fired_at_once) {
  // Each timer either fires or is removed, never both and never neither.
  timer_queue queue;
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> fired{0};
  std::vector<std::thread> firers;
  for (int i = 0; i < 2; ++i)
    firers.emplace_back([&] {
      while (!over.load(std::memory_order_acquire)) {
        fired.fetch_add(queue.fire(1'000), std::memory_order_relaxed);
        ::sched_yield();
      }
    });
  std::atomic<std::uint64_t> removed{0};
  std::atomic<std::uint64_t> seen{0};
  const int rounds = scaled(200'000);
  std::vector<std::thread> adders;
  std::deque<dummy>
      dummies[2];  // outlive the firers, as stack descriptors do: a waker reads one once more after its claim
  for (std::size_t i = 0; i < 2; ++i)
    adders.emplace_back([&, i] {
      std::mt19937 random{static_cast<unsigned>(i)};
      std::deque<dummy>& mine = dummies[i];
      mine.resize(16);
      for (int round = 0; round < rounds; ++round) {
        for (dummy& d : mine) {
          d.arm();
          queue.add(d.node, static_cast<std::int64_t>(random() % 2'000));  // half of them are never due
        }
        for (dummy& d : mine) {
          if (queue.remove(d.node)) {
            removed.fetch_add(1, std::memory_order_relaxed);
            continue;
          }
          // Out of the queue: its wake-up is under way.
          testing::hold_until([&] { return d.fired(); });
          seen.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  for (std::thread& t : adders) t.join();
  over.store(true, std::memory_order_release);
  for (std::thread& t : firers) t.join();
  EXPECT_EQ(seen.load(), fired.load());
  EXPECT_EQ(removed.load() + seen.load(), 2u * 16u * static_cast<unsigned>(rounds));
  EXPECT_EQ(queue.next_ns(), timer_queue::never);
}

TEST(timers, of_fibers_wake_them) {
  scheduler runtime{testing::with_workers(2)};
  constexpr std::size_t fibers = 2000;
  std::atomic<int> early{0};
  testing::run_on(runtime, [&] {
    testing::countdown ended{fibers};
    for (std::size_t i = 0; i < fibers; ++i)
      testing::start_here([&, i] {
        const auto begin = steady::now();
        const auto time = std::chrono::microseconds{(i * 37) % 20'000};
        testing::sleep_for(time);
        if (steady::now() - begin < time) early.fetch_add(1);
        ended.down();
      });
    ended.await();
  });
  EXPECT_EQ(early.load(), 0);
  runtime.stop();
}

}  // namespace
}  // namespace ramie::detail
