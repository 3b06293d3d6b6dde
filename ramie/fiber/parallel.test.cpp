#include <ramie/fiber/parallel.hpp>

#include <ramie/fiber/testing.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class loops : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, loops, few_and_many());

TEST_P(loops, call_for_each_index_once) {
  in_runtime([] {
    for (const int n : {1, 2, 3, 15, 16, 17, 1000, scaled(300'000)}) {
      for (const std::size_t grain :
           {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{1} << 40}) {
        std::vector<std::atomic<int>> calls(static_cast<std::size_t>(n));
        parallel_for(
            0, n, [&](int i) { calls[static_cast<std::size_t>(i)].fetch_add(1, std::memory_order_relaxed); }, grain);
        for (auto& c : calls) ASSERT_EQ(c, 1) << n << " by " << grain;
      }
    }
  });
}

TEST_P(loops, nothing_for_empty_and_backward_ranges) {
  in_runtime([] {
    const auto never = [](auto) { ADD_FAILURE() << "called"; };
    parallel_for(0, 0, never);
    parallel_for(5, 5, never);
    parallel_for(5, -5, never);
    parallel_for(5u, 4u, never);
    parallel_for(std::numeric_limits<long>::max(), std::numeric_limits<long>::min(), never);
    std::vector<int> none;
    parallel_for(none.begin(), none.end(), never);
    std::vector<int> some(3);
    parallel_for(some.end(), some.begin(), never);
    EXPECT_EQ(parallel_reduce(none.begin(), none.end(), 42, std::plus<>{}), 42);
    EXPECT_EQ(parallel_reduce(some.end(), some.begin(), 42, std::plus<>{}), 42);
  });
}

template <class Int>
void sums_up(Int begin, Int end) {
  std::atomic<std::uint64_t> sum{0};  // may wrap
  std::atomic<std::int64_t> calls{0};
  parallel_for(begin, end, [&](Int i) {
    sum += static_cast<std::uint64_t>(i);
    if (++calls > 1'000'000) throw std::logic_error{"without end"};
  });
  std::uint64_t expected = 0;
  for (auto i = static_cast<std::int64_t>(begin); i < static_cast<std::int64_t>(end); ++i)
    expected += static_cast<std::uint64_t>(i);
  EXPECT_EQ(sum, expected) << sizeof(Int) << " bytes";
  EXPECT_EQ(calls, static_cast<std::int64_t>(end) - static_cast<std::int64_t>(begin)) << sizeof(Int) << " bytes";
}

TEST_P(loops, over_all_integers) {
  in_runtime([] {
    sums_up<int>(-1000, 1000);
    sums_up<unsigned>(10, 2000);
    sums_up<long>(-1000, 1000);
    sums_up<std::size_t>(0, 1000);
    sums_up<int>(std::numeric_limits<int>::max() - 100, std::numeric_limits<int>::max());
    sums_up<int>(std::numeric_limits<int>::min(), std::numeric_limits<int>::min() + 100);
    sums_up<long>(std::numeric_limits<long>::max() - 1000, std::numeric_limits<long>::max());
  });
}

// Arithmetic on these is done in int.
TEST_P(loops, over_small_integers) {
  in_runtime([] {
    sums_up<short>(-1000, 1000);
    sums_up<signed char>(-128, 127);
    sums_up<unsigned char>(0, 255);
    sums_up<unsigned short>(0, 65535);
    sums_up<short>(-32768, 32767);
  });
}

TEST_P(loops, over_iterators) {
  in_runtime([] {
    std::vector<int> v(static_cast<std::size_t>(scaled(100'000)), 1);
    parallel_for(v.begin(), v.end(), [](int& x) { x = 7; });
    EXPECT_EQ(std::count(v.begin(), v.end(), 7), static_cast<std::ptrdiff_t>(v.size()));
    std::deque<long> d(1000, 2);
    parallel_for(d.begin(), d.end(), [](long& x) { x *= 2; });
    EXPECT_EQ(parallel_reduce(d.cbegin(), d.cend(), 0L, std::plus<>{}), 4000);
    int plain[] = {1, 2, 3};
    EXPECT_EQ(parallel_reduce(plain, plain + 3, 10, std::plus<>{}), 16);
    EXPECT_EQ(parallel_reduce(v.rbegin(), v.rend(), 0L, std::plus<>{}), 7L * static_cast<long>(v.size()));
  });
}

TEST_P(loops, bodies_may_suspend) {
  in_runtime([] {
    std::atomic<int> ran{0};
    parallel_for(0, 500, [&](int i) {
      if (i % 7 == 0) this_fiber::yield();
      if (i % 50 == 0) this_fiber::sleep_for(1us);
      if (i % 31 == 0) spawn([&] { this_fiber::yield(); }).join();
      ++ran;
    });
    EXPECT_EQ(ran, 500);
    const std::vector<int> ones(500, 1);
    EXPECT_EQ(parallel_reduce(
                  ones.begin(), ones.end(), 0,
                  [](int a, int b) {
                    if ((a + b) % 3 == 0) this_fiber::yield();
                    return a + b;
                  },
                  [](int x) {
                    this_fiber::yield();
                    return x;
                  }),
              500);
  });
}

TEST_P(loops, bodies_may_be_loops) {
  in_runtime([] {
    std::atomic<int> ran{0};
    parallel_for(0, 30, [&](int) {
      parallel_for(0, 30, [&](int) { parallel_for(0, 10, [&](int) { ran.fetch_add(1, std::memory_order_relaxed); }); });
    });
    EXPECT_EQ(ran, 9000);
  });
}

TEST_P(loops, one_element_may_wait_for_all_later_ones) {
  in_runtime([] {
    for (int round = 0; round < scaled(100); ++round) {
      std::atomic<int> later{0};
      event all;
      // With a grain of 1 the rest is offered before an element runs, unless something is on offer already.
      parallel_for(0, 2, [&](int i) {
        if (i == 0) {
          all.wait();
        } else if (++later == 1) {
          all.set();
        }
      });
      EXPECT_EQ(later, 1);
    }
  });
}

TEST_P(loops, an_exception_comes_out_when_all_that_began_has_ended) {
  in_runtime([] {
    for (const int bad : {0, 1, 500, 998, 999}) {
      std::atomic<int> inside{0};
      std::atomic<int> ran{0};
      EXPECT_EQ(message_of<std::runtime_error>([&] {
                  parallel_for(0, 1000, [&](int i) {
                    ++inside;
                    if (i % 10 == 0) this_fiber::yield();
                    ++ran;
                    --inside;
                    if (i == bad) throw std::runtime_error{"bad"};
                  });
                }),
                "bad");
      EXPECT_EQ(inside, 0);
      EXPECT_LE(ran, 1000);
    }
    const std::vector<int> v(1000, 1);
    const auto fail = [](int a, int b) -> int { return a + b > 500 ? throw std::runtime_error{"sum"} : a + b; };
    EXPECT_EQ(message_of<std::runtime_error>([&] { static_cast<void>(parallel_reduce(v.begin(), v.end(), 0, fail)); }),
              "sum");
    const auto bad_map = [](int) -> int { throw std::runtime_error{"map"}; };
    EXPECT_EQ(message_of<std::runtime_error>(
                  [&] { static_cast<void>(parallel_reduce(v.begin(), v.begin() + 1, 0, std::plus<>{}, bad_map)); }),
              "map");
  });
}

// Reductions.

TEST_P(loops, reduce_in_order) {
  in_runtime([] {
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{100}, std::size_t{3000}}) {
      std::vector<std::string> letters;
      std::string expected = ">";
      for (std::size_t i = 0; i < n; ++i) {
        letters.emplace_back(1, static_cast<char>('a' + i % 26));
        expected += letters.back();
      }
      EXPECT_EQ(parallel_reduce(letters.begin(), letters.end(), std::string{">"}, std::plus<>{}), expected);
      for (const std::size_t grain : {std::size_t{1}, std::size_t{7}, std::size_t{10'000}})
        EXPECT_EQ(parallel_reduce(
                      letters.begin(), letters.end(), std::string{">"}, std::plus<>{},
                      [](const std::string& s) {
                        if (s == "e") this_fiber::yield();
                        return s;
                      },
                      grain),
                  expected);
    }
  });
}

TEST_P(loops, reduce_with_another_type) {
  in_runtime([] {
    std::vector<int> v(static_cast<std::size_t>(scaled(1'000'000)));
    std::iota(v.begin(), v.end(), 1);
    const auto n = static_cast<long>(v.size());
    EXPECT_EQ(parallel_reduce(v.begin(), v.end(), 0L, std::plus<>{}), n * (n + 1) / 2);
    EXPECT_EQ(parallel_reduce(v.begin(), v.end(), 0.0, std::plus<>{}, [](int x) { return x * 0.5; }),
              static_cast<double>(n * (n + 1) / 2) * 0.5);
    EXPECT_EQ(parallel_reduce(v.begin(), v.end(), 0, [](int a, int b) { return std::max(a, b); }), static_cast<int>(n));
  });
}

TEST_P(loops, reduce_what_can_only_be_moved) {
  using boxed = std::unique_ptr<long>;
  in_runtime([] {
    std::vector<int> v(1000);
    std::iota(v.begin(), v.end(), 0);
    const auto add = [](boxed a, boxed b) {
      *a += *b;
      return a;
    };
    const auto box = [](int x) { return std::make_unique<long>(x); };
    EXPECT_EQ(*parallel_reduce(v.begin(), v.end(), std::make_unique<long>(5), add, box), 499'505);
    EXPECT_EQ(*parallel_reduce(v.begin(), v.begin(), std::make_unique<long>(5), add, box), 5);
  });
}

TEST(loops_on_a_plain_thread, are_plain_loops) {
  std::vector<int> seen;
  parallel_for(0, 100, [&](int i) { seen.push_back(i); });
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(parallel_reduce(seen.begin(), seen.end(), 0, std::plus<>{}), 4950);
  EXPECT_THROW(parallel_for(0, 100,
                            [](int i) {
                              if (i == 50) throw 1;
                            }),
               int);
}

}  // namespace
}  // namespace ramie
