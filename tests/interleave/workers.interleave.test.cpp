// More workers than two, spares that come and go, and runtimes that follow each other: random programs of all that
// fibers do, whose results are known.
#include "programs.hpp"

#include <ramie/ramie.hpp>
#include <ramie/sync/mutex.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

// ---- three and four workers ----------------------------------------------------------------------------------------

/// What the fibers of one run share.
struct common {
  mutex lock;
  int counted = 0;  // under the lock
  channel<int> numbers{1};
};

int do_something(common& all, int depth);

int spawn_two(common& all, int depth) {
  auto a = spawn([&all, depth] { return do_something(all, depth - 1); });
  auto b = spawn([&all, depth] { return do_something(all, depth - 1); });
  return a.join() + b.join();
}

int fork_two(common& all, int depth) {
  int a = 0;
  int b = 0;
  fork_join([&] { a = do_something(all, depth - 1); }, [&] { b = do_something(all, depth - 1); });
  return a + b;
}

int in_a_scope(common& all, int depth) {
  std::array<int, 2> results{};
  scope s;
  for (int& r : results) s.spawn([&all, &r, depth] { r = do_something(all, depth - 1); });
  s.join();
  return results[0] + results[1];
}

int send_one(common& all, int depth) {
  auto sender = spawn([&all] { static_cast<void>(all.numbers.send(1)); });
  const int got = all.numbers.recv().value_or(0);
  sender.join();
  return got == 1 ? do_something(all, depth - 1) : -1000;
}

/// How often `counted` was raised by it and what it calls.
int do_something(common& all, int depth) {
  if (depth == 0) {
    if (pick(4) == 0) this_fiber::yield();
    std::lock_guard guard{all.lock};
    if (pick(4) == 0) detail::os_sleep(1000 * pick(30));  // its worker is held up
    ++all.counted;
    return 1;
  }
  switch (pick(6)) {
    case 0: return spawn_two(all, depth);
    case 1: return fork_two(all, depth);
    case 2: return in_a_scope(all, depth);
    case 3: return send_one(all, depth);
    case 4: this_fiber::sleep_for(std::chrono::microseconds{pick(40)}); return do_something(all, depth - 1);
    default: return do_something(all, depth - 1);
  }
}

void do_anything() {
  common all;
  if (pick(2) == 0) detail::os_sleep(1000 * pick(60));  // the others fall asleep
  const int result = do_something(all, 3);
  check(result == all.counted, "something ran twice, or not at all");
}

TEST(three_workers, do_all_of_it_once) { expect_sound("three workers", {.seeds = 1500}, in_runtime(do_anything, 3)); }
TEST(four_workers, do_all_of_it_once) { expect_sound("four workers", {.seeds = 1500}, in_runtime(do_anything, 4)); }

/// With a timer, which hides a lost wake-up: the worker that comes for it finds the work as well.
void forget_a_sleeper() {
  const auto hold_up = [] { detail::os_sleep(1000 * (20 + pick(50))); };
  auto timer = spawn([] { this_fiber::sleep_for(400us); });
  if (pick(4) != 0) detail::os_sleep(1000 * (20 + pick(100)));
  for (int i = 0; i < 2; ++i)
    fork_join(
        [&] {
          if (pick(2) == 0) detail::os_sleep(1000 * pick(60));
          fork_join(hold_up, hold_up);
        },
        hold_up);
  timer.join();
}
TEST(three_workers, do_not_sleep_while_work_waits) {
  expect_sound("no sleep beside work", {.seeds = 2000}, in_runtime(forget_a_sleeper, 3));
}
TEST(three_workers, that_sleep_while_work_waits_are_found_before_a_timer_wakes_them) {
  expect_found(plant::sleep_no_fence, "sleep, no fence, with timers", {.seeds = 20'000},
               in_runtime(forget_a_sleeper, 3));
}
TEST(three_workers, without_marks_after_a_search_are_found_before_a_timer_wakes_them) {
  expect_found(plant::search_ends_unmarked, "no new marks, with timers", {.seeds = 20'000},
               in_runtime(forget_a_sleeper, 3));
}

// ---- spares and the monitor ----------------------------------------------------------------------------------------

/// Longer than `stall_after`, so that a spare is called.
constexpr std::int64_t long_ns = 40'000'000;

/// The only worker is held up until a fiber has run that was spawned there. Between the rounds the spare retires, or is
/// about to when it is called back.
void need_a_spare() {
  const with_monitor monitored;
  runtime_options o = workers(1);
  o.spare_workers = 2;
  runtime rt{o};
  const int rounds = 1 + static_cast<int>(pick(3));
  for (int round = 0; round < rounds; ++round) {
    rt.run([] {
      detail::atomic<int> ran{0};
      std::vector<join_handle<void>> fibers;
      for (int i = 0; i < 2; ++i)
        fibers.push_back(spawn([&ran] {
          if (pick(2) == 0) this_fiber::yield();
          ran.fetch_add(1, std::memory_order_acq_rel);
        }));
      while (ran.load(std::memory_order_acquire) != 2) detail::os_sleep(long_ns / 8);
      for (auto& f : fibers) f.join();
    });
    detail::os_sleep(pick(2) == 0 ? 1000 * pick(2000) : long_ns * pick(4));
  }
}
TEST(spares, come_for_what_a_stalled_worker_cannot_run) {
  expect_sound("spares", {.seeds = 600, .steps_most = 400'000}, need_a_spare);
}

/// Two spares at once, each stalled in turn, and timers of fibers that began on one which may have retired.
void need_two_spares() {
  const with_monitor monitored;
  runtime_options o = workers(1);
  o.spare_workers = 2;
  runtime rt{o};
  rt.run([] {
    detail::atomic<bool> over{false};
    auto hold_up = [&over] {
      while (!over.load(std::memory_order_acquire)) detail::os_sleep(long_ns / 8);
    };
    auto first = spawn(hold_up);
    auto last = spawn([&over] {
      this_fiber::sleep_for(std::chrono::microseconds{pick(3000)});
      over.store(true, std::memory_order_release);
    });
    hold_up();
    first.join();
    last.join();
    this_fiber::sleep_for(std::chrono::milliseconds{pick(100)});  // the timer may be a spare's
  });
}
TEST(spares, come_as_long_as_all_workers_are_stalled) {
  expect_sound("two spares", {.seeds = 600, .steps_most = 400'000}, need_two_spares);
}
TEST(spares, that_miss_their_call_are_found) {
  expect_found(plant::call_back_missed, "a call back missed", {.seeds = 20'000, .steps_most = 400'000}, need_a_spare);
}

TEST(spares, that_are_called_back_after_the_end_are_found) {
  expect_found(plant::monitor_ends_late, "a monitor that ends late", {.seeds = 20'000, .steps_most = 400'000},
               need_a_spare);
}

// ---- the reserve ---------------------------------------------------------------------------------------------------

/// Fibers sleep and wake, spawn and talk, while what computes comes and goes: so the reserve is called, gives away what
/// it has, leaves, is held up itself, and is called again.
void compute_and_wake() {
  detail::atomic<int> hogs{0};
  std::vector<join_handle<void>> fibers;
  for (int i = 0; i < 3; ++i)
    fibers.push_back(spawn([&hogs] {
      hogs.fetch_add(1, std::memory_order_acq_rel);
      detail::os_sleep(1'000'000 * (1 + pick(30)));
      hogs.fetch_sub(1, std::memory_order_acq_rel);
    }));
  channel<int> between{0};
  fibers.push_back(spawn([&between] {
    for (int i = 0; i < 4; ++i) static_cast<void>(between.send(i));
  }));
  for (int i = 0; i < 4; ++i) {
    this_fiber::sleep_for(std::chrono::microseconds{pick(4000)});
    check(between.recv() == i, "a message was lost");
    fibers.push_back(spawn([] { this_fiber::sleep_for(std::chrono::microseconds{pick(2000)}); }));
    if (pick(4) == 0) detail::os_sleep(1'000'000 * pick(8));  // now this is what holds the reserve up
  }
  for (auto& f : fibers) f.join();
  check(hogs.load(std::memory_order_relaxed) == 0, "something ended early");
}

void need_a_reserve() {
  const with_monitor monitored;
  runtime_options o = workers(1 + static_cast<int>(pick(2)));
  o.spare_workers = 1;
  runtime rt{o};
  rt.run(compute_and_wake);
}
TEST(reserves, run_what_wakes_beside_what_computes) {
  expect_sound("reserve", {.seeds = 600, .steps_most = 400'000}, need_a_reserve);
}
TEST(reserves, that_keep_what_they_have_are_found) {
  expect_found(plant::reserve_keeps_all, "reserve keeps all", {.seeds = 20'000, .steps_most = 400'000}, need_a_reserve);
}

/// The only spare is wanted after that, too: the count of those on duty is right.
void need_a_reserve_and_a_spare() {
  const with_monitor monitored;
  runtime_options o = workers(1);
  o.spare_workers = 1;
  runtime rt{o};
  rt.run([] {
    compute_and_wake();
    detail::atomic<bool> ran{false};
    auto other = spawn([&ran] { ran.store(true, std::memory_order_release); });
    while (!ran.load(std::memory_order_acquire)) detail::os_sleep(long_ns / 8);
    other.join();
  });
}
TEST(reserves, leave_the_spares_as_they_were) {
  expect_sound("reserve and spare", {.seeds = 600, .steps_most = 400'000}, need_a_reserve_and_a_spare);
}
TEST(reserves, that_leave_when_they_are_spares_are_found) {
  expect_found(plant::reserve_leaves_as_spare, "reserve leaves as a spare", {.seeds = 20'000, .steps_most = 400'000},
               need_a_reserve_and_a_spare);
}

/// A monitor looks at three workers that come and go.
void be_monitored() {
  const with_monitor monitored;
  runtime rt{workers(3)};
  const int rounds = 1 + static_cast<int>(pick(2));
  for (int round = 0; round < rounds; ++round) {
    rt.run(do_anything);
    if (pick(2) == 0) detail::os_sleep(20'000'000 * pick(3));  // the monitor falls asleep, or is about to
  }
}
TEST(monitor, of_three_workers_sleeps_and_wakes) { expect_sound("monitor of three", {.seeds = 400}, be_monitored); }

// ---- runtimes one after another, and beside each other
// -----------------------------------------------------------------

/// Channels and mutexes that outlive runtimes, whose workers' addresses and numbers come back; a plain thread uses them
/// all the while.
void restart() {
  auto all = std::make_unique<common>();
  channel<int> there;
  int sum = 0;
  {
    simulated_thread outside{[&] {
      while (const std::optional<int> v = there.recv()) {
        std::lock_guard guard{all->lock};
        all->counted += *v;
      }
    }};
    for (int life = 0; life < 3; ++life) {
      runtime rt{workers(1 + static_cast<int>(pick(3)))};
      const watch_at_rest watched{rt};
      auto sender = rt.spawn([&] {
        for (int i = 0; i < 2; ++i) static_cast<void>(there.send(10));
      });
      sum += 20 + rt.run([&] { return do_something(*all, 2); });
      if (pick(2) == 0) sender.join();
      else rt.spawn([s = std::move(sender)]() mutable { s.join(); }).join();
    }
    there.close();
  }
  check(sum == all->counted, "something was counted twice, or not at all");
}
TEST(runtimes, may_follow_each_other) { expect_sound("three lives", {.seeds = 1000}, restart); }

/// A fiber that knows of the end can start nothing any more.
void spawn_at_the_end() {
  detail::atomic<bool> begun{false};
  detail::atomic<bool> refused{false};
  {
    runtime rt{workers(2)};
    rt.spawn([&] {
        begun.store(true, std::memory_order_release);
        while (!this_fiber::stop_requested()) {
          detail::spin_pause();
          this_fiber::yield();
        }
        try {
          spawn([] {}).detach();
        } catch (const cancelled&) {
          refused.store(true, std::memory_order_relaxed);
        }
      }).detach();
    while (!begun.load(std::memory_order_acquire)) detail::os_sleep(1000);
  }
  check(refused.load(std::memory_order_relaxed), "a fiber that was told of the end started another");
}
TEST(runtimes, that_end_take_nothing_more) { expect_sound("spawn at the end", {.seeds = 2000}, spawn_at_the_end); }

void use_two() {
  common all;
  runtime a{workers(2)};
  runtime b{workers(1)};
  auto in_a = a.spawn([&all] { return do_something(all, 2); });
  auto in_b = b.spawn([&all] { return do_something(all, 2); });
  // A fiber of one waits for a fiber of the other.
  const int both = a.run([other = std::move(in_b)]() mutable { return other.join(); }) + in_a.join();
  check(both == all.counted, "something was counted twice, or not at all");
}
TEST(runtimes, may_run_beside_each_other) { expect_sound("two runtimes", {.seeds = 1000}, use_two); }

}  // namespace
}  // namespace ramie::interleave
