// What wakes a sleeping worker when a search ends: two and three workers, work that only another worker can run because
// its own is held up, and no monitor, which would find it a millisecond later.
#include "programs.hpp"

#include <ramie/machine/spin_lock.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// Holds its worker up.
void spin_until(const detail::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_acquire)) detail::spin_pause();
}

/// The workers fall asleep, or nearly so.
void let_them_sleep() {
  if (pick(4) != 0) detail::os_sleep(1000 * (20 + pick(100)));
}

constexpr exploration short_runs{.seeds = 1500, .steps_most = 30'000};
constexpr exploration until_found{.seeds = 20'000, .steps_most = 30'000};

// ---- a publisher and the end of a search ---------------------------------------------------------------------------

/// The first task holds the worker that took it; the second one was published while that worker still searched.
void inject_two() {
  runtime rt{workers(2)};
  let_them_sleep();
  detail::atomic<bool> ran{false};
  auto first = rt.spawn([&] { spin_until(ran); });
  if (pick(2) == 0) detail::os_sleep(100 * pick(50));
  rt.spawn([&] { ran.store(true, std::memory_order_release); }).join();
  first.join();
}
TEST(search, that_ends_wakes_a_sleeper_for_what_came_meanwhile) { expect_sound("inject two", short_runs, inject_two); }
TEST(search, that_ends_without_its_fence_is_found) {
  expect_found(plant::search_ends_unfenced, "inject two, no fence", until_found, inject_two);
}

/// A thief has taken several tasks, of which the first holds it: the others are for the worker that still sleeps.
void spawn_some() {
  runtime rt{workers(3)};
  rt.run([] {
    detail::atomic<bool> ran{false};
    wait_group all;
    all.add(6);
    let_them_sleep();
    spawn([&] {
      spin_until(ran);
      all.done();
    }).detach();
    for (int i = 0; i < 5; ++i)
      spawn([&] {
        ran.store(true, std::memory_order_release);
        all.done();
      }).detach();
    spin_until(ran);
    all.wait();
  });
}

TEST(search, that_ends_wakes_a_sleeper_for_what_it_stole) { expect_sound("spawn some", short_runs, spawn_some); }

// ---- fork jobs -----------------------------------------------------------------------------------------------------

/// Two jobs, of which the first holds the thief that took it: for the second one the other sleeper has to come.
void need_two_sleepers() {
  runtime rt{workers(3)};
  rt.run([] {
    detail::atomic<bool> ran{false};
    let_them_sleep();
    fork_join(
        [&] {
          if (pick(2) == 0) detail::os_sleep(1000 * pick(60));
          fork_join([&] { spin_until(ran); }, [&] { ran.store(true, std::memory_order_release); });
        },
        [&] { spin_until(ran); });
  });
}
TEST(fork_jobs, get_each_sleeper_in_turn) { expect_sound("two sleepers", short_runs, need_two_sleepers); }
TEST(fork_jobs, of_a_worker_that_is_not_marked_again_are_found) {
  expect_found(plant::search_ends_unmarked, "two sleepers, no new marks", until_found, need_two_sleepers);
}

/// A thief is called for a fork job, and takes what was injected instead.
void distract_a_thief() {
  runtime rt{workers(3)};
  detail::atomic<bool> ran{false};
  detail::atomic<bool> forks{false};
  auto forking = rt.spawn([&] {
    let_them_sleep();
    forks.store(true, std::memory_order_release);
    fork_join([&] { spin_until(ran); }, [&] { ran.store(true, std::memory_order_release); });
  });
  if (pick(2) == 0) {
    while (!forks.load(std::memory_order_acquire)) detail::os_sleep(1000);
  }
  auto distraction = rt.spawn([&] { spin_until(ran); });
  forking.join();
  distraction.join();
}
TEST(fork_jobs, whose_thief_is_distracted_get_another) {
  expect_sound("a distracted thief", short_runs, distract_a_thief);
}

// ---- work for one worker alone -------------------------------------------------------------------------------------

/// What is sent to a worker comes just when it falls asleep.
void send_to_one_that_falls_asleep() {
  runtime_options o = workers(1);
  o.placement = placement::dedicated;
  runtime rt{o};
  for (int i = 0; i < 5; ++i) {
    detail::os_sleep(500 * pick(120));
    check(rt.spawn([] { return 7; }).join() == 7, "a wrong result");
  }
}
TEST(an_inbox, wakes_its_worker) {
  expect_sound("send to one that falls asleep", {.seeds = 2000, .steps_most = 30'000}, send_to_one_that_falls_asleep);
}

/// Says whether it has work without its lock, as a user's may.
class counting_policy final : public scheduling_policy {
 public:
  void put(runnable r, int) noexcept override {
    const std::lock_guard guard{lock_};
    waiting_.push(r);
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  runnable take(int) noexcept override {
    const std::lock_guard guard{lock_};
    const runnable r = waiting_.pop();
    if (r) count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    return r;
  }
  [[nodiscard]] bool has_work(int) const noexcept override { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  detail::spin_lock lock_;
  runnable_queue waiting_;
  detail::atomic<int> count_{0};
};

void give_to_a_policy() {
  runtime_options o = workers(1);
  o.policy = std::make_shared<counting_policy>();
  runtime rt{o};
  for (int i = 0; i < 5; ++i) {
    detail::os_sleep(500 * pick(120));
    check(rt.spawn([] { return 7; }).join() == 7, "a wrong result");
  }
}
TEST(a_policy, wakes_a_worker_that_falls_asleep) {
  expect_sound("give to a policy", {.seeds = 2000, .steps_most = 30'000}, give_to_a_policy);
}

/// The only timer is that of a worker which is held up: the monitor has to fire it, and rests until somebody wakes up.
void need_the_monitor() {
  const with_monitor monitored;
  runtime rt{workers(2)};
  for (int round = 0; round < 2; ++round) {
    detail::os_sleep(5'000'000 * pick(12));
    rt.run([] {
      detail::atomic<bool> over{false};
      auto timed = spawn([&] {
        this_fiber::sleep_for(1ms);
        over.store(true, std::memory_order_release);
      });
      this_fiber::yield();
      while (!over.load(std::memory_order_acquire)) detail::os_sleep(200'000);
      timed.join();
    });
  }
}
TEST(the_monitor, is_roused_by_a_worker_that_wakes_up) {
  expect_sound("need the monitor", {.seeds = 600, .steps_most = 60'000}, need_the_monitor);
}

}  // namespace
}  // namespace ramie::interleave
