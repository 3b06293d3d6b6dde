// The monitor: what happens while workers are held up. None of these would end without it.
#include <ramie/sched/scheduler.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <string>
#include <thread>

namespace ramie::detail {
namespace {

using namespace std::chrono_literals;
using testing::countdown;
using testing::hold_until;
using testing::run_on;
using testing::scaled;
using testing::start;
using testing::start_here;
using testing::threads_of_process;

std::size_t spares_on_duty(scheduler& s) {
  std::size_t n = 0;
  for (std::size_t i = s.regular_workers(); i < s.worker_count(); ++i) n += s.at(i).on_duty.load() ? 1 : 0;
  return n;
}

/// Returns when no spare is on duty. Keeps all workers busy for moments: a spare retires when it next runs dry.
void wait_for_retirement(scheduler& s) {
  while (spares_on_duty(s) != 0) {
    const std::size_t n = 2 * s.worker_count();
    countdown ended{n};
    for (std::size_t i = 0; i < n; ++i)
      start(s, [&] {
        const auto until = steady::now() + 200us;
        hold_until([&] { return steady::now() >= until; });
        ended.down();
      });
    ended.await();
    std::this_thread::sleep_for(2ms);
  }
}

runtime_options options(int workers, int spares) {
  runtime_options o = testing::with_workers(workers);
  o.spare_workers = spares;
  o.stall_after = 2ms;
  return o;
}

/// Holds the only worker up until a spare has run what releases it.
void stall_until_a_spare_runs(scheduler& s) {
  std::atomic<bool> holding{false};
  std::atomic<bool> released{false};
  countdown ended{1};
  start(s, [&] {
    holding.store(true);
    hold_until([&] { return released.load(); });
    ended.down();
  });
  hold_until([&] { return holding.load(); });
  start(s, [&] { released.store(true); });
  ended.await();
}

/// In place of a pause in which monitors could do wrong: elsewhere a monitor with the same options has meanwhile
/// noticed several times that its worker is stalled.
void while_other_monitors_look() {
  for (int i = 0; i < 3; ++i) {
    scheduler other{options(1, 1)};
    stall_until_a_spare_runs(other);
    other.stop();
  }
}

/// Until the monitor has begun and ended some rounds: it writes the clock of a worker that is awake once in each.
void while_its_monitor_looks(const worker& awake, int rounds) {
  for (; rounds != 0; --rounds) {
    const std::int64_t before = awake.clock_ns.load();
    hold_until([&] { return awake.clock_ns.load() != before; });
  }
}

TEST(monitors, call_a_spare_when_all_workers_are_stalled) {
  for (const int workers : {1, 2}) {
    scheduler runtime{options(workers, 4)};
    const std::size_t threads_before = threads_of_process();
    std::atomic<int> holding{0};
    std::atomic<bool> released{false};
    countdown ended{static_cast<std::size_t>(workers)};
    for (int i = 0; i < workers; ++i)
      start(runtime, [&] {
        holding.fetch_add(1);
        hold_until([&] { return released.load(); });
        ended.down();
      });
    hold_until([&] { return holding.load() == workers; });
    // Only one more worker can run this. Which of them are spares is a matter of who came first: a worker that the
    // kernel keeps from its first dispatch counts as stalled too.
    start(runtime, [&] { released.store(true); });
    ended.await();
    const std::size_t threads = threads_of_process();  // first: a worker is counted before its thread starts
    const std::size_t spares = runtime.worker_count() - static_cast<std::size_t>(workers);
    EXPECT_GE(spares, 1u);
    EXPECT_LE(spares, 4u);
    if (RAMIE_TSAN == 0) {
      EXPECT_LE(threads, threads_before + spares);
    }
    // Needed no longer.
    wait_for_retirement(runtime);
    runtime.stop();
  }
}

TEST(monitors, call_nobody_while_nothing_waits) {
  scheduler runtime{options(1, 4)};
  std::atomic<const worker*> holding{nullptr};
  std::atomic<bool> released{false};
  countdown ended{1};
  start(runtime, [&] {
    holding.store(worker::current());
    hold_until([&] { return released.load(); });
    ended.down();
  });
  hold_until([&] { return holding.load() != nullptr; });
  // A round that began before the only task did may have seen it wait.
  while_its_monitor_looks(*holding.load(), 2);
  const std::size_t workers = runtime.worker_count();
  while_other_monitors_look();
  while_its_monitor_looks(*holding.load(), 3);
  EXPECT_EQ(runtime.worker_count(), workers);
  released.store(true);
  ended.await();
  runtime.stop();
}

TEST(monitors, call_a_retired_spare_again) {
  scheduler runtime{options(1, 4)};
  for (int round = 0; round < std::max(3, scaled(20)); ++round) {
    stall_until_a_spare_runs(runtime);
    wait_for_retirement(runtime);
  }
  EXPECT_LE(runtime.worker_count(), 5u);  // not one more each time
  runtime.stop();
}

TEST(monitors, retire_the_spares_of_an_idle_runtime) {
  // As above, but nothing more to do for anybody: a spare that fell asleep before it was dispensable finds out by
  // itself.
  scheduler runtime{options(1, 4)};
  stall_until_a_spare_runs(runtime);
  while (spares_on_duty(runtime) != 0) std::this_thread::sleep_for(2ms);
  runtime.stop();
}

TEST(monitors, call_as_many_spares_as_it_takes) {
  // Each holds its worker up until the next one runs.
  scheduler runtime{options(1, 4)};
  std::atomic<int> reached{0};
  countdown ended{5};
  for (int i = 0; i < 5; ++i)
    start(runtime, [&] {
      reached.fetch_add(1);
      hold_until([&] { return reached.load() == 5; });
      ended.down();
    });
  ended.await();
  EXPECT_EQ(runtime.worker_count(), 5u);
  wait_for_retirement(runtime);
  runtime.stop();
}

TEST(monitors, call_no_more_spares_than_allowed) {
  scheduler runtime{options(1, 2)};
  std::atomic<int> reached{0};
  std::atomic<bool> released{false};
  countdown ended{10};
  for (int i = 0; i < 10; ++i)
    start(runtime, [&] {
      reached.fetch_add(1);
      hold_until([&] { return released.load(); });
      ended.down();
    });
  hold_until([&] { return reached.load() == 3; });
  while_other_monitors_look();
  EXPECT_EQ(reached.load(), 3);
  EXPECT_EQ(runtime.worker_count(), 3u);
  released.store(true);
  ended.await();
  runtime.stop();
}

TEST(monitors, call_none_if_none_is_allowed) {
  scheduler runtime{options(1, 0)};
  std::atomic<bool> released{false};
  std::atomic<bool> ran{false};
  countdown ended{2};
  std::atomic<bool> holding{false};
  start(runtime, [&] {
    holding.store(true);
    hold_until([&] { return released.load(); });
    ended.down();
  });
  hold_until([&] { return holding.load(); });
  start(runtime, [&] {
    ran.store(true);
    ended.down();
  });
  while_other_monitors_look();
  EXPECT_FALSE(ran.load());
  EXPECT_EQ(runtime.worker_count(), 1u);
  released.store(true);
  ended.await();
  runtime.stop();
}

TEST(monitors, call_none_for_pinned_work) {
  // No other worker may run it.
  scheduler runtime{options(1, 4)};
  std::atomic<bool> released{false};
  countdown ended{3};
  std::atomic<bool> holding{false};
  task* holder = testing::make_task([&] {
    for (int i = 0; i < 2; ++i) {
      task* pinned = testing::make_task([&] { ended.down(); });
      runtime.placing.pin(*pinned, 0, "test");
      runtime.submit(pinned);
    }
    holding.store(true);
    hold_until([&] { return released.load(); });
    ended.down();
  });
  runtime.placing.pin(*holder, 0, "test");  // nor does this one call for another, however late its worker begins
  runtime.submit(holder);
  hold_until([&] { return holding.load(); });
  // A round in the middle of a push could not tell what was in the queue.
  while_its_monitor_looks(runtime.at(0), 2);
  const std::size_t workers = runtime.worker_count();
  while_other_monitors_look();
  while_its_monitor_looks(runtime.at(0), 3);
  EXPECT_EQ(runtime.worker_count(), workers);
  released.store(true);
  ended.await();
  runtime.stop();
}

TEST(monitors, let_others_have_what_is_queued_behind_pinned_work) {
  scheduler runtime{options(2, 0)};
  for (int round = 0; round < std::max(2, scaled(50)); ++round) {
    countdown pinned_ended{1};
    run_on(runtime, [&] {
      std::atomic<std::uint64_t> ref{0};
      std::atomic<bool> woken{false};
      countdown ended{1};
      start_here([&] {
        wait pause{wait::kind::uninterruptible};
        ref.store(pause.ref().bits());
        pause.suspend();
        woken.store(true);
        ended.down();
      });
      while (ref.load() == 0) testing::yield_always();
      task* pinned = testing::make_task([&] { pinned_ended.down(); });
      runtime.placing.pin(*pinned, static_cast<int>(worker::current()->number), "test");
      runtime.submit(pinned);
      wake(waiter_ref::from_bits(ref.load()));
      hold_until([&] { return woken.load(); });
      ended.await();
    });
    pinned_ended.await();
  }
  runtime.stop();
}

TEST(monitors, fire_the_timers_of_a_stalled_worker) {
  for (const int spares : {4, 0}) {
    // With a spare, or with another worker that sleeps.
    scheduler runtime{options(spares == 0 ? 2 : 1, spares)};
    for (int round = 0; round < std::max(2, scaled(20)); ++round) {
      std::atomic<bool> slept{false};
      countdown ended{2};
      start(runtime, [&] {
        start_here([&] {
          testing::sleep_for(3ms);
          slept.store(true);
          ended.down();
        });
        testing::yield_always();
        // With one worker the sleeper has its timer here.
        hold_until([&] { return slept.load(); });
        ended.down();
      });
      ended.await();
    }
    runtime.stop();
  }
}

TEST(monitors, call_a_reserve_for_what_woke_and_for_nothing_new) {
  runtime_options o = options(1, 1);
  o.stall_after = 1h;  // no spare comes, unless the hog's thread is blocked
  scheduler runtime{o};
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> slept{false};
    std::atomic<bool> began{false};
    countdown ended{3};
    start(runtime, [&] {
      start_here([&] {
        for (int i = 0; i < 3; ++i) testing::sleep_for(1ms);
        EXPECT_FALSE(began.load());
        slept.store(true);
        ended.down();
      });
      testing::yield_always();
      start_here([&] {
        began.store(true);
        ended.down();
      });
      while (!slept.load()) {
      }
      ended.down();
    });
    ended.await();
  }
  // Each time the same one: it has gone off duty when the worker got on.
  EXPECT_EQ(runtime.worker_count(), 2u);
  runtime.stop();
}

TEST(monitors, let_others_have_what_a_stalled_worker_queued) {
  // One that sleeps is woken; both kinds of work, a ready fiber and a new task, single ones.
  scheduler runtime{options(2, 0)};
  for (int round = 0; round < std::max(2, scaled(50)); ++round) {
    run_on(runtime, [&] {
      std::atomic<std::uint64_t> ref{0};
      std::atomic<bool> woken{false};
      countdown ended{1};
      start_here([&] {
        wait pause{wait::kind::uninterruptible};
        ref.store(pause.ref().bits());
        pause.suspend();
        woken.store(true);
        ended.down();
      });
      while (ref.load() == 0) testing::yield_always();
      EXPECT_TRUE(wake(waiter_ref::from_bits(ref.load())));
      hold_until([&] { return woken.load(); });
      ended.await();
      std::atomic<bool> ran{false};
      start_here([&] { ran.store(true); });
      hold_until([&] { return ran.load(); });
    });
  }
  runtime.stop();
}

TEST(monitors, spend_nothing_on_an_idle_runtime) {
  // Counted in sleeps that threads begin, which do not depend on how busy the machine is: a monitor that never rests
  // begins about a thousand in a second.
  scheduler runtime{options(2, 4)};
  run_on(runtime, [] {});
  hold_until([&] { return runtime.at(0).idle.load() && runtime.at(1).idle.load(); });
  auto sleeps = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
  };
  // In some second from now on; sanitizers and the emulator have threads of their own.
  for (bool rests = testing::sanitized || testing::emulated(); !rests;) {
    const long before = sleeps();
    std::this_thread::sleep_for(1s);
    rests = sleeps() - before < 50;
  }
  run_on(runtime, [] {});  // and it wakes up again
  runtime.stop();
}

}  // namespace
}  // namespace ramie::detail
