#include <ramie/task/strands.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

/// Strands, each on a stack of its own, below one that is none.
class family {
 public:
  family() = default;
  family(const family&) = delete;
  family& operator=(const family&) = delete;
  ~family() {
    for (member& m : members_) unlink_strand(m.link);
  }

  /// Of the top, or of another strand.
  std::size_t add() { return add_to(top_, nullptr); }
  std::size_t add(std::size_t parent) { return add_to(members_[parent].place, &members_[parent].link); }
  void end(std::size_t i) { unlink_strand(members_[i].link); }

  [[nodiscard]] const stack& top() const { return top_; }
  [[nodiscard]] const stack& at(std::size_t i) const { return members_[i].place; }
  [[nodiscard]] std::size_t size() const { return members_.size(); }

 private:
  struct member {
    stack place{};
    strand_link link;
  };
  std::size_t add_to(const stack& of, strand_link* up) {
    member& m = members_.emplace_back();
    link_strand(m.link, of, up, m.place);
    return members_.size() - 1;
  }

  stack top_{};
  std::deque<member> members_;
};

/// How often a walk comes to each stack.
std::map<const stack*, int> visited(const stack& top) {
  std::map<const stack*, int> seen;
  visit_strands(
      top,
      [](void* to, stack& s) {
        ++(*static_cast<std::map<const stack*, int>*>(to))[&s];
        return true;
      },
      &seen);
  return seen;
}

TEST(strands, are_all_visited_once_however_many) {
  for (const std::size_t n : {0, 1, 2, 600, 5000}) {
    std::deque<family> others(200);
    for (family& f : others) {
      f.add();
      f.add();
    }
    family own;
    for (std::size_t i = 0; i < n; ++i) own.add();
    const auto seen = visited(own.top());
    EXPECT_EQ(seen.size(), n);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(seen.contains(&own.at(i)) ? seen.at(&own.at(i)) : 0, 1) << i;
    for (const family& other : others) EXPECT_EQ(visited(other.top()).size(), 2u);
  }
}

TEST(strands, that_have_ended_are_not_visited) {
  family own;
  for (int i = 0; i < 600; ++i) own.add();
  for (std::size_t i = 0; i < own.size(); i += 2) own.end(i);
  const auto seen = visited(own.top());
  EXPECT_EQ(seen.size(), 300u);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(seen.contains(&own.at(i)), i % 2 == 1) << i;
}

/// Also deeper than a walk that calls itself could go on a fiber's stack.
TEST(strands, are_visited_with_all_below_them) {
  std::mt19937 choices{1};
  for (const std::size_t n : {10, 1000, 100'000}) {
    for (const bool in_a_row : {false, true}) {
      family own;
      std::vector<std::size_t> parents{0};
      own.add();
      while (own.size() < n) {
        parents.push_back(in_a_row ? own.size() - 1 : choices() % own.size());
        own.add(parents.back());
      }
      const auto all = visited(own.top());
      EXPECT_EQ(all.size(), n);
      for (const auto& [place, times] : all) EXPECT_EQ(times, 1);
      // Below one of them: those whose parents lead to it.
      const std::size_t one = n / 3;
      std::vector<bool> below(n);
      std::size_t expected = 0;
      for (std::size_t i = one + 1; i < n; ++i) {
        below[i] = parents[i] == one || below[parents[i]];
        expected += below[i] ? 1 : 0;
      }
      const auto some = visited(own.at(one));
      EXPECT_EQ(some.size(), expected);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(some.contains(&own.at(i)), below[i]) << i;
    }
  }
}

TEST(strands, below_one_are_left_out_if_the_visit_says_so) {
  family own;
  const std::size_t first = own.add(), second = own.add();
  own.add(own.add(first));
  own.add(second);
  struct looked_for {
    const stack* not_below;
    std::map<const stack*, int> seen;
  } of{&own.at(first), {}};
  visit_strands(
      own.top(),
      [](void* to, stack& s) {
        auto& l = *static_cast<looked_for*>(to);
        ++l.seen[&s];
        return &s != l.not_below;
      },
      &of);
  EXPECT_EQ(of.seen.size(), 3u);  // the two, and the one below the second
  EXPECT_EQ(visited(own.top()).size(), 5u);
}

/// The first, one in the middle and the last; also of the only one.
TEST(strands, end_in_any_order) {
  for (const std::size_t n : {1, 2, 5}) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    do {
      family own, other;
      other.add();
      for (std::size_t i = 0; i < n; ++i) own.add();
      for (std::size_t i = 0; i < n; ++i) {
        own.end(order[i]);
        EXPECT_EQ(visited(own.top()).size(), n - i - 1);
        EXPECT_EQ(visited(other.top()).size(), 1u);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

/// Parents whose stacks lie as far apart as the table is large share a bucket.
TEST(strands, of_parents_in_one_bucket_are_kept_apart) {
  constexpr std::size_t apart = std::size_t{1} << 16;
  const std::unique_ptr<stack[]> stacks{new stack[2 * apart + 1]};
  ASSERT_EQ(&family_bucket_of(stacks[0]), &family_bucket_of(stacks[apart]));
  std::deque<strand_link> links(9);
  std::deque<stack> places(9);
  for (std::size_t i = 0; i < 9; ++i) link_strand(links[i], stacks[i % 3 * apart], nullptr, places[i]);
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t p = 0; p < 3; ++p) {
      const auto seen = visited(stacks[p * apart]);
      EXPECT_EQ(seen.size(), 3 - (i + 2 - p) / 3);
      for (std::size_t k = i; k < 9; ++k) EXPECT_EQ(seen.contains(&places[k]), k % 3 == p);
    }
    unlink_strand(links[i]);
  }
}

TEST(strands, do_not_end_while_a_walk_looks_at_them) {
  struct looking {
    std::atomic<bool> here{false}, go_on{false}, ended{false};
  } look;
  stack top{}, place{};
  strand_link link;
  link_strand(link, top, nullptr, place);
  std::thread walk{[&] {
    visit_strands(
        top,
        [](void* to, stack&) {
          auto& l = *static_cast<looking*>(to);
          l.here = true;
          while (!l.go_on) std::this_thread::yield();
          EXPECT_FALSE(l.ended);
          return true;
        },
        &look);
  }};
  while (!look.here) std::this_thread::yield();
  std::thread end{[&] {
    unlink_strand(link);
    look.ended = true;
  }};
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  look.go_on = true;
  walk.join();
  end.join();
  EXPECT_TRUE(visited(top).empty());
}

/// Strands come and go while others walk; what was there before and stays is always found.
TEST(strands, that_stay_are_found_while_others_come_and_go) {
  family staying;
  for (int i = 0; i < 20; ++i) staying.add();
  for (std::size_t i = 0; i < 20; ++i) staying.add(i);
  std::atomic<bool> over{false};
  std::deque<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      stack one{}, two{};
      strand_link upper, lower;
      while (!over) {
        link_strand(upper, staying.top(), nullptr, one);
        link_strand(lower, one, &upper, two);
        unlink_strand(lower);
        unlink_strand(upper);
      }
    });
  for (int i = 0; i < 2000; ++i) {
    const auto seen = visited(staying.top());
    for (std::size_t k = 0; k < staying.size(); ++k) EXPECT_TRUE(seen.contains(&staying.at(k)));
  }
  over = true;
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace ramie::detail
