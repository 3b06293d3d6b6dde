// Which victims a thief tries, on made-up machines.
#include <ramie/worker/victims.hpp>

#include <ramie/machine/topology_testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace ramie::detail {
namespace {

using testing::made_up;

struct machine {
  topology map;
  std::uint32_t workers;
  [[nodiscard]] cpu_place place_of(std::uint32_t i) const { return map.at(static_cast<int>(i % map.cpus())); }

  /// In the order in which worker `self` tries them.
  std::vector<std::uint32_t> tried_by(std::uint32_t self, std::uint64_t seed = 1) const {
    victim_order order;
    order.reserve(workers);
    order.arrange(map, place_of(self), self, workers, [&](std::uint32_t i) { return place_of(i); });
    random_source random{seed};
    std::vector<std::uint32_t> tried;
    EXPECT_FALSE(order.try_all(random, [&](std::uint32_t number) {
      tried.push_back(number);
      return false;
    }));
    return tried;
  }
};

constexpr made_up machines[] = {{.nodes = 2, .caches = 8, .cores = 8},  // 2 sockets x 64 cores
                                {.nodes = 2, .caches = 8, .cores = 8, .threads = 2},
                                {.nodes = 1, .cores = 8},
                                {.cores = 2, .threads = 2},
                                {.nodes = 4, .cores = 2, .threads = 2},
                                {.nodes = 3, .caches = 5, .cores = 3}};

TEST(victims, are_all_the_others_nearest_first) {
  for (const made_up& made : machines) {
    machine m{made, 0};
    SCOPED_TRACE(m.map.cpus());
    m.workers = static_cast<std::uint32_t>(m.map.cpus());
    for (std::uint32_t self = 0; self < m.workers; ++self) {
      const auto tried = m.tried_by(self);
      ASSERT_EQ(tried.size(), m.workers - 1);
      ASSERT_EQ(std::set<std::uint32_t>(tried.begin(), tried.end()).size(), tried.size());
      ASSERT_EQ(std::count(tried.begin(), tried.end(), self), 0);
      ASSERT_TRUE(std::is_sorted(tried.begin(), tried.end(), [&](std::uint32_t a, std::uint32_t b) {
        return m.map.level(m.place_of(self), m.place_of(a)) < m.map.level(m.place_of(self), m.place_of(b));
      }));
    }
  }
}

TEST(victims, begin_anywhere_in_a_ring) {
  const machine m{made_up{.nodes = 2, .caches = 4, .cores = 8}, 64};
  std::set<std::uint32_t> first, first_of_node, first_of_all;
  for (std::uint64_t seed = 1; seed < 2000; ++seed) {
    const auto tried = m.tried_by(0, seed * 0x9e3779b97f4a7c15u);
    first.insert(tried[0]);
    first_of_node.insert(tried[7]);
    first_of_all.insert(tried[31]);
  }
  EXPECT_EQ(first.size(), 7u);
  EXPECT_EQ(first_of_node.size(), 24u);
  EXPECT_EQ(first_of_all.size(), 32u);
}

TEST(victims, may_share_cpus_or_be_nowhere) {
  const machine crowded{made_up{.cores = 2, .threads = 2}, 9};
  EXPECT_EQ(crowded.tried_by(0).size(), 8u);
  EXPECT_LT(crowded.tried_by(0)[2], 9u);

  const topology map = made_up{.nodes = 2, .cores = 2};
  victim_order order;
  order.reserve(4);
  random_source random{7};
  std::vector<std::uint32_t> tried;
  order.arrange(map, map.at(0), 0, 4,
                [&](std::uint32_t i) { return i == 1 ? cpu_place{} : map.at(static_cast<int>(i)); });
  order.try_all(random, [&](std::uint32_t number) {
    tried.push_back(number);
    return false;
  });
  ASSERT_EQ(tried.size(), 3u);
  EXPECT_EQ(tried.back(), 1u);  // a worker that has not begun has nothing either
}

TEST(victims, are_left_alone_once_something_was_found) {
  const topology map = made_up{.nodes = 2, .cores = 2};
  victim_order order;
  order.reserve(4);
  random_source random{7};
  order.arrange(map, map.at(2), 2, 4, [&](std::uint32_t i) { return map.at(static_cast<int>(i)); });
  EXPECT_EQ(order.try_all(random, [](std::uint32_t number) { return number == 3 ? 33 : number == 0 ? 30 : 0; }), 33);
  order.arrange(map, map.at(0), 0, 1, [&](std::uint32_t) { return map.at(0); });
  EXPECT_EQ(order.try_all(random, [](std::uint32_t) { return 1; }), 0);
}

}  // namespace
}  // namespace ramie::detail
