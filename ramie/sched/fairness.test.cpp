// The bounds that next_work.hpp documents, counted in dispatches of a single worker:
//   with R ready fibers, one that becomes ready runs within R * (1 + 1/tick_every) + 1 + tick_every dispatches;
//   the k-th in the injection queue within 2 * (k + 1) * tick_every;
//   the k-th oldest task of a spawn deque within (k + 1) * tick_every * oldest_every_ticks.
// k counts from 1.
#include <ramie/sched/scheduler.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::countdown;
using testing::hold_until;
using testing::run_on;
using testing::scaled;
using testing::start;
using testing::start_here;
using testing::yield_always;

constexpr std::uint64_t tick = scheduler::tick_every;
constexpr std::uint64_t oldest = tick * scheduler::oldest_every_ticks;

std::uint64_t dispatches() { return worker::current()->dispatches.value(); }

runtime_options lone_worker() {
  runtime_options o = testing::with_workers(1);
  o.spare_workers = 0;                    // nobody helps
  o.stall_after = std::chrono::hours{1};  // the kernel may take the worker's CPU away at any time
  return o;
}

/// Where fibers of one worker wait until all of them are there. They park, so that those not yet started have their
/// turn.
class starting_line {
 public:
  explicit starting_line(std::size_t fibers) noexcept : fibers_{fibers} {}
  void pass() {
    if (waiting_.size() + 1 == fibers_) {
      for (const waiter_ref w : waiting_) wake(w);
      waiting_.clear();
      return;
    }
    wait pause{wait::kind::uninterruptible};
    waiting_.push_back(pause.ref());
    pause.suspend();
  }

 private:
  std::size_t fibers_;
  std::vector<waiter_ref> waiting_;
};

class fairness : public ::testing::Test {
 protected:
  scheduler runtime{lone_worker()};
  void TearDown() override { runtime.stop(); }
};

/// The most dispatches that one of `fibers` fibers waited for its turn, each with `rounds` turns. One of them sleeps on
/// the worker for `stall` in its tenth.
std::uint64_t longest_wait(scheduler& runtime, std::uint64_t fibers, int rounds, std::chrono::nanoseconds stall) {
  std::uint64_t longest = 0;
  run_on(runtime, [&] {
    countdown ended{fibers};
    starting_line all_there{fibers};
    for (std::uint64_t i = 0; i < fibers; ++i)
      start_here([&, i] {
        all_there.pass();
        std::uint64_t last = dispatches();
        for (int round = 0; round < rounds; ++round) {
          if (i == 0 && round == 10) std::this_thread::sleep_for(stall);
          yield_always();
          const std::uint64_t now = dispatches();
          longest = std::max(longest, now - last);
          last = now;
        }
        ended.down();
      });
    ended.await();
  });
  return longest;
}

constexpr std::uint64_t turns_bound(std::uint64_t fibers) { return fibers + (fibers + tick - 1) / tick + 1 + tick; }

TEST_F(fairness, ready_fibers_take_turns) {
  for (const std::uint64_t fibers : {2u, 5u, 60u, 61u, 62u, 500u, 2000u}) {
    const int rounds = std::max(5, scaled(200'000) / static_cast<int>(fibers));
    EXPECT_LE(longest_wait(runtime, fibers, rounds, {}), turns_bound(fibers)) << fibers << " fibers";
  }
}

TEST(fairness_after_a_stall, ready_fibers_take_turns) {
  // The monitor may do as it likes with the queues of a stalled worker; what it takes away must not lose its turn for
  // long. There is nobody who could run it sooner.
  runtime_options o = lone_worker();
  o.stall_after = std::chrono::milliseconds{1};
  scheduler runtime{o};
  constexpr std::uint64_t fibers = 200;
  EXPECT_LE(longest_wait(runtime, fibers, 200, std::chrono::milliseconds{30}), 2 * turns_bound(fibers));
  runtime.stop();
}

TEST_F(fairness, fibers_that_wake_each_other_do_not_starve_a_third) {
  // Two play ping-pong by wake-ups; a third one just yields.
  std::uint64_t longest = 0;
  run_on(runtime, [&] {
    bool over = false;
    countdown ended{2};
    std::uint64_t parked = 0;
    for (int i = 0; i < 2; ++i)
      start_here([&] {
        while (!over) {
          const std::uint64_t other = std::exchange(parked, 0);
          wait pause{wait::kind::uninterruptible};
          parked = pause.ref().bits();
          if (other != 0) wake(waiter_ref::from_bits(other));
          else wake(pause.ref());  // the first has nobody to wake it
          pause.suspend();
        }
        if (parked != 0) wake(waiter_ref::from_bits(std::exchange(parked, 0)));
        ended.down();
      });
    std::uint64_t last = dispatches();
    for (int round = 0; round < scaled(50'000); ++round) {
      yield_always();
      const std::uint64_t now = dispatches();
      if (round > 10) longest = std::max(longest, now - last);
      last = now;
    }
    over = true;
    ended.await();
  });
  EXPECT_LE(longest, 8u);
}

TEST_F(fairness, the_oldest_task_runs_under_a_flood_of_new_ones) {
  // Each task of the flood starts the next one, which is always newer than those that wait.
  constexpr std::uint64_t waiting = 20;
  for (int round = 0; round < std::max(1, scaled(20)); ++round) {
    std::vector<std::uint64_t> ran_at;
    std::uint64_t begin = 0;
    run_on(runtime, [&] {
      countdown ended{waiting + 1};
      struct flood {
        const std::vector<std::uint64_t>& ran_at;
        countdown& ended;
        void operator()() const {
          if (ran_at.size() < waiting) start_here(flood{ran_at, ended});
          else ended.down();
        }
      };
      for (std::uint64_t i = 0; i < waiting; ++i)
        start_here([&] {
          ran_at.push_back(dispatches());
          ended.down();
        });
      start_here(flood{ran_at, ended});
      begin = dispatches();
      ended.await();
    });
    ASSERT_EQ(ran_at.size(), waiting);
    for (std::uint64_t k = 0; k < waiting; ++k)
      ASSERT_LE(ran_at[k] - begin, (k + 2) * oldest) << "task " << k << ", round " << round;
  }
}

TEST_F(fairness, a_spawned_task_runs_under_a_flood_of_ready_fibers) {
  for (int round = 0; round < std::max(1, scaled(200)); ++round) {
    std::uint64_t waited = 0;
    run_on(runtime, [&] {
      bool ran = false;
      constexpr std::size_t fibers = 10;
      countdown ended{fibers};
      starting_line all_there{fibers + 1};  // else the new task is not the oldest
      for (std::size_t i = 0; i < fibers; ++i)
        start_here([&] {
          all_there.pass();
          do yield_always();
          while (!ran);
          ended.down();
        });
      all_there.pass();
      const std::uint64_t begin = dispatches();
      start_here([&, begin] {
        waited = dispatches() - begin;
        ran = true;
      });
      ended.await();
    });
    ASSERT_LE(waited, 2 * oldest) << round;
  }
}

TEST_F(fairness, injected_tasks_run_under_a_flood_of_ready_fibers_and_new_tasks) {
  // They come from a plain thread while the worker stands still, so the counting starts at a known dispatch.
  constexpr std::size_t injected = 10;
  for (const bool spawning : {false, true})
    for (int round = 0; round < std::max(1, scaled(100)); ++round) {
      std::vector<std::uint64_t> waited;
      run_on(runtime, [&] {
        bool over = false;
        constexpr std::size_t fibers = 10;
        countdown ended{fibers};
        starting_line all_there{fibers + 1};
        for (std::size_t i = 0; i < fibers; ++i)
          start_here([&] {
            all_there.pass();
            while (!over) {
              if (spawning) start_here([] {});
              yield_always();
            }
            ended.down();
          });
        all_there.pass();
        std::uint64_t begin = 0;
        std::thread{[&] {
          for (std::size_t i = 0; i < injected; ++i)
            start(runtime, [&] {
              waited.push_back(dispatches() - begin);
              over = waited.size() == injected;
            });
        }}.join();
        begin = dispatches();
        ended.await();
      });
      ASSERT_EQ(waited.size(), injected);
      for (std::size_t k = 0; k < injected; ++k)
        ASSERT_LE(waited[k], 2 * (k + 2) * tick) << "task " << k << ", round " << round;
    }
}

TEST_F(fairness, injected_stacks_and_tasks_take_turns) {
  // Stacks that are woken from outside again and again, and one task that was injected behind them.
  for (int round = 0; round < std::max(1, scaled(50)); ++round) {
    std::uint64_t waited = 0;
    std::atomic<bool> over{false};
    constexpr std::size_t parkers = 20;
    std::atomic<std::uint64_t> refs[parkers] = {};
    countdown ended{parkers + 1};
    for (std::atomic<std::uint64_t>& ref : refs)
      start(runtime, [&] {
        while (!over.load()) {
          wait pause{wait::kind::uninterruptible};
          ref.store(pause.ref().bits());
          pause.suspend();
        }
        ended.down();
      });
    // A busy fiber, and one thread that wakes all the others over and over.
    start(runtime, [&] {
      for (int i = 0; i < 100; ++i) yield_always();
      std::uint64_t begin = 0;
      std::thread{[&] {
        start(runtime, [&] {
          waited = dispatches() - begin;
          over.store(true);
        });
      }}.join();
      begin = dispatches();
      while (!over.load()) yield_always();
      ended.down();
    });
    std::atomic<bool> all_ended{false};
    std::thread waker{[&] {
      while (!all_ended.load())
        for (std::atomic<std::uint64_t>& ref : refs)
          if (const std::uint64_t r = ref.exchange(0); r != 0) wake(waiter_ref::from_bits(r));
    }};
    ended.await();
    all_ended.store(true);
    waker.join();
    ASSERT_LE(waited, 4 * tick + 4) << round;
  }
}

TEST_F(fairness, timers_fire_under_a_flood_of_ready_fibers) {
  bool slept = false;
  run_on(runtime, [&] {
    countdown ended{4};
    for (int i = 0; i < 3; ++i)
      start_here([&] {
        while (!slept) yield_always();
        ended.down();
      });
    start_here([&] {
      testing::sleep_for(std::chrono::microseconds{100});
      slept = true;
      ended.down();
    });
    ended.await();
  });
  EXPECT_TRUE(slept);
}

}  // namespace
}  // namespace ramie::detail
