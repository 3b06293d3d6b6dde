// Results in the order in which they come, each once, whatever the children do.
#include <ramie/future/join_set.hpp>

#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/sync/event.hpp>
#include <ramie/sync/testing.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace sync_tests;

class join_sets : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, join_sets, settings(), ::testing::PrintToStringParamName());

TEST_P(join_sets, give_results_in_the_order_of_their_ends) {
  in_runtime([] {
    std::vector<event> go(5);
    join_set<int> set;
    EXPECT_EQ(set.next(), std::nullopt) << "there is no child";
    for (int i = 0; i < 5; ++i)
      set.spawn(fiber_options{}, [&go, i] {
        go[static_cast<std::size_t>(i)].wait();
        return i;
      });
    EXPECT_EQ(set.size(), 5u);
    for (const int i : {3, 0, 4, 1, 2}) {
      go[static_cast<std::size_t>(i)].set();
      EXPECT_EQ(set.next(), i);
    }
    EXPECT_TRUE(set.empty());
    EXPECT_EQ(set.next(), std::nullopt);
    set.spawn([] { return 7; });
    EXPECT_EQ(set.next(), 7) << "it can be used again";
  });
}

TEST_P(join_sets, have_children_of_all_kinds) {
  in_runtime([] {
    join_set<std::string> set;
    set.spawn([](std::string s, int n) { return s + std::to_string(n); }, "a", 1);
    set.spawn([moved = std::make_unique<int>(2)] { return std::to_string(*moved); });
    set.spawn(fiber_options{.name = "named"}, [] { return std::string{this_fiber::name()}; });
    std::vector<std::string> all;
    while (auto next = set.next()) all.push_back(*next);
    std::ranges::sort(all);
    EXPECT_EQ(all, (std::vector<std::string>{"2", "a1", "named"}));

    join_set<std::unique_ptr<int>> moved;
    moved.spawn([] { return std::make_unique<int>(3); });
    EXPECT_EQ(**moved.next(), 3);

    std::atomic<int> ran{0};
    join_set<void> nothing;
    nothing.spawn([&] { ++ran; });
    nothing.spawn([&] { return ++ran; });
    EXPECT_TRUE(nothing.next());
    EXPECT_TRUE(nothing.next());
    EXPECT_FALSE(nothing.next());
    EXPECT_EQ(ran, 2);
  });
}

TEST_P(join_sets, pass_on_failures_one_by_one) {
  in_runtime([] {
    join_set<int> set;
    set.spawn([]() -> int { throw std::runtime_error{"first"}; });
    set.spawn([] { return 1; });
    set.spawn([]() -> int { throw std::logic_error{"second"}; });
    int results = 0, failures = 0;
    for (bool more = true; more;) try {
        more = set.next().has_value();
        results += more ? 1 : 0;
      } catch (const std::exception&) {
        ++failures;
      }
    EXPECT_EQ(results, 1);
    EXPECT_EQ(failures, 2);

    join_set<int> stopped;
    stopped.spawn([]() -> int { throw cancelled{}; });
    EXPECT_THROW(static_cast<void>(stopped.next()), child_cancelled);
    EXPECT_EQ(stopped.next(), std::nullopt);
  });
}

TEST_P(join_sets, take_children_of_children) {
  in_runtime([] {
    join_set<int> set;
    struct tree {
      join_set<int>& in;
      int operator()(int depth) const {
        if (depth > 0)
          for (int i = 0; i < 2; ++i) in.spawn(*this, depth - 1);
        return 1;
      }
    };
    set.spawn(tree{set}, 5);
    int sum = 0;
    while (auto one = set.next()) sum += *one;
    EXPECT_EQ(sum, 63);
  });
}

TEST_P(join_sets, can_be_cancelled) {
  in_runtime([] {
    join_set<int> set;
    for (int i = 0; i < 4; ++i)
      set.spawn(fiber_options{}, [i] {
        if (i != 2) this_fiber::sleep_for(1h);
        return i;
      });
    EXPECT_EQ(set.next(), 2) << "the first";
    set.cancel();
    set.spawn([] { return 9; });
    EXPECT_EQ(set.next(), std::nullopt) << "children that were stopped, or dropped, give no result";
    EXPECT_TRUE(set.empty());
  });
}

TEST_P(join_sets, stop_the_rest_at_their_end) {
  in_runtime([] {
    counted::reset();
    std::atomic<int> begun{0}, ended{0};
    {
      join_set<counted> set;
      for (int i = 0; i < 3; ++i)
        set.spawn(fiber_options{}, [&, i] {
          struct at_end {
            std::atomic<int>& ended;
            ~at_end() { ++ended; }
          } const count{ended};
          ++begun;
          if (i == 1) this_fiber::sleep_for(1h);
          return counted{};
        });
      EXPECT_TRUE(set.next());
      await([&] { return begun == 3; });
    }
    EXPECT_EQ(ended, 3);
    EXPECT_EQ(counted::alive, 0);
  });
}

TEST_P(join_sets, end_with_what_ends_their_owner) {
  in_runtime([] {
    std::atomic<int> begun{0}, cut_off{0};
    const auto wait = [&] {
      ++begun;
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        ++cut_off;
        throw;
      }
      return 1;
    };
    EXPECT_THROW(with_timeout(1ms,
                              [&] {
                                join_set<int> set;
                                set.spawn(fiber_options{}, wait);
                                set.spawn(fiber_options{}, wait);
                                await([&] { return begun == 2; });
                                while (set.next()) {
                                }
                              }),
                 timeout_error);
    EXPECT_EQ(cut_off, 2);
    std::optional<int> none;
    EXPECT_THROW(with_timeout(1ms,
                              [&] {
                                for (;;) {
                                  join_set<int> set;
                                  set.spawn([] { return 1; });
                                  none = set.next();
                                }
                              }),
                 timeout_error)
        << "also if there is always one";
  });
}

TEST_P(join_sets, lose_nothing_under_load) {
  in_runtime([] {
    for (int round = rounds(200); round > 0; --round) {
      join_set<int> set;
      std::vector<int> got;
      for (int i = 0; i < 40; ++i) {
        if (i % 3 == 0) set.spawn(fiber_options{}, [i] { return i; });
        else
          set.spawn([i] {
            if (i % 3 == 1) this_fiber::yield();
            return i;
          });
        if (i % 4 == 0) got.push_back(*set.next());
      }
      while (auto next = set.next()) got.push_back(*next);
      std::ranges::sort(got);
      std::vector<int> all(40);
      std::iota(all.begin(), all.end(), 0);
      ASSERT_EQ(got, all);
    }
  });
}

TEST(join_set_of_a_plain_thread, runs_its_children_at_once) {
  join_set<int> set;
  set.spawn([] { return 1; });
  set.spawn([] { return 2; });
  EXPECT_EQ(set.next(), 1);
  EXPECT_EQ(set.next(), 2);
  EXPECT_EQ(set.next(), std::nullopt);
}

}  // namespace
}  // namespace ramie
