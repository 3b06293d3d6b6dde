#include <ramie/parallel/blocks.hpp>
#include <ramie/parallel/extremes.hpp>
#include <ramie/parallel/find.hpp>
#include <ramie/parallel/for_each.hpp>
#include <ramie/parallel/histogram.hpp>
#include <ramie/parallel/reduce.hpp>

#include <ramie/parallel/testing.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace parallel_tests;
using parallel::index_range;

class elements : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, elements, few_and_many());

TEST_P(elements, for_each_calls_for_each_once) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      std::vector<int> calls(n);  // a second call at the same time would be a race
      EXPECT_EQ(parallel::for_each(calls, [](int& c) { ++c; }), calls.end());
      ASSERT_EQ(std::count(calls.begin(), calls.end(), 1), static_cast<std::ptrdiff_t>(n));
      parallel::for_each(std::views::iota(std::size_t{0}, n), [&](std::size_t i) { ++calls[i]; });
      ASSERT_EQ(std::count(calls.begin(), calls.end(), 2), static_cast<std::ptrdiff_t>(n));
      std::deque<std::pair<int, int>> pairs(n);
      parallel::for_each(pairs, [](int& second) { second = 5; }, &std::pair<int, int>::second);
      ASSERT_TRUE(std::ranges::all_of(pairs, [](const auto& p) { return p.second == 5 && p.first == 0; }));
    }
  });
}

TEST_P(elements, for_each_hands_out_chunks) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      std::vector<int> calls(n);
      std::atomic<std::size_t> chunks{0};
      parallel::for_each(calls, [&](std::span<int> part) {
        EXPECT_FALSE(part.empty());
        ++chunks;
        for (int& c : part) ++c;
      });
      ASSERT_EQ(std::count(calls.begin(), calls.end(), 1), static_cast<std::ptrdiff_t>(n));
      EXPECT_LE(chunks, n);
      parallel::for_each(calls, [](parallel::chunk_of<std::vector<int>&> part) {
        for (int& c : part) ++c;
      });
      ASSERT_EQ(std::count(calls.begin(), calls.end(), 2), static_cast<std::ptrdiff_t>(n));
    }
  });
}

TEST_P(elements, transform_as_std) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      const std::vector<int> v = random_ints(n, 1000);
      std::vector<long> out(n, -1);
      const auto ends = parallel::transform(v, out.begin(), [](long x) { return 3 * x; }, [](int x) { return x + 1; });
      EXPECT_EQ(ends.in, v.end());
      EXPECT_EQ(ends.out, out.end());
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], 3L * (v[i] + 1));
      const std::vector<int> shorter(n / 2, 1);
      std::vector<int> sums(n / 2);
      const auto both = parallel::transform(v, shorter, sums.begin(), std::plus<>{});
      EXPECT_EQ(both.in1, v.begin() + static_cast<std::ptrdiff_t>(n / 2));
      EXPECT_EQ(both.in2, shorter.end());
      EXPECT_EQ(both.out, sums.end());
      for (std::size_t i = 0; i < n / 2; ++i) ASSERT_EQ(sums[i], v[i] + 1);
      std::vector<int> self = v;
      parallel::transform(self, self.begin(), std::negate<>{});
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(self[i], -v[i]);
    }
  });
}

TEST_P(elements, invoke_calls_all) {
  in_runtime([] {
    std::vector<int> marks(100);
    std::vector<std::function<void()>> functions;
    functions.reserve(marks.size());
    for (int& m : marks) functions.emplace_back([&m] { ++m; });
    parallel::invoke(functions);
    EXPECT_EQ(std::count(marks.begin(), marks.end(), 1), 100);
    parallel::invoke(std::vector<std::function<void()>>{});
  });
}

TEST_P(elements, reduce_in_order_of_any_size) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      const std::vector<int> v = random_ints(n, 1000);
      EXPECT_EQ(parallel::reduce(v), std::accumulate(v.begin(), v.end(), 0));
      EXPECT_EQ(parallel::reduce(v, 10L), std::accumulate(v.begin(), v.end(), 10L));
      EXPECT_EQ(parallel::reduce(v, 0L, std::plus<>{}, [](int x) { return 2L * x; }),
                std::accumulate(v.begin(), v.end(), 0L) * 2);
      EXPECT_EQ(parallel::reduce(parallel::deterministic, v, 10L), std::accumulate(v.begin(), v.end(), 10L));
      EXPECT_EQ(parallel::count_if(v, [](int x) { return x % 3 == 0; }),
                std::count_if(v.begin(), v.end(), [](int x) { return x % 3 == 0; }));
      EXPECT_EQ(parallel::count(v, 5), std::count(v.begin(), v.end(), 5));
      if (n > 5000) continue;
      std::vector<std::string> letters(n);
      for (std::size_t i = 0; i < n; ++i) letters[i] = static_cast<char>('a' + v[i] % 26);
      const std::string expected = std::accumulate(letters.begin(), letters.end(), std::string{">"});
      EXPECT_EQ(parallel::reduce(letters, std::string{">"}), expected);
      EXPECT_EQ(parallel::reduce(parallel::deterministic, letters, std::string{">"}), expected);
    }
  });
}

TEST_P(elements, transform_reduce_by_chunks_and_of_what_can_only_be_moved) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      const std::vector<int> v = random_ints(n, 1000);
      const long sum = std::accumulate(v.begin(), v.end(), 0L);
      const auto of_chunk = [](std::span<const int> part) { return std::accumulate(part.begin(), part.end(), 0L); };
      EXPECT_EQ(parallel::transform_reduce(v, 1L, std::plus<>{}, of_chunk), sum + 1);
      EXPECT_EQ(parallel::transform_reduce(parallel::deterministic, v, 1L, std::plus<>{}, of_chunk), sum + 1);
      using box = std::unique_ptr<long>;
      const auto add = [](box a, box b) {
        *a += *b;
        return a;
      };
      const auto boxed = [](int x) { return std::make_unique<long>(x); };
      EXPECT_EQ(*parallel::transform_reduce(v, boxed(1), add, boxed), sum + 1);
      EXPECT_EQ(*parallel::transform_reduce(parallel::deterministic, v, boxed(1), add, boxed), sum + 1);
    }
  });
}

TEST_P(elements, transform_reduce_of_two_ranges_as_std) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      const std::vector<int> v = random_ints(n, 1000);
      const std::vector<long> w(n / 2 + 1, 3);
      const std::size_t both = std::min(v.size(), w.size());
      const auto end = v.begin() + static_cast<std::ptrdiff_t>(both);
      EXPECT_EQ(parallel::transform_reduce(v, w, 5L), std::inner_product(v.begin(), end, w.begin(), 5L));
      EXPECT_EQ(parallel::transform_reduce(w, v, 5L), std::inner_product(v.begin(), end, w.begin(), 5L));
      if (n > 1025) continue;
      const auto letter = [](int a, long b) { return std::string(1, static_cast<char>('a' + (a + b) % 26)); };
      EXPECT_EQ(parallel::transform_reduce(v, w, std::string{">"}, std::plus<>{}, letter),
                std::inner_product(v.begin(), end, w.begin(), std::string{">"}, std::plus<>{}, letter));
    }
  });
}

TEST(deterministic_reductions, give_the_same_bits_for_any_number_of_workers) {
  for (const std::size_t n : sizes()) {
    std::vector<double> v(n);
    for (std::size_t i = 0; i < n; ++i)
      v[i] = std::sin(static_cast<double>(i)) * std::exp2(static_cast<double>(i % 60));
    const double on_thread = parallel::reduce(parallel::deterministic, v, 0.0);
    for (const int workers : {1, 2, 3, 8}) {
      runtime_options options;
      options.workers = workers;
      runtime rt{options};
      for (int round = 0; round < 5; ++round) {
        const double sum = rt.run([&] {
          return parallel::reduce(parallel::deterministic, v, 0.0, std::plus<>{}, [&](double x) {
            if (round == 1 && x < 0 && n < 2000) this_fiber::yield();
            return x;
          });
        });
        ASSERT_EQ(std::bit_cast<std::uint64_t>(sum), std::bit_cast<std::uint64_t>(on_thread)) << n << " on " << workers;
      }
    }
  }
}

TEST_P(elements, extremes_as_std) {
  in_runtime([] {
    for_inputs([](const std::vector<int>& v) {
      ASSERT_EQ(parallel::min_element(v), std::ranges::min_element(v)) << v.size();
      ASSERT_EQ(parallel::max_element(v), std::ranges::max_element(v)) << v.size();
      const auto found = parallel::minmax_element(v);
      const auto expected = std::ranges::minmax_element(v);
      ASSERT_EQ(found.min, expected.min) << v.size();
      ASSERT_EQ(found.max, expected.max) << v.size();
      const auto tens = [](int x) { return x / 10; };
      ASSERT_EQ(parallel::min_element(v, std::ranges::greater{}, tens),
                std::ranges::min_element(v, std::ranges::greater{}, tens));
      ASSERT_EQ(parallel::max_element(v, std::ranges::greater{}, tens),
                std::ranges::max_element(v, std::ranges::greater{}, tens));
    });
  });
}

TEST_P(elements, searches_as_std) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      std::vector<int> v(n);
      for (const std::size_t at : {std::size_t{0}, std::size_t{1}, n / 3, n - 1, n}) {
        if (at < n) v[at] = 7;
        if (at < n / 2) v[n - 1] = 7;
        ASSERT_EQ(parallel::find(v, 7), std::ranges::find(v, 7)) << n << " " << at;
        ASSERT_EQ(parallel::find_if(v, [](int x) { return x > 6; }), std::ranges::find(v, 7));
        ASSERT_EQ(parallel::find_if_not(
                      v, [](int x) { return x == 1; }, [](int x) { return x - 6; }),
                  std::ranges::find_if_not(v, [](int x) { return x == 1; }, [](int x) { return x - 6; }));
        const bool has = std::ranges::find(v, 7) != v.end();
        ASSERT_EQ(parallel::any_of(v, [](int x) { return x == 7; }), has);
        ASSERT_EQ(parallel::none_of(v, [](int x) { return x == 7; }), !has);
        ASSERT_EQ(parallel::all_of(v, [](int x) { return x == 0; }), !has);
        std::fill(v.begin(), v.end(), 0);
      }
    }
  });
}

TEST_P(elements, searches_end_early) {
  in_runtime([] {
    const std::vector<int> v(static_cast<std::size_t>(scaled(10'000'000)), 1);
    std::atomic<std::size_t> calls{0};
    // At once: all matches at the beginning, while other workers wait for their first chunk.
    EXPECT_EQ(parallel::find_if(v,
                                [&](int x) {
                                  calls.fetch_add(1, std::memory_order_relaxed);
                                  return x == 1;
                                }),
              v.begin());
    EXPECT_LT(calls, v.size());
  });
}

TEST_P(elements, histograms_count_all) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      const std::vector<int> v = random_ints(n, 1000);
      std::vector<unsigned> expected(100, 3);
      std::vector<unsigned> bins = expected;  // added to what is there
      for (const int x : v) ++expected[static_cast<std::size_t>(x / 10)];
      parallel::histogram(v, bins, [](int x) { return x / 10; });
      ASSERT_EQ(bins, expected) << n;
      if (n < 1000) continue;
      EXPECT_EQ(message_of<invalid_argument>([&] { parallel::histogram(v, bins, [](int) { return 100; }); }),
                "ramie: parallel::histogram: an element is of bin 100, and there are 100");
    }
  });
}

TEST_P(elements, blocks_are_the_grid) {
  in_runtime([] {
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{100}, std::size_t{2500}}) {
      std::vector<int> line(n);
      parallel::for_blocks(n, [&](index_range all) {
        for (const std::size_t i : all) ++line[i];
      });
      ASSERT_EQ(std::count(line.begin(), line.end(), 1), static_cast<std::ptrdiff_t>(n));
      for (const std::size_t m : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{64}}) {
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
          std::vector<int> cells(n * m);
          parallel::for_blocks(n, m,
                               [&](index_range rows, index_range columns) {
                                 EXPECT_FALSE(rows.size() == 0 || columns.size() == 0);
                                 EXPECT_TRUE(side == 0 || (rows.size() <= side && columns.size() <= side));
                                 for (const std::size_t r : rows)
                                   for (const std::size_t c : columns) ++cells[r * m + c];
                               },
                               {side, side});
          ASSERT_EQ(std::count(cells.begin(), cells.end(), 1), static_cast<std::ptrdiff_t>(n * m));
        }
        if (n > 100) continue;
        std::vector<int> cube(n * m * 3);
        parallel::for_blocks(n, m, 3, [&](index_range planes, index_range rows, index_range columns) {
          for (const std::size_t p : planes)
            for (const std::size_t r : rows)
              for (const std::size_t c : columns) ++cube[(p * m + r) * 3 + c];
        });
        ASSERT_EQ(std::count(cube.begin(), cube.end(), 1), static_cast<std::ptrdiff_t>(n * m * 3));
      }
    }
  });
}

}  // namespace
}  // namespace ramie
