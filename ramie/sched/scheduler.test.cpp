// The scheduler as a whole: it starts, runs what it is given, moves fibers about, stops with work in flight, and starts
// again.
#include <ramie/sched/scheduler.hpp>

#include <ramie/base/error.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using namespace std::chrono_literals;
using testing::countdown;
using testing::hold_until;
using testing::run_on;
using testing::scaled;
using testing::start;
using testing::start_here;
using testing::yield_always;

class schedulers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(workers, schedulers, ::testing::Values(1, 2, 8),
                         [](const auto& p) { return std::to_string(p.param); });

TEST_P(schedulers, start_and_stop) {
  int ran = 0;
  for (int i = 0; i < scaled(200); ++i) {
    scheduler s{testing::with_workers(GetParam())};
    EXPECT_EQ(s.worker_count(), static_cast<std::size_t>(GetParam()));
    if (i % 2 == 0) run_on(s, [&] { ++ran; });
    if (i % 3 == 0) s.stop();  // else the destructor does
  }
  EXPECT_EQ(ran, (scaled(200) + 1) / 2);
}

TEST_P(schedulers, run_all_that_is_submitted) {
  scheduler s{testing::with_workers(GetParam())};
  const auto n = static_cast<std::size_t>(scaled(100'000));
  std::atomic<std::uint64_t> sum{0};
  countdown ended{2 * n};
  for (std::size_t i = 0; i < n; ++i)
    start(s, [&, i] {
      start_here([&] { ended.down(); });
      sum.fetch_add(i, std::memory_order_relaxed);
      ended.down();
    });
  ended.await();
  EXPECT_EQ(sum.load(), n * (n - 1) / 2);
  testing::wait_until_empty(s);
  s.stop();
}

TEST_P(schedulers, take_work_from_many_threads) {
  scheduler s{testing::with_workers(GetParam())};
  const auto n = static_cast<std::size_t>(scaled(20'000));
  countdown ended{4 * n};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < n; ++i) start(s, [&] { ended.down(); });
    });
  ended.await();
  for (std::thread& t : threads) t.join();
  s.stop();
}

TEST_P(schedulers, stop_with_work_in_flight) {
  // Parked, sleeping, ready, not started: all end, and what never ran is dropped, not forgotten.
  for (int round = 0; round < scaled(100); ++round) {
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    std::atomic<int> skipped{0};
    constexpr int each = 20;
    scheduler s{testing::with_workers(GetParam())};
    struct ends {
      std::atomic<int>& n;
      ~ends() { n.fetch_add(1); }
    };
    for (int i = 0; i < each; ++i) {
      start(
          s,
          [&] {
            begun.fetch_add(1);
            const ends at_end{ended};
            testing::sleep_for(1h);
          },
          &skipped);
      start(
          s,
          [&] {
            begun.fetch_add(1);
            const ends at_end{ended};
            wait pause{wait::kind::cancellable};
            pause.suspend();
          },
          &skipped);
      start(
          s,
          [&] {
            begun.fetch_add(1);
            const ends at_end{ended};
            for (int k = 0; k < 100; ++k) yield_always();
          },
          &skipped);
    }
    if (round % 2 == 0) hold_until([&] { return begun.load() >= each; });
    s.stop();
    EXPECT_EQ(begun.load(), ended.load());
    EXPECT_EQ(begun.load() + skipped.load(), 3 * each);
  }
}

TEST_P(schedulers, refuse_work_after_they_stopped) {
  scheduler s{testing::with_workers(GetParam())};
  s.stop();
  s.stop();
  std::atomic<int> skipped{0};
  task* t = testing::make_task([] {}, &skipped);
  try {
    s.submit(t);
    ADD_FAILURE() << "taken";
  } catch (const usage_error& e) {
    EXPECT_NE(std::string{e.what()}.find("shutting down"), std::string::npos) << e.what();
  }
  t->type->skip(*t, nullptr);
  destroy_task(t);
  EXPECT_EQ(skipped.load(), 1);
}

TEST_P(schedulers, cannot_be_stopped_from_within) {
  scheduler s{testing::with_workers(GetParam())};
  bool refused = false;
  run_on(s, [&] {
    try {
      s.stop();
    } catch (const usage_error&) {
      refused = true;
    }
  });
  EXPECT_TRUE(refused);
  s.stop();
}

TEST(schedulers_side_by_side, wake_each_others_fibers) {
  scheduler left{testing::with_workers(2)};
  scheduler right{testing::with_workers(2)};
  const auto n = scaled(5000);
  std::atomic<std::uint64_t> refs[2] = {};
  countdown ended{2};
  // Each wakes the waiter on the other side.
  std::atomic<bool> over{false};
  auto waiter = [&](std::size_t me) {
    for (int i = 0; i < n; ++i) {
      wait pause{wait::kind::uninterruptible};
      refs[me].store(pause.ref().bits());
      pause.suspend();
    }
    ended.down();
  };
  auto waker = [&](std::size_t other) {
    while (!over.load()) {
      if (const std::uint64_t r = refs[other].exchange(0); r != 0) wake(waiter_ref::from_bits(r));
      yield_always();
    }
  };
  start(left, [&] { waiter(0); });
  start(right, [&] { waiter(1); });
  start(left, [&] { waker(1); });
  start(right, [&] { waker(0); });
  ended.await();
  over.store(true);
  left.stop();
  right.stop();
}

TEST(exceptions_in_flight, go_with_their_fiber) {
  // Suspended inside a handler, resumed wherever; others throw meanwhile.
  scheduler s{testing::with_workers(4)};
  constexpr std::size_t fibers = 200;
  std::atomic<int> wrong{0};
  run_on(s, [&] {
    countdown ended{fibers};
    for (std::size_t i = 0; i < fibers; ++i)
      start_here([&, i] {
        for (int round = 0; round < 10; ++round) {
          const std::string mine = std::to_string(i) + "/" + std::to_string(round);
          try {
            throw std::runtime_error{mine};
          } catch (const std::runtime_error&) {
            yield_always();
            try {
              throw std::logic_error{"inner " + mine};
            } catch (const std::logic_error& inner) {
              yield_always();
              if (inner.what() != "inner " + mine) wrong.fetch_add(1);
            }
            try {
              throw;
            } catch (const std::runtime_error& e) {
              if (e.what() != mine) wrong.fetch_add(1);
            }
          }
          if (std::uncaught_exceptions() != 0 || std::current_exception() != nullptr) wrong.fetch_add(1);
        }
        ended.down();
      });
    ended.await();
  });
  EXPECT_EQ(wrong.load(), 0);
  s.stop();
}

class migration : public ::testing::TestWithParam<int> {
 protected:
  static runtime_options options() {
    runtime_options o = testing::with_workers(GetParam());
    // What the monitor moves away from a worker that gets no processor is for any other, the one it came from too.
    o.stall_after = std::chrono::hours{1};
    return o;
  }

 private:
  with_test_options migrating_{{.migrate_always = true}};
};
INSTANTIATE_TEST_SUITE_P(workers, migration, ::testing::Values(1, 2, 3),
                         [](const auto& p) { return std::to_string(p.param); });

TEST_P(migration, takes_a_fiber_elsewhere_at_each_wake_up) {
  scheduler s{options()};
  const int rounds = scaled(2000);
  std::atomic<std::uint64_t> ref{0};
  std::atomic<bool> over{false};
  int stayed = 0;
  std::thread waker{[&] {
    while (!over.load()) {
      if (const std::uint64_t r = ref.exchange(0); r != 0) wake(waiter_ref::from_bits(r));
      else std::this_thread::yield();
    }
  }};
  run_on(s, [&] {
    for (int i = 0; i < rounds; ++i) {
      wait pause{wait::kind::uninterruptible};
      const worker* before = worker::current();
      const std::uint64_t session = before->session;
      ref.store(pause.ref().bits());
      pause.suspend();
      // A fiber that was claimed after it had left resumes in the same way; one that was claimed before never left.
      if (current_worker() == before && before->session != session) ++stayed;
    }
  });
  over.store(true);
  waker.join();
  if (GetParam() > 1) {
    EXPECT_EQ(stayed, 0);
  }
  s.stop();
}

TEST_P(migration, takes_a_sleeper_elsewhere) {
  // The worker whose timer it is finds the fiber woken and may not have it: another one must be fetched.
  scheduler s{options()};
  int stayed = 0;
  run_on(s, [&] {
    for (int i = 0; i < 20; ++i) {
      const worker* before = worker::current();
      const std::uint64_t session = before->session;
      testing::sleep_for(1ms);
      if (current_worker() == before && before->session != session) ++stayed;
    }
  });
  if (GetParam() > 1) {
    EXPECT_EQ(stayed, 0);
  }
  s.stop();
}

}  // namespace
}  // namespace ramie::detail
