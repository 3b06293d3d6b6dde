#include <ramie/parallel/pipeline.hpp>

#include <ramie/base/error.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/parallel/testing.hpp>

#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace parallel_tests;
using parallel::ordered;
using parallel::pipeline;
using parallel::serial;

class pipelines : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, pipelines, few_and_many());

/// 0 to n - 1.
auto numbers(int n) {
  return [n, next = 0]() mutable { return next < n ? std::optional{next++} : std::nullopt; };
}

TEST_P(pipelines, pass_all_items_through_all_stages) {
  in_runtime([] {
    for (const std::size_t limit : {1, 2, 3, 16, 200}) {
      for (const int n : {0, 1, 2, 15, 16, 17, scaled(5000)}) {
        std::vector<std::string> out;
        pipeline(
            limit, numbers(n),
            [](int x) {
              if (x % 7 == 0) this_fiber::yield();
              return 2 * x;
            },
            serial{[](int x) { return std::make_unique<int>(x); }},  // what can only be moved
            [](std::unique_ptr<int> x) { return std::to_string(*x); },
            ordered{[&](std::string text) { out.push_back(std::move(text)); }});
        ASSERT_EQ(out.size(), static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], std::to_string(2 * i));
      }
    }
  });
}

TEST_P(pipelines, keep_the_order_over_several_ordered_stages) {
  in_runtime([] {
    std::vector<int> first;
    std::vector<int> second;
    const int n = scaled(3000);
    pipeline(
        5, numbers(n),
        [](int x) {
          for (int i = x % 5; i > 0; --i) this_fiber::yield();
          return x;
        },
        ordered{[&](int x) {
          first.push_back(x);
          if (x % 3 == 0) this_fiber::yield();
          return x;
        }},
        [](int x) {
          for (int i = x % 4; i > 0; --i) this_fiber::yield();
          return x;
        },
        ordered{[&](int x) { second.push_back(x); }});
    std::vector<int> expected(static_cast<std::size_t>(n));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(first, expected);
    EXPECT_EQ(second, expected);
  });
}

TEST_P(pipelines, have_no_more_under_way_than_the_limit) {
  in_runtime([] {
    for (const int limit : {1, 3, 8}) {
      std::atomic<int> under_way{0};
      std::atomic<int> most{0};
      std::atomic<int> at_once{0};
      pipeline(
          static_cast<std::size_t>(limit),
          [&, source = numbers(scaled(2000))]() mutable {
            auto item = source();
            if (item.has_value()) {
              const int now = ++under_way;
              if (now > most) most = now;  // the source is called by one at a time
            }
            return item;
          },
          [](int x) {
            this_fiber::yield();
            return x;
          },
          serial{[&](int x) {
            EXPECT_EQ(++at_once, 1);
            this_fiber::yield();
            --at_once;
            return x;
          }},
          [&](int) { --under_way; });
      EXPECT_EQ(under_way, 0);
      EXPECT_LE(most, limit);
      EXPECT_GE(most, 1);
    }
  });
}

// Each item waits until as many as may be are under way.
TEST_P(pipelines, have_as_many_under_way_as_the_limit) {
  in_runtime([] {
    constexpr int limit = 20;
    std::atomic<int> waiting{0};
    event all;
    pipeline(limit, numbers(limit), [&](int) {
      if (++waiting == limit) all.set();
      all.wait();
    });
    EXPECT_EQ(waiting, limit);
  });
}

TEST_P(pipelines, rethrow_the_first_failure_of_any_part) {
  in_runtime([] {
    for (const int part : {0, 1, 2, 3}) {
      event never;
      const auto fail_in = [part](int here, int x) {
        if (part == here && x == 50) throw std::runtime_error{"part " + std::to_string(here)};
        return x;
      };
      EXPECT_EQ(message_of<std::runtime_error>([&] {
                  pipeline(
                      4,
                      [&, source = numbers(1000)]() mutable {
                        auto item = source();
                        if (item.has_value()) fail_in(0, *item);
                        return item;
                      },
                      [&](int x) {
                        if (x == 49) never.wait();  // until another one fails
                        return fail_in(1, x);
                      },
                      serial{[&](int x) { return fail_in(2, x); }}, [&](int x) { fail_in(3, x); });
                }),
                "part " + std::to_string(part));
    }
  });
}

TEST_P(pipelines, end_at_a_deadline) {
  in_runtime([] {
    event never;
    EXPECT_THROW(with_timeout(1ms,
                              [&] {
                                pipeline(
                                    4, numbers(1000), [&](int x) { return x == 20 ? never.wait(), x : x; },
                                    ordered{[](int) {}});
                              }),
                 timeout_error);
    // Without a wait: the source asks.
    EXPECT_THROW(with_timeout(1ms, [&] { pipeline(2, [] { return std::optional{1}; }, [](int) {}); }), timeout_error);
  });
}

TEST(pipelines_on_a_plain_thread, are_loops) {
  std::vector<int> out;
  pipeline(3, numbers(100), serial{[](int x) { return x; }}, ordered{[&](int x) { out.push_back(x); }});
  EXPECT_EQ(out.size(), 100u);
  EXPECT_EQ(message_of<invalid_argument>([] { pipeline(0, numbers(1), [](int) {}); }),
            "ramie: parallel::pipeline: limit is 0, and must be at least 1");
  EXPECT_THROW(pipeline(3, numbers(100), [](int x) { x == 50 ? throw std::logic_error{"bad"} : void(); }),
               std::logic_error);
}

}  // namespace
}  // namespace ramie
