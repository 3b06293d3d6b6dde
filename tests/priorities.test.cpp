// The policy of examples/priorities.cpp, as a user's own policy: urgent fibers run first, and none starves.
#include <examples/priorities/levels.hpp>
#include <ramie/actor/actor.hpp>
#include <ramie/channel/channel.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/sync/latch.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ramie {
namespace {

using priorities::levels;

#if RAMIE_TSAN || RAMIE_ASAN
constexpr int rounds = 20;
#else
constexpr int rounds = 200;
#endif

/// Without spare workers: with one worker, no other runs anything, however long its thread gets no processor.
runtime_options by_levels(int workers) {
  return {.workers = workers, .policy = std::make_shared<levels>(), .spare_workers = 0};
}

fiber_options at(int priority) { return {.priority = priority}; }

TEST(priorities_of_fibers, decide_the_order) {
  runtime rt{by_levels(1)};
  rt.run([] {
    std::string order;
    std::vector<join_handle<void>> all;
    int number = 0;
    // Other numbers than those of levels count as the nearest one.
    for (const int priority : {0, 1, 2, -7, 1000, 1}) {
      all.push_back(spawn(at(priority), [&order, n = number++] { order += static_cast<char>('a' + n); }));
    }
    for (auto& f : all) f.join();
    EXPECT_EQ(order, "cebfad");
  });
}

TEST(priorities_of_actors, decide_the_order) {
  struct word {
    char letter;
  };
  struct writer : actor<writer> {
    explicit writer(std::string& to) : text{to} {}
    void on(word w) { text += w.letter; }
    std::string& text;
  };
  runtime rt{by_levels(1)};
  rt.run([] {
    std::string order;
    std::vector<actor_ref<writer>> all;
    for (const int priority : {0, 2, 1}) all.push_back(spawn_actor<writer>(actor_options{.priority = priority}, order));
    for (std::size_t i = 0; i < all.size(); ++i) all[i].tell(word{static_cast<char>('a' + i)});
    for (auto& a : all) {
      a.stop();
      a.join();
    }
    EXPECT_EQ(order, "bca");
  });
}

/// `hogs` fibers at `level` that yield until `over`, and count.
std::vector<join_handle<void>> busy(int hogs, int level, const std::atomic<bool>& over, std::atomic<long>& turns) {
  std::vector<join_handle<void>> all;
  for (int i = 0; i < hogs; ++i)
    all.push_back(spawn(at(level), [&] {
      while (!over) {
        turns.fetch_add(1);
        this_fiber::yield();
      }
    }));
  return all;
}

TEST(priorities_of_fibers, starve_nobody) {
  // The bound stated in levels.hpp, with one worker, where all turns can be counted.
  for (const int level : {priorities::background, priorities::normal}) {
    runtime rt{by_levels(1)};
    rt.run([&] {
      std::atomic<bool> over{false};
      std::atomic<long> turns{0};
      auto above = busy(3, priorities::urgent, over, turns);
      constexpr int patient = 5;
      long longest = 0;
      latch all_done{patient};
      for (int i = 0; i < patient; ++i)
        spawn(at(level), [&] {
          for (int n = 0; n < rounds; ++n) {
            const long before = turns.load();
            this_fiber::yield();
            longest = std::max(longest, turns.load() - before);
          }
          all_done.count_down();
        }).detach();
      all_done.wait();
      EXPECT_LE(longest, patient * (levels::patience + 2));
      EXPECT_GE(longest, levels::patience);  // and urgent fibers did run first
      over = true;
      for (auto& f : above) f.join();
    });
  }
}

TEST(priorities_of_fibers, starve_nobody_between_two_busy_levels) {
  runtime rt{by_levels(1)};
  rt.run([] {
    std::atomic<bool> over{false};
    std::array<std::atomic<long>, levels::count> turns{};
    std::vector<join_handle<void>> all;
    for (const int level : {priorities::urgent, priorities::normal, priorities::background})
      for (auto& f : busy(2, level, over, turns[static_cast<std::size_t>(level)])) all.push_back(std::move(f));
    while (turns[priorities::background] < rounds) this_fiber::yield();
    over = true;
    for (auto& f : all) f.join();
    // Of about patience + 2 turns each of the lower levels has one.
    EXPECT_GE(turns[priorities::normal], rounds / 2);
    EXPECT_GE(turns[priorities::urgent], 3 * turns[priorities::normal]);
  });
}

/// Pinned fibers bypass the policy, and must not keep it from its turn.
TEST(priorities_of_fibers, are_not_kept_waiting_by_what_is_pinned) {
  runtime rt{by_levels(1)};
  rt.run([] {
    std::atomic<bool> over{false};
    auto pinned = spawn(fiber_options{.worker = 0}, [&] {
      while (!over) this_fiber::yield();
    });
    auto other = spawn(at(priorities::background), [&] { over = true; });
    pinned.join();
    other.join();
  });
}

TEST(priorities_of_fibers, let_a_fiber_yield_to_what_is_urgent) {
  runtime rt{by_levels(1)};
  rt.run([] {
    bool answered = false;
    auto call = spawn(at(priorities::urgent), [&] { answered = true; });
    this_fiber::yield();
    EXPECT_TRUE(answered);
    call.join();
  });
}

long fib(int n) {
  if (n < 2) return n;
  auto [a, b] = fork_join([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return a + b;
}

class workers_by_level : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(all, workers_by_level, testing::Values(1, 2, 8));

TEST_P(workers_by_level, run_all_that_is_there_beside_hogs) {
  runtime rt{by_levels(GetParam())};
  rt.run([] {
    std::atomic<bool> over{false};
    std::atomic<long> turns{0};
    auto hogs = busy(4, priorities::urgent, over, turns);
    channel<int> numbers{4};
    std::vector<join_handle<void>> all;
    std::atomic<long> sum{0};
    for (int level = 0; level < 3; ++level) {
      all.push_back(spawn(at(level), [&] {
        for (int i = 0; i < rounds; ++i) static_cast<void>(numbers.send(i));
      }));
      all.push_back(spawn(at(2 - level), [&] {
        for (int i = 0; i < rounds; ++i) sum.fetch_add(numbers.recv().value());
      }));
      all.push_back(spawn(at(level), [] { EXPECT_EQ(fib(12), 144); }));
    }
    for (auto& f : all) f.join();
    EXPECT_EQ(sum.load(), 3L * rounds * (rounds - 1) / 2);
    over = true;
    for (auto& f : hogs) f.join();
  });
}

TEST_P(workers_by_level, have_spares_to_stand_in_for_them) {
  // All workers block until another fiber has run.
  runtime_options options = by_levels(GetParam());
  options.spare_workers = 64;
  options.stall_after = std::chrono::milliseconds{1};
  runtime rt{options};
  rt.run([&] {
    std::atomic<bool> ran{false};
    std::atomic<int> blocked{0};
    std::vector<join_handle<void>> all;
    for (int i = 0; i < GetParam(); ++i)
      all.push_back(spawn(at(priorities::urgent), [&] {
        blocked.fetch_add(1);
        while (!ran) ::usleep(1000);
      }));
    all.push_back(spawn(at(priorities::background), [&] {
      while (blocked.load() < GetParam()) this_fiber::yield();
      ran = true;
    }));
    for (auto& f : all) f.join();
  });
}

TEST_P(workers_by_level, shut_down_with_work_in_flight) {
  std::atomic<int> ended{0};
  {
    runtime rt{by_levels(GetParam())};
    rt.run([&] {
      latch begun{30};
      for (int i = 0; i < 30; ++i)
        spawn(at(i % 3), [&] {
          struct at_end {
            std::atomic<int>& count;
            ~at_end() { count.fetch_add(1); }
          } counted{ended};
          begun.count_down();
          channel<int> never;
          never.recv();
        }).detach();
      begun.wait();
    });
  }
  EXPECT_EQ(ended.load(), 30);
}

}  // namespace
}  // namespace ramie
