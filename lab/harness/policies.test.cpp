// The lab's own placements: everything runs, in the order and on the workers that they promise.
#include <lab/harness/policies.hpp>

#include <lab/harness/runtime_facts.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

namespace ramie::lab {
namespace {

class policies : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  static runtime_options options() {
    runtime_options o;
    o.workers = std::get<1>(GetParam());
    EXPECT_TRUE(set_placement(o, std::get<0>(GetParam())));
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(all, policies,
                         ::testing::Combine(::testing::Values("shared_queue", "round_robin"),
                                            ::testing::Values(1, 2, 3, 8)));

TEST_P(policies, run_fibers_channels_and_forks) {
  runtime rt{options()};
  rt.run([] {
    channel<int> numbers{4}, squares;
    std::vector<join_handle<void>> all;
    all.push_back(spawn([&] {
      for (int i = 0; i < 2000; ++i) static_cast<void>(numbers.send(i));
      numbers.close();
    }));
    for (int i = 0; i < 3; ++i)
      all.push_back(spawn([&] {
        for (const int n : numbers) static_cast<void>(squares.send(n % 7));
      }));
    long sum = 0;
    for (int i = 0; i < 2000; ++i) sum += squares.recv().value_or(0);
    long expected = 0;
    for (int i = 0; i < 2000; ++i) expected += i % 7;
    EXPECT_EQ(sum, expected);
    for (auto& f : all) f.join();
    auto [a, b] = fork_join([] { return 1; }, [] { return 2; });
    EXPECT_EQ(a + b, 3);
  });
}

TEST_P(policies, let_yielding_fibers_take_turns) {
  runtime rt{options()};
  rt.run([] {
    std::atomic<int> running{0};
    std::vector<join_handle<void>> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(spawn([&] {
        running.fetch_add(1);
        while (running.load() < 5) this_fiber::yield();
      }));
    for (auto& f : all) f.join();
  });
}

TEST_P(policies, receive_each_element_once_by_many_selects) {
  // Selects that wait on several channels at once compete for the same elements: each refused claim yields, so the
  // fiber that is yielded to must run.
  runtime rt{options()};
  constexpr int senders = 8, each = 200;
  rt.run([] {
    std::vector<channel<int>> channels(4);
    std::vector<int> seen(senders * each);
    std::atomic<int> left{senders * each};
    std::vector<join_handle<void>> all;
    for (int s = 0; s < senders; ++s)
      all.push_back(spawn([&, s] {
        for (int i = 0; i < each; ++i) {
          const int element = s * each + i;
          const auto nothing = [](channel_status) {};
          select(on_send(channels[static_cast<std::size_t>(element) % 4], element, nothing),
                 on_send(channels[static_cast<std::size_t>(element + 1) % 4], element, nothing));
        }
      }));
    for (int r = 0; r < senders; ++r)
      all.push_back(spawn([&] {
        const auto take = [&](std::optional<int> n) {
          if (!n) return;
          ++seen[static_cast<std::size_t>(*n)];
          if (left.fetch_sub(1) == 1)
            for (auto& c : channels) c.close();
        };
        while (left.load() > 0)
          select(on_recv(channels[0], take), on_recv(channels[1], take), on_recv(channels[2], take),
                 on_recv(channels[3], take));
      }));
    for (auto& f : all) f.join();
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), senders * each);
  });
}

TEST_P(policies, wake_workers_that_sleep) {
  // Each round begins with all workers asleep, or about to be.
  runtime rt{options()};
  for (int round = 0; round < 200; ++round) {
    auto first = rt.spawn([] { this_fiber::yield(); });
    auto second = rt.spawn([] { this_fiber::yield(); });
    second.join();
    first.join();
  }
}

TEST(shared_queues, are_first_in_first_out) {
  runtime_options o{.workers = 1, .spare_workers = 0};
  ASSERT_TRUE(set_placement(o, "shared_queue"));
  runtime rt{o};
  rt.run([] {
    std::vector<int> order;
    std::vector<join_handle<void>> all;
    for (int i = 0; i < 50; ++i) all.push_back(spawn([&order, i] { order.push_back(i); }));
    for (auto& f : all) f.join();
    EXPECT_EQ(order.size(), 50u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  });
}

TEST(round_robins, deal_to_each_worker_in_turn) {
  runtime_options o{.workers = 3, .spare_workers = 0};
  ASSERT_TRUE(set_placement(o, "round_robin"));
  runtime rt{o};
  std::vector<std::thread::id> ran_on;
  for (int i = 0; i < 6; ++i) ran_on.push_back(rt.spawn([] { return std::this_thread::get_id(); }).join());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ran_on[i], ran_on[i + 3]);
    EXPECT_NE(ran_on[i], ran_on[(i + 1) % 3]);
  }
}

TEST(round_robins, have_nothing_for_spare_workers) {
  round_robin dealt{2};
  EXPECT_FALSE(dealt.has_work(2));
  EXPECT_FALSE(dealt.take(2));
}

}  // namespace
}  // namespace ramie::lab
