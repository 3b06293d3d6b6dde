// Computes.
#include <ramie/parallel/compact.hpp>
#include <ramie/parallel/merge.hpp>
#include <ramie/parallel/partition.hpp>
#include <ramie/parallel/scan.hpp>
#include <ramie/parallel/sort.hpp>
#include <ramie/parallel/stable_sort.hpp>

#include <ramie/parallel/testing.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace parallel_tests;

class ordering : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, ordering, few_and_many());

struct card {
  int value;
  std::size_t place;
  bool operator==(const card&) const = default;
};

std::vector<card> cards(const std::vector<int>& values) {
  std::vector<card> all;
  all.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) all.push_back({values[i], i});
  return all;
}

TEST_P(ordering, sort_as_std) {
  in_runtime([] {
    for_inputs([](std::vector<int> v) {
      std::vector<int> expected = v;
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(parallel::sort(v), v.end());
      ASSERT_EQ(v, expected) << v.size();
      parallel::sort(v, std::greater<>{});
      std::reverse(expected.begin(), expected.end());
      ASSERT_EQ(v, expected) << v.size();
    });
  });
}

TEST_P(ordering, sort_by_projection_what_is_large_and_what_can_only_be_moved) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      const std::vector<int> values = random_ints(n, 2000);
      std::vector<std::string> texts;
      std::deque<std::unique_ptr<int>> boxes;
      for (const int v : values) {
        texts.push_back("a text that does not fit into the string itself " + std::to_string(v));
        boxes.push_back(std::make_unique<int>(v));
      }
      std::vector<std::string> expected = texts;
      std::sort(expected.begin(), expected.end());
      parallel::sort(texts);
      ASSERT_EQ(texts, expected) << n;

      const auto value = [](const std::unique_ptr<int>& b) { return *b; };
      parallel::sort(boxes, {}, value);
      ASSERT_TRUE(std::ranges::is_sorted(boxes, {}, value)) << n;
      parallel::stable_sort(boxes, std::ranges::greater{}, value);
      ASSERT_TRUE(std::ranges::is_sorted(boxes, std::ranges::greater{}, value)) << n;

      std::vector<card> all = cards(values);
      parallel::sort(all, {}, &card::value);
      ASSERT_TRUE(std::ranges::is_sorted(all, {}, &card::value)) << n;
      parallel::sort(all, {}, &card::place);
      ASSERT_EQ(all, cards(values)) << n;
    }
  });
}

TEST_P(ordering, stable_sort_as_std) {
  in_runtime([] {
    for_inputs([](const std::vector<int>& v) {
      std::vector<card> all = cards(v);
      std::vector<card> expected = all;
      std::ranges::stable_sort(expected, {}, &card::value);
      parallel::stable_sort(all, {}, &card::value);
      ASSERT_EQ(all, expected) << v.size();
    });
  });
}

TEST_P(ordering, merge_as_std) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      for (const std::size_t m : {std::size_t{0}, std::size_t{1}, n / 3, n}) {
        for (const int kinds : {2, 100, 1'000'000}) {
          std::vector<card> a = cards(random_ints(n, kinds));
          std::vector<card> b = cards(random_ints(m, kinds));
          for (card& c : b) c.place += 1'000'000'000;
          std::ranges::stable_sort(a, {}, &card::value);
          std::ranges::stable_sort(b, {}, &card::value);
          std::vector<card> merged(n + m);
          std::vector<card> expected(n + m);
          std::ranges::merge(a, b, expected.begin(), {}, &card::value, &card::value);
          const auto ends = parallel::merge(a, b, merged.begin(), {}, &card::value, &card::value);
          ASSERT_EQ(merged, expected) << n << " and " << m;
          EXPECT_EQ(ends.in1, a.end());
          EXPECT_EQ(ends.in2, b.end());
          EXPECT_EQ(ends.out, merged.end());
        }
      }
    }
  });
}

TEST_P(ordering, partition_keeps_all_elements) {
  in_runtime([] {
    for_inputs([](std::vector<int> v) {
      for (const int border : {-1, 0, 1, 500, 1'000'000'000}) {
        const auto is_low = [border](int x) { return x <= border; };
        std::vector<int> before = v;
        const auto rest = parallel::partition(v, is_low);
        ASSERT_EQ(rest.begin() - v.begin(), std::count_if(v.begin(), v.end(), is_low)) << v.size();
        ASSERT_TRUE(std::all_of(v.begin(), rest.begin(), is_low)) << v.size();
        ASSERT_TRUE(std::none_of(rest.begin(), v.end(), is_low)) << v.size();
        std::vector<int> after = v;
        std::sort(before.begin(), before.end());
        std::sort(after.begin(), after.end());
        ASSERT_EQ(before, after) << v.size();
      }
      std::vector<std::unique_ptr<int>> boxes;
      boxes.reserve(v.size());
      for (const int x : v) boxes.push_back(std::make_unique<int>(x));
      const auto rest = parallel::partition(boxes, [](int x) { return x % 2 == 0; }, [](const auto& b) { return *b; });
      ASSERT_TRUE(std::none_of(rest.begin(), rest.end(), [](const auto& b) { return *b % 2 == 0; }));
      ASSERT_EQ(rest.begin() - boxes.begin(), std::count_if(v.begin(), v.end(), [](int x) { return x % 2 == 0; }));
    });
  });
}

TEST_P(ordering, copy_if_as_std_with_one_call_for_each_element) {
  in_runtime([] {
    for_inputs([](const std::vector<int>& v) {
      for (const int divisor : {1, 2, 7, 1'000'000'007}) {
        std::vector<int> expected;
        std::copy_if(v.begin(), v.end(), std::back_inserter(expected), [=](int x) { return x % divisor == 0; });
        std::atomic<std::size_t> calls{0};
        std::vector<int> copies(expected.size());  // not one more: nothing is written past the end
        const auto end = parallel::copy_if(v, copies.begin(), [&](int x) {
          calls.fetch_add(1, std::memory_order_relaxed);
          return x % divisor == 0;
        });
        ASSERT_EQ(copies, expected) << v.size();
        EXPECT_EQ(end.in, v.end());
        EXPECT_EQ(end.out, copies.end());
        EXPECT_EQ(calls, v.size());
      }
    });
  });
}

TEST_P(ordering, unique_as_std) {
  in_runtime([] {
    for_inputs([](const std::vector<int>& v) {
      for (const int width : {1, 10, 1'000'000}) {
        const auto bucket = [=](int x) { return x / width; };
        std::vector<int> expected = v;
        expected.erase(std::ranges::unique(expected, {}, bucket).begin(), expected.end());
        std::vector<int> once = v;
        const auto rest = parallel::unique(once, {}, bucket);
        ASSERT_EQ(rest.end(), once.end());
        once.erase(rest.begin(), rest.end());
        ASSERT_EQ(once, expected) << v.size();
      }
      std::vector<std::unique_ptr<int>> boxes;
      boxes.reserve(v.size());
      for (const int x : v) boxes.push_back(std::make_unique<int>(x));
      const auto rest = parallel::unique(boxes, {}, [](const auto& b) { return *b; });
      std::vector<int> expected = v;
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      ASSERT_TRUE(std::equal(boxes.begin(), rest.begin(), expected.begin(), expected.end(),
                             [](const auto& b, int x) { return *b == x; }));
    });
  });
}

TEST_P(ordering, scans_as_std) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      const std::vector<int> v = random_ints(n, 1000);
      std::vector<long> expected(n);
      std::vector<long> sums(n);
      const std::vector<long> wide(v.begin(), v.end());
      std::inclusive_scan(wide.begin(), wide.end(), expected.begin());
      EXPECT_EQ(parallel::inclusive_scan(wide, sums.begin()), sums.end());
      ASSERT_EQ(sums, expected) << n;
      std::inclusive_scan(v.begin(), v.end(), expected.begin(), std::plus<>{}, 5L);
      parallel::inclusive_scan(v, sums.begin(), std::plus<>{}, 5L);
      ASSERT_EQ(sums, expected) << n;
      std::exclusive_scan(v.begin(), v.end(), expected.begin(), 7L);
      EXPECT_EQ(parallel::exclusive_scan(v, sums.begin(), 7L), sums.end());
      ASSERT_EQ(sums, expected) << n;

      std::vector<long> in_place = wide;  // the output is the input
      std::exclusive_scan(wide.begin(), wide.end(), expected.begin(), 0L,
                          [](long a, long b) { return std::max(a, b); });
      parallel::exclusive_scan(in_place, in_place.begin(), 0L, [](long a, long b) { return std::max(a, b); });
      ASSERT_EQ(in_place, expected) << n;
    }
  });
}

TEST_P(ordering, scans_of_projected_elements_go_through_a_view) {
  in_runtime([] {
    for (const std::size_t n : sizes()) {
      const std::vector<card> all = cards(random_ints(n, 1000));
      const auto value = [](const card& c) -> long { return c.value; };
      std::vector<long> expected(n);
      std::vector<long> sums(n);
      std::transform_inclusive_scan(all.begin(), all.end(), expected.begin(), std::plus<>{}, value);
      parallel::inclusive_scan(std::views::transform(all, value), sums.begin());
      ASSERT_EQ(sums, expected) << n;
      std::transform_exclusive_scan(all.begin(), all.end(), expected.begin(), 3L, std::plus<>{}, value);
      parallel::exclusive_scan(std::views::transform(all, value), sums.begin(), 3L);
      ASSERT_EQ(sums, expected) << n;
    }
  });
}

TEST_P(ordering, scans_keep_the_order_of_operands) {
  in_runtime([] {
    std::vector<std::string> letters;
    letters.reserve(500);
    for (int i = 0; i < 500; ++i) letters.emplace_back(1, static_cast<char>('a' + i % 26));
    std::vector<std::string> expected(letters.size());
    std::vector<std::string> joined(letters.size());
    std::partial_sum(letters.begin(), letters.end(), expected.begin());
    parallel::inclusive_scan(letters, joined.begin());
    EXPECT_EQ(joined, expected);
    std::exclusive_scan(letters.begin(), letters.end(), expected.begin(), std::string{">"});
    parallel::exclusive_scan(letters, joined.begin(), std::string{">"});
    EXPECT_EQ(joined, expected);
  });
}

}  // namespace
}  // namespace ramie
