// Whole runtimes: two workers, the threads around them, and programs of a few fibers. Without the monitor, which would
// recover lost wake-ups, except where it is under test.
#include "programs.hpp"

#include <ramie/machine/spin_lock.hpp>
#include <ramie/ramie.hpp>
#include <ramie/task/wait.hpp>
#include <ramie/worker/worker.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

// ---- fork and join -------------------------------------------------------------------------------------------------

void fork_some() {
  std::array<int, 6> ran{};
  for (int i = 0; i < 2; ++i) {
    ran = {};
    fork_join([&] { fork_join([&] { ++ran[0]; }, [&] { ++ran[1]; }); },
              [&] { fork_join([&] { ++ran[2]; }, [&] { ++ran[3]; }); });
    fork_join([&] { ++ran[4]; }, [&] { ++ran[5]; });
    for (const int times : ran) check(times == 1, "a fork job did not run once");
  }
}
TEST(fork_join, runs_each_job_once) { expect_sound("fork_join", {.seeds = 1500}, in_runtime(fork_some)); }
TEST(fork_join, without_its_fence_is_found) {
  expect_found(plant::fork_deque_no_fence, "fork_join, no fence", {.seeds = 20'000}, in_runtime(fork_some));
}

/// Joins of younger jobs store what the thief of an older one reads.
void fork_below_others() {
  for (int i = 0; i < 6; ++i) {
    std::array<int, 3> ran{};
    fork_join(
        [&] {
          fork_join([&] { ++ran[0]; },
                    [&] {
                      ++ran[1];
                      for (auto steps = pick(16); steps > 0; --steps) step();
                    });
        },
        [&] { ++ran[2]; });
    check(ran[2] == 1, "a fork job did not run once");
  }
}
TEST(fork_join, publishes_older_jobs_with_younger_ones) {
  expect_sound("older jobs", {.seeds = 10'000}, in_runtime(fork_below_others));
}

/// Children that block: their parents' jobs are promoted.
void fork_and_block() {
  channel<int> c;
  std::array<int, 3> ran{};
  int got = 0;
  fork_join(
      [&] {
        fork_join([&] { got = c.recv().value_or(0); }, [&] { ++ran[0]; });
        ++ran[1];
      },
      [&] {
        static_cast<void>(c.send(7));
        ++ran[2];
      });
  check(got == 7, "the element did not arrive");
  for (const int times : ran) check(times == 1, "a fork job did not run once");
}
TEST(promotion, runs_each_job_once) {
  expect_sound("promotion", {.seeds = 1500}, in_runtime(fork_and_block));
  expect_sound("promotion, one worker", {.seeds = 300}, in_runtime(fork_and_block, 1));
}
TEST(promotion, of_a_job_that_runs_twice_is_found) {
  expect_found(plant::promoted_job_unclaimed, "promoted job unclaimed", {.seeds = 20'000}, in_runtime(fork_and_block));
}

// ---- spawning from outside, joining, sleeping workers --------------------------------------------------------------

void spawn_from_outside() {
  runtime rt{workers(2)};
  int sum = 0;
  {
    simulated_thread other{[&] {
      for (int i = 0; i < 2; ++i) {
        check(rt.spawn([] { return 5; }).join() == 5, "a wrong result");
        if (pick(2) == 0) detail::os_sleep(1000 * pick(100));  // meanwhile workers fall asleep
      }
    }};
    for (int i = 0; i < 2; ++i) {
      sum += rt.spawn([] {
                 auto inner = ramie::spawn([] { return 1; });
                 this_fiber::yield();
                 return inner.join();
               }).join();
      if (pick(2) == 0) detail::os_sleep(1000 * pick(100));
    }
  }
  check(sum == 2, "a wrong sum");
}
TEST(sleepers, are_woken_for_what_is_injected) { expect_sound("injection", {.seeds = 1500}, spawn_from_outside); }
TEST(sleepers, that_do_not_look_again_are_found) {
  expect_found(plant::sleep_without_look, "sleep without a look", {.seeds = 20'000}, spawn_from_outside);
}
TEST(sleepers, announced_too_early_are_found) {
  expect_found(plant::injection_unannounced, "injection announced too early", {.seeds = 20'000}, spawn_from_outside);
}
TEST(joining, a_joiner_that_is_overlooked_is_found) {
  expect_found(plant::join_unnoticed, "join unnoticed", {.seeds = 20'000}, spawn_from_outside);
}

/// Fork jobs and new tasks that only another worker can run, because their own is held up.
void need_a_sleeper() {
  fork_join([] {}, [] {});  // each worker's first fork looks for sleepers in any case
  detail::atomic<bool> ran{false};
  fork_join(
      [&] {
        if (pick(2) == 0) detail::os_sleep(1000 * pick(120));
        while (!ran.load(std::memory_order_acquire)) detail::spin_pause();
      },
      [&] { ran.store(true, std::memory_order_release); });
}
TEST(sleepers, come_for_fork_jobs) {
  expect_sound("fork job for a sleeper", {.seeds = 1500, .steps_most = 20'000}, in_runtime(need_a_sleeper));
}
TEST(sleepers, without_their_fence_are_found) {
  // No other worker can run the job, so it spins for ever.
  expect_found(plant::sleep_no_fence, "sleep, no fence", {.seeds = 20'000, .steps_most = 20'000},
               in_runtime(need_a_sleeper));
}

// ---- parking and waking --------------------------------------------------------------------------------------------

void play_ping_pong() {
  channel<int> there;
  channel<int> back{1};
  auto other = spawn([&] {
    while (const std::optional<int> v = there.recv()) static_cast<void>(back.send(*v + 1));
  });
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(there.send(i));
    if (pick(3) == 0) this_fiber::yield();
    check(back.recv() == i + 1, "a wrong answer");
  }
  there.close();
  other.join();
}
void play_with_a_thread() {
  runtime rt{workers(2)};
  channel<int> there;
  channel<int> back;
  auto fiber = rt.spawn([&] {
    while (const std::optional<int> v = there.recv()) static_cast<void>(back.send(*v + 1));
  });
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(there.send(i));
    check(back.recv() == i + 1, "a wrong answer");
  }
  there.close();
  fiber.join();
}
TEST(parking, loses_no_wake_up) {
  expect_sound("ping-pong", {.seeds = 1000}, in_runtime(play_ping_pong));
  expect_sound("ping-pong with a thread", {.seeds = 1000}, play_with_a_thread);
}
TEST(parking, a_fiber_woken_before_it_left_is_found) {
  expect_found(plant::waiter_woken_too_early, "woken too early", {.seeds = 20'000}, play_with_a_thread);
}

/// A fiber that waits in a place with a lock, a waker that wakes it there, and an inspector that holds the wait and
/// leaves it or cancels it.
template <detail::wait::wakers by, int n = 1>
void claim_beside_an_inspector() {
  runtime rt{workers(n)};
  detail::spin_lock lock;
  detail::waiter_ref place;  // under the lock
  detail::atomic<detail::stack*> where{nullptr};
  detail::atomic<bool> over{false};
  int handed = 0;
  int woken = 0;
  int stopped = 0;
  int claims = 0;
  int stops = 0;
  {
    auto fiber = rt.spawn([&] {
      where.store(detail::current_worker()->running, std::memory_order_release);
      for (int i = 0; i < 5; ++i) {
        lock.lock();
        detail::wait pause{detail::wait::kind::cancellable, {"test", {}}, by};
        place = pause.ref();
        lock.unlock();
        if (pick(3) == 0) detail::os_sleep(pick(3000));  // preempted before it suspends
        if (pause.suspend() == detail::wake_reason::event) {
          check(++woken == handed, "woken without what was to be handed over");
        } else {
          ++stopped;
          std::lock_guard guard{lock};
          place = {};
        }
      }
      over.store(true, std::memory_order_release);
    });
    simulated_thread waker{[&] {
      while (!over.load(std::memory_order_acquire)) {
        lock.lock();
        detail::claimed_wait won;
        if (place) won = detail::claim(std::exchange(place, {}));
        lock.unlock();
        if (!won) {
          detail::spin_pause();
          continue;
        }
        ++handed;
        ++claims;
        won.go_on();
      }
    }};
    simulated_thread inspector{[&] {
      for (int i = 0; i < 12 && !over.load(std::memory_order_acquire); ++i) {
        bool cancel = pick(3) == 0;
        detail::stack* s = where.load(std::memory_order_acquire);
        if (s == nullptr) continue;
        const detail::inspection here;
        if (const std::uint32_t word = pick(2) == 0 ? detail::try_hold_parked(here, *s) : 0; word != 0)
          detail::let_stand(*s, word);
        else if (detail::inspect_and_cancel(
                     here, *s, [](const void* yes, const void*) { return *static_cast<const bool*>(yes); }, &cancel))
          ++stops;
      }
    }};
    fiber.join();
  }
  check(woken == claims && stopped == stops, "a wait was won twice, or by nobody");
}
constexpr auto claim_under_a_lock = &claim_beside_an_inspector<detail::wait::wakers::under_one_lock>;
constexpr auto claim_as_any = &claim_beside_an_inspector<detail::wait::wakers::any>;
constexpr auto claim_and_move_on = &claim_beside_an_inspector<detail::wait::wakers::any, 2>;  // it resumes elsewhere
TEST(parking, is_claimed_once_beside_inspectors) {
  expect_sound("claims under a lock", {.seeds = 4000}, claim_under_a_lock);
  expect_sound("claims by anybody", {.seeds = 2000}, claim_as_any);
  expect_sound("claims by anybody, two workers", {.seeds = 2000}, claim_and_move_on);
}
TEST(parking, without_its_second_look_is_found) {
  expect_found(plant::parked_without_look, "parked without a look", {.seeds = 20'000}, claim_as_any);
}
TEST(parking, without_its_light_fence_is_found) {  // in the runs with full fences
  expect_found(plant::parked_no_fence, "parked without a fence", {.seeds = 20'000}, claim_as_any);
}
TEST(parking, an_early_claim_without_its_fence_is_found) {
  expect_found(plant::early_claim_no_fence, "early claim, no fence", {.seeds = 20'000}, claim_as_any);
}
TEST(parking, an_early_claim_that_is_settled_twice_is_found) {
  expect_found(plant::early_claim_settled_twice, "early claim settled twice", {.seeds = 20'000}, claim_as_any);
}
TEST(parking, a_claim_beside_an_inspector_is_found) {
  expect_found(plant::claimed_beside_inspector, "claimed beside an inspector", {.seeds = 200'000}, claim_under_a_lock);
}

/// A wait that parks leaves its mark behind, and those after it are over before they park, until the epoch has come
/// round to that mark (W8).
void wait_until_the_epoch_comes_round() {
  runtime rt{workers(1)};
  rt.run([] {
    for (int round = 0; round < 2; ++round) {
      const auto begin = detail::os_now();
      this_fiber::sleep_for(10us);
      check(detail::os_now() - begin >= 10us, "a sleep was cut short by the wake-up of a wait before it");
      for (int i = 0; i < 65; ++i) {
        bool over = false;
        try {
          with_timeout(0ns, [] { this_fiber::sleep_for(1h); });
        } catch (const timeout_error&) {
          over = true;
        }
        check(over, "a wait without time was not over");
      }
      this_fiber::yield();
    }
  });
}
TEST(parking, outlives_its_epochs) { expect_sound("epochs", {.seeds = 300}, wait_until_the_epoch_comes_round); }
TEST(parking, whose_mark_outlives_the_epochs_is_found) {
  expect_found(plant::mark_outlives_epochs, "mark outlives epochs", {.seeds = 20'000},
               wait_until_the_epoch_comes_round);
}

void sleep_and_time_out() {
  channel<int> nothing;
  auto a = spawn([&] { check(nothing.recv_for(20us) == std::nullopt, "something came"); });
  auto b = spawn([] { this_fiber::sleep_for(30us); });
  fork_join([] { this_fiber::sleep_for(10us); }, [] { this_fiber::sleep_for(5us); });
  a.join();
  b.join();
}
TEST(parking, ends_in_time) { expect_sound("timeouts", {.seeds = 1000}, in_runtime(sleep_and_time_out)); }

// ---- cancellation --------------------------------------------------------------------------------------------------

void cancel_a_receiver() {
  runtime rt{workers(2)};
  for (int i = 0; i < 2; ++i) {
    channel<int> nothing;
    auto fiber = rt.spawn([&] { nothing.recv(); });
    if (pick(2) == 0) detail::os_sleep(1000 * pick(10));
    fiber.request_stop();
    bool was_cancelled = false;
    try {
      fiber.join();
    } catch (const cancelled&) {
      was_cancelled = true;
    }
    check(was_cancelled, "it was not cancelled");
  }
}
TEST(cancellation, reaches_whoever_waits) { expect_sound("cancellation", {.seeds = 1500}, cancel_a_receiver); }
TEST(cancellation, without_its_fence_is_found) {
  expect_found(plant::cancelled_unfenced, "cancelled, no fence", {.seeds = 20'000}, cancel_a_receiver);
}

void fail_in_a_scope() {
  channel<int> nothing;
  bool failed = false;
  try {
    scope s;
    s.spawn([&] { nothing.recv(); });
    s.spawn([] { throw 3; });
    s.spawn([&] { fork_join([&] { nothing.recv(); }, [] {}); });
    s.join();
  } catch (int code) {
    failed = code == 3;
  }
  check(failed, "the failure was not rethrown");
}
TEST(cancellation, of_a_scope_reaches_all_children) {
  expect_sound("a scope that fails", {.seeds = 1500}, in_runtime(fail_in_a_scope));
}

void time_out_around() {
  channel<int> nothing;
  bool timed_out = false;
  try {
    with_timeout(15us, [&] { fork_join([&] { nothing.recv(); }, [&] { nothing.recv(); }); });
  } catch (const timeout_error&) {
    timed_out = true;
  }
  check(timed_out, "no timeout");
}
TEST(cancellation, comes_with_a_deadline) { expect_sound("deadline", {.seeds = 1000}, in_runtime(time_out_around)); }

// ---- the end of a runtime ------------------------------------------------------------------------------------------

void shut_down_with_work_in_flight() {
  channel<int> nothing;
  std::vector<join_handle<void>> fibers;
  int told = 0;
  {
    runtime rt{workers(2)};
    for (int i = 0; i < 3; ++i)
      fibers.push_back(rt.spawn([&nothing, i] {
        if (i == 0) this_fiber::sleep_for(1h);
        else nothing.recv();
      }));
    if (pick(2) == 0) detail::os_sleep(1000 * pick(50));
  }
  for (auto& f : fibers) {
    try {
      f.join();
    } catch (const cancelled&) {
      ++told;
    }
  }
  check(told == 3, "a fiber was not told of the shutdown");
}
TEST(shutdown, ends_what_is_in_flight) {
  expect_sound("shutdown", {.seeds = 1000, .time_flies = false}, shut_down_with_work_in_flight);
}

// ---- actors --------------------------------------------------------------------------------------------------------

struct add {
  int amount;
};
struct total {};
class sum_actor : public actor<sum_actor> {
 public:
  void on(add m) { sum_ += m.amount; }
  int on(total) const { return sum_; }

 private:
  int sum_ = 0;
};

void tell_and_ask() {
  auto ref = spawn_actor<sum_actor>();
  auto teller = spawn([ref]() mutable {
    ref.tell(add{1});
    this_fiber::yield();
    ref.tell(add{2});
  });
  fork_join([&] { ref.tell(add{4}); }, [&] { ref.tell(add{8}); });
  teller.join();
  check(ref.ask(total{}) == 15, "a message was lost or came twice");
  ref.stop();
  ref.join();
}
TEST(actors, get_all_their_mail) { expect_sound("actors", {.seeds = 1000}, in_runtime(tell_and_ask)); }
/// It is killed from another worker just when it becomes idle, and nobody sends anything afterwards.
void kill_while_it_rests() {
  auto ref = spawn_actor<sum_actor>();
  auto killer = spawn([ref] {
    if (pick(2) == 0) this_fiber::yield();
    ref.kill();
  });
  ref.tell(add{1});
  killer.join();
  check(ref.join().kind() == exit_kind::killed, "a strange end");
}
TEST(actors, are_killed_while_they_rest) {
  expect_sound("kill while it rests", {.seeds = 1000}, in_runtime(kill_while_it_rests));
}
TEST(actors, that_rest_in_spite_of_an_interrupt_are_found) {
  expect_found(plant::interrupt_unnoticed, "interrupt unnoticed", {.seeds = 20'000}, in_runtime(kill_while_it_rests));
}
TEST(actors, that_rest_without_a_look_are_found) {
  expect_found(plant::mail_unnoticed, "mail unnoticed", {.seeds = 20'000}, in_runtime(tell_and_ask));
}

// ---- the monitor, and helper threads -------------------------------------------------------------------------------

void be_monitored() {
  const with_monitor monitored;
  runtime rt{workers(2)};
  rt.run([] {
    auto a = spawn([] { detail::os_sleep(30'000'000); });  // longer than a worker may be held up
    auto b = spawn([] { this_fiber::sleep_for(1ms); });
    a.join();
    b.join();
  });
  detail::os_sleep(100'000'000);  // the monitor falls asleep
  check(rt.run([] { return 3; }) == 3, "a wrong result");
}
TEST(monitor, sleeps_and_wakes) { expect_sound("monitor", {.seeds = 500}, be_monitored); }

void call_helpers() {
  const int a = blocking([] { return 1; });
  auto b = spawn([] { return blocking([] { return 2; }); });
  check(a + b.join() == 3, "a wrong result");
}
TEST(blocking_calls, come_back) { expect_sound("blocking", {.seeds = 500}, in_runtime(call_helpers)); }

}  // namespace
}  // namespace ramie::interleave
