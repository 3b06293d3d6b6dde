// Mutexes whose favourites change (sync/mutex.cpp, F1 to E4): a worker that is the favourite of two, and two workers
// that are in turn that of one, while a plain thread comes.
#include "programs.hpp"

#include <ramie/ramie.hpp>
#include <ramie/sync/mutex.hpp>

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

namespace ramie::interleave {
namespace {

/// Each of the two has its own count.
struct counted {
  mutex lock;
  int count = 0;
};

void count_up(counted& c) {
  const std::lock_guard guard{c.lock};
  ++c.count;
}

void be_the_favourite_of_two() {
  counted a;
  counted b;
  constexpr int n = 12;
  runtime rt{workers(1)};
  auto fiber = rt.spawn([&] {
    for (int i = 0; i < n; ++i) {
      count_up(a);
      count_up(b);
    }
  });
  {
    simulated_thread outside{[&] {
      for (int i = 0; i < 2; ++i) {
        wait_a_little();
        count_up(i == 0 ? a : b);
      }
    }};
  }
  fiber.join();
  check(a.count == n + 1 && b.count == n + 1, "two were inside at once");
}
TEST(a_favourite, of_two_mutexes_leaves_both) {
  expect_sound("the favourite of two", {.seeds = 4000, .steps_most = 40'000}, be_the_favourite_of_two);
}

void be_the_favourite_in_turn() {
  counted c;
  constexpr int bursts = 3;
  constexpr int n = 4;
  int tried = 0;
  runtime rt{workers(2)};
  std::vector<join_handle<void>> fibers;
  for (int i = 0; i < 2; ++i)
    fibers.push_back(rt.spawn([&c] {
      for (int burst = 0; burst < bursts; ++burst) {
        for (int k = 0; k < n; ++k) count_up(c);
        if (pick(2) == 0) detail::os_sleep(200 * pick(10));
      }
    }));
  {
    simulated_thread outside{[&] {
      for (int i = 0; i < 8; ++i) {
        if (!c.lock.try_lock()) continue;
        ++c.count;
        ++tried;
        c.lock.unlock();
      }
    }};
  }
  for (auto& f : fibers) f.join();
  check(c.count == 2 * bursts * n + tried, "two were inside at once");
}
TEST(a_favourite, in_turn_with_another_is_told_apart) {
  expect_sound("favourites in turn", {.seeds = 4000, .steps_most = 40'000}, be_the_favourite_in_turn);
}

}  // namespace
}  // namespace ramie::interleave
