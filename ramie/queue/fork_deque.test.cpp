// Fork jobs run once, wherever they run: on the fiber that forked them, on a thief, or promoted.
#include <ramie/queue/fork_deque.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ramie::detail {
namespace {

using testing::countdown;
using testing::fork_two;
using testing::run_on;
using testing::scaled;
using testing::start_here;
using testing::yield_always;

/// How often each of a tree's nodes was run.
class tally {
 public:
  explicit tally(std::size_t nodes) : nodes_{nodes}, runs_{std::make_unique<std::atomic<std::uint8_t>[]>(nodes)} {}
  void count(std::size_t node) noexcept { runs_[node].fetch_add(1, std::memory_order_relaxed); }
  /// All exactly once; then starts again from zero.
  void check() {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < nodes_; ++i) wrong += runs_[i].exchange(0, std::memory_order_relaxed) != 1 ? 1 : 0;
    EXPECT_EQ(wrong, 0u) << "of " << nodes_;
  }

 private:
  std::size_t nodes_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> runs_;
};

std::uint64_t steals(scheduler& s) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < s.worker_count(); ++i) n += s.at(i).steals_done.value();
  return n;
}

class fork_jobs : public ::testing::TestWithParam<int> {
 protected:
  scheduler runtime{testing::with_workers(GetParam())};
  void TearDown() override { runtime.stop(); }
};
INSTANTIATE_TEST_SUITE_P(workers, fork_jobs, ::testing::Values(1, 2, 3, 8),
                         [](const auto& p) { return std::to_string(p.param); });

/// A heap-ordered binary tree: node n has 2n+1 and 2n+2.
void visit(tally& t, std::size_t node, std::size_t nodes) {
  if (node >= nodes) return;
  t.count(node);
  fork_two([&] { visit(t, 2 * node + 1, nodes); }, [&] { visit(t, 2 * node + 2, nodes); });
}

TEST_P(fork_jobs, run_once_each_in_a_tree) {
  const auto nodes = static_cast<std::size_t>(scaled(200'000));
  tally t{nodes};
  for (int round = 0; round < 30; ++round) {
    run_on(runtime, [&] { visit(t, 0, nodes); });
    t.check();
  }
  testing::wait_until_empty(runtime);
}

/// A tree that is all on one side keeps the deque short and each job contested.
void comb(tally& t, std::size_t node, std::size_t nodes, unsigned work) {
  if (node >= nodes) return;
  fork_two(
      [&] {
        t.count(node);
        for (unsigned i = 0; i < work; ++i) compiler_fence();
      },
      [&] { comb(t, node + 1, nodes, work); });
}

TEST_P(fork_jobs, run_once_each_in_a_comb) {
  const std::size_t teeth = RAMIE_ASAN != 0 ? 100 : 400;  // each is a frame on the stack
  tally t{teeth};
  for (int round = 0; round < scaled(3000); ++round) {
    run_on(runtime, [&] { comb(t, 0, teeth, static_cast<unsigned>(round) % 64); });
    t.check();
  }
}

TEST_P(fork_jobs, run_once_each_under_single_joins) {
  // The shortest way from fork to join: one job, on offer only for a moment.
  const int rounds = scaled(3'000'000);
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  run_on(runtime, [&] {
    for (int i = 0; i < rounds; ++i) {
      fork_two([&] { ++left; }, [&] { ++right; });
    }
  });
  EXPECT_EQ(left, static_cast<std::uint64_t>(rounds));
  EXPECT_EQ(right, static_cast<std::uint64_t>(rounds));
}

/// Some nodes suspend between fork and join, so that all jobs on offer are promoted.
void visit_suspending(tally& t, std::size_t node, std::size_t nodes, unsigned one_in) {
  if (node >= nodes) return;
  fork_two(
      [&] {
        if (node % one_in == 0) yield_always();
        visit_suspending(t, 2 * node + 1, nodes, one_in);
      },
      [&] {
        if (node % one_in == one_in / 2) yield_always();
        visit_suspending(t, 2 * node + 2, nodes, one_in);
      });
  t.count(node);
}

TEST_P(fork_jobs, run_once_each_when_promoted) {
  const auto nodes = static_cast<std::size_t>(scaled(40'000));
  tally t{nodes};
  for (const unsigned one_in : {1u, 3u, 17u, 101u})
    for (int round = 0; round < 10; ++round) {
      run_on(runtime, [&] { visit_suspending(t, 0, nodes, one_in); });
      t.check();
    }
  testing::wait_until_empty(runtime);
}

TEST_P(fork_jobs, are_promoted_when_their_fiber_parks) {
  // f cannot end before g has run, and on one worker g can run only because f has parked.
  for (int round = 0; round < scaled(5000); ++round)
    run_on(runtime, [] {
      countdown g_ran{1};
      bool after = false;
      fork_two(
          [&] {
            g_ran.await();
            after = true;
          },
          [&] { g_ran.down(); });
      EXPECT_TRUE(after);
    });
}

TEST_P(fork_jobs, are_promoted_all_the_way_up) {
  // The innermost f waits for every g of the nest around it.
  constexpr std::size_t depth = 50;
  struct nest {
    countdown& all;
    void go(std::size_t n) {
      if (n == 0) {
        all.await();
        return;
      }
      fork_two([&] { go(n - 1); }, [&] { all.down(); });
    }
  };
  for (int round = 0; round < scaled(1000); ++round)
    run_on(runtime, [] {
      countdown all{depth};
      nest{all}.go(depth);
    });
  testing::wait_until_empty(runtime);
}

TEST_P(fork_jobs, may_be_claimed_by_their_parent_after_promotion) {
  // The fiber parks only for a moment, so the parent races with the others for the jobs.
  std::atomic<std::uint64_t> runs{0};
  const int rounds = scaled(100'000);
  run_on(runtime, [&] {
    for (int i = 0; i < rounds; ++i)
      fork_two([&] { fork_two([] { yield_always(); }, [&] { runs.fetch_add(1, std::memory_order_relaxed); }); },
               [&] { runs.fetch_add(1, std::memory_order_relaxed); });
  });
  EXPECT_EQ(runs.load(), 2u * static_cast<unsigned>(rounds));
}

TEST_P(fork_jobs, of_many_fibers_at_once) {
  constexpr std::size_t fibers = 40;
  const auto nodes = static_cast<std::size_t>(scaled(5'000));
  std::vector<std::unique_ptr<tally>> tallies;
  for (std::size_t i = 0; i < fibers; ++i) tallies.push_back(std::make_unique<tally>(nodes));
  for (int round = 0; round < 5; ++round) {
    run_on(runtime, [&] {
      countdown ended{fibers};
      for (std::size_t i = 0; i < fibers; ++i)
        start_here([&, i] {
          if (i % 2 == 0) visit(*tallies[i], 0, nodes);
          else visit_suspending(*tallies[i], 0, nodes, 5);
          ended.down();
        });
      ended.await();
    });
    for (auto& t : tallies) t->check();
  }
}

TEST_P(fork_jobs, deeper_than_the_deque_are_promoted) {
  // More jobs on offer than slots: a loop of frames, since so deep a recursion would need a large stack.
  struct offered : fork_frame {
    std::atomic<int>* runs;
  };
  constexpr std::size_t n = 20'000;
  std::atomic<int> runs{0};
  std::vector<offered> jobs(n);
  std::vector<fork_slot*> slots(n);
  run_on(runtime, [&] {
    for (std::size_t i = 0; i < n; ++i) {
      jobs[i].runs = &runs;
      slots[i] = fork_push(*current_forks(), jobs[i],
                           [](fork_frame& f) noexcept { static_cast<offered&>(f).runs->fetch_add(1); });
    }
    for (std::size_t i = n; i-- > 0;) {
      if (fork_take_back(jobs[i], slots[i])) runs.fetch_add(1);
      else wait_for_thief(jobs[i]);
    }
  });
  EXPECT_EQ(runs.load(), static_cast<int>(n));
}

TEST(fork_jobs_of_plain_threads, run_in_place) {
  const auto nodes = static_cast<std::size_t>(scaled(20'000));
  scheduler runtime{testing::with_workers(2)};  // prepares the marks
  tally t{nodes};
  visit(t, 0, nodes);
  t.check();
  runtime.stop();
}

TEST(fork_jobs_stolen, happen) {
  // The other tests would prove little if there were no thefts.
  scheduler runtime{testing::with_workers(4)};
  std::atomic<int> on_others{0};
  // Until a thief has come, however long the machine takes to run one.
  run_on(runtime, [&] {
    while (on_others.load() == 0) {
      const worker* here = worker::current();
      fork_two(
          [] {
            for (int i = 0; i < 20'000; ++i) compiler_fence();
          },
          [&] {
            if (current_worker() != here) on_others.fetch_add(1);
          });
    }
  });
  EXPECT_GT(steals(runtime), 0u);
  runtime.stop();
}

TEST(fork_jobs_hold, without_membarrier) {
  if (std::getenv("RAMIE_MEMBARRIER") != nullptr) GTEST_SKIP() << "is the child";
  const int status = testing::run_self("RAMIE_MEMBARRIER", "0", "*fork_jobs.*:fork_jobs_stolen.*");
  if (status == 127) GTEST_SKIP() << "this program cannot start itself here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ramie::detail
