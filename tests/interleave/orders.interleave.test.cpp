// What one side wrote before it ended, stopped or let go of something, the other side reads after it has heard of that:
// plain variables, which the simulator watches (plain_memory.hpp). And descriptors that pass from one fiber to the
// next.
#include "programs.hpp"

#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

// ---- requests to stop ----------------------------------------------------------------------------------------------

/// How a fiber hears that it is to stop.
enum class by : std::uint8_t { polling, asking_why, waiting, a_strand, a_region, a_blocking_call, spawning };

void hear_of_it(by how) {
  channel<int> never;
  try {
    switch (how) {
      case by::polling:
        while (!this_fiber::stop_requested()) {
          detail::spin_pause();
          this_fiber::yield();
        }
        return;
      case by::asking_why:
        while (this_fiber::why_stopped() == this_fiber::stop_cause::none) {
          detail::spin_pause();
          this_fiber::yield();
        }
        return;
      case by::waiting: never.recv(); break;
      case by::a_strand: fork_join([&] { never.recv(); }, [] { this_fiber::yield(); }); break;
      case by::a_region: with_timeout(1h, [&] { never.recv(); }); break;
      case by::a_blocking_call:
        blocking([] {});
        this_fiber::throw_if_stopped();
        never.recv();
        break;
      case by::spawning:
        for (;;) {
          spawn([] {}).detach();
          detail::os_sleep(1000 * pick(4));
          this_fiber::yield();
        }
    }
  } catch (const cancelled&) {
    return;
  }
  check(false, "it went on");
}

/// The fiber opens its first region, or has its first strand, just when it is stopped.
template <by how>
void stop_after_writing() {
  runtime rt{workers(2)};
  int written = 0;
  auto fiber = rt.spawn([&] {
    if (pick(2) == 0) this_fiber::yield();
    hear_of_it(how);
    check(written == 1, "what was written before request_stop is not seen");
  });
  {
    simulated_thread outside{[&] {
      wait_a_little();
      written = 1;
      fiber.request_stop();
    }};
  }
  try {
    fiber.join();
  } catch (const cancelled&) {
    check(how == by::a_blocking_call, "stopped before it began");
  }
}
TEST(a_request_to_stop, hands_over_what_was_written_before) {
  const exploration how{.seeds = 1500, .time_flies = false};
  expect_sound("stop, polled", how, stop_after_writing<by::polling>);
  expect_sound("stop, asked why", how, stop_after_writing<by::asking_why>);
  expect_sound("stop, waiting", how, stop_after_writing<by::waiting>);
  expect_sound("stop, strand", how, stop_after_writing<by::a_strand>);
  expect_sound("stop, region", how, stop_after_writing<by::a_region>);
  expect_sound("stop, blocking", how, stop_after_writing<by::a_blocking_call>);
}

/// As before, and it is its runtime that ends.
template <by how>
void shut_down_after_writing() {
  int written = 0;
  runtime rt{workers(2)};
  auto fiber = rt.spawn([&] {
    if (pick(2) == 0) this_fiber::yield();
    hear_of_it(how);
    check(written == 1, "what was written before the shutdown is not seen");
  });
  simulated_thread joiner{[&] {
    try {
      fiber.join();
    } catch (const cancelled&) {  // it had not begun
      check(written == 1, "what was written before the shutdown is not seen by the joiner");
    }
  }};
  wait_a_little();
  written = 1;
  rt.shutdown();
}
TEST(a_shutdown, hands_over_what_was_written_before) {
  const exploration how{.seeds = 1500, .time_flies = false};
  expect_sound("shutdown, polled", how, shut_down_after_writing<by::polling>);
  expect_sound("shutdown, asked why", how, shut_down_after_writing<by::asking_why>);
  expect_sound("shutdown, waiting", how, shut_down_after_writing<by::waiting>);
  expect_sound("shutdown, strand", how, shut_down_after_writing<by::a_strand>);
  expect_sound("shutdown, region", how, shut_down_after_writing<by::a_region>);
  expect_sound("shutdown, spawning", how, shut_down_after_writing<by::spawning>);
}

/// The call has begun, so it is waited for, however it ends beside the request.
void stop_amid_a_blocking_call() {
  runtime rt{workers(1)};
  for (int i = 0; i < 2; ++i) {
    auto fiber = rt.spawn([] {
      int result = 0;
      try {
        blocking([&] {
          wait_a_little();
          result = 5;
        });
      } catch (const cancelled&) {
        check(result == 0, "a call that was withdrawn ran");
        return;
      }
      check(result == 5, "what the call wrote is not seen");
    });
    {
      simulated_thread outside{[&] {
        wait_a_little();
        fiber.request_stop();
      }};
    }
    try {
      fiber.join();
    } catch (const cancelled&) {
    }
  }
}
TEST(a_request_to_stop, waits_for_a_blocking_call_that_has_begun) {
  expect_sound("stop amid a blocking call", {.seeds = 3000}, stop_amid_a_blocking_call);
}

/// Some of them begin or end meanwhile.
void stop_many_strands() {
  runtime rt{workers(2)};
  detail::atomic<int> ended{0};
  constexpr int n = 4;
  auto fiber = rt.spawn([&] {
    scope s;
    for (int i = 0; i < n; ++i)
      s.spawn(fiber_options{.name = "child"}, [&] {
        channel<int> never;
        try {
          if (pick(3) != 0) never.recv();
        } catch (const cancelled&) {
        }
        ended.fetch_add(1, std::memory_order_relaxed);
      });
    if (pick(2) == 0) s.cancel();
    s.join();
  });
  wait_a_little();
  fiber.request_stop();
  try {
    fiber.join();
  } catch (const cancelled&) {
  }
  check(ended.load(std::memory_order_relaxed) <= n, "a child ran twice");
}
TEST(a_request_to_stop, reaches_all_strands) {
  expect_sound("stop many strands", {.seeds = 2000, .time_flies = false}, stop_many_strands);
}
TEST(a_request_to_stop, that_does_not_know_a_strand_is_found) {
  expect_found(plant::strand_unlinked, "stop, strand unlinked", {.seeds = 20'000, .time_flies = false},
               stop_many_strands);
}

/// The stopper meets the stack when another fiber has it.
void stop_one_that_has_ended() {
  runtime rt{workers(1)};
  for (int i = 0; i < 2; ++i) {
    auto first = rt.spawn([] { this_fiber::sleep_for(std::chrono::microseconds{pick(3)}); });
    simulated_thread outside{[&] {
      wait_a_little();
      first.request_stop();
    }};
    auto second = rt.spawn([] {
      for (int k = 0; k < 3; ++k) this_fiber::sleep_for(std::chrono::microseconds{pick(4)});
    });
    second.join();  // it would throw `cancelled`
    outside.join();
    try {
      first.join();
    } catch (const cancelled&) {
    }
  }
}
TEST(a_request_to_stop, reaches_nobody_else) {
  expect_sound("stop one that has ended", {.seeds = 3000}, stop_one_that_has_ended);
}

// ---- ends ----------------------------------------------------------------------------------------------------------

template <bool selects>
void end_after_writing() {
  std::array<int, 2> written{};
  std::vector<join_handle<void>> fibers;
  for (int& w : written)
    fibers.push_back(spawn([&w] {
      if (pick(2) == 0) this_fiber::yield();
      w = 1;
    }));
  for (std::size_t i = 0; i < 2; ++i) {
    if constexpr (selects) {
      select(on_ready(fibers[i]));
    } else {
      while (!fibers[i].has_ended()) {
        detail::spin_pause();
        this_fiber::yield();
      }
    }
    check(written[i] == 1, "what a fiber wrote before its end is not seen");
  }
  for (auto& f : fibers) f.join();
}
TEST(an_end, hands_over_what_was_written_before) {
  expect_sound("has_ended", {.seeds = 2000}, in_runtime(end_after_writing<false>));
  expect_sound("on_ready", {.seeds = 2000}, in_runtime(end_after_writing<true>));
}

/// Nothing is sent: the last sender that goes closes the channel, after the others.
void drop_senders() {
  std::array<int, 2> written{};
  auto [to, from] = make_channel<int>();
  {
    std::vector<simulated_thread> threads;
    for (int& w : written)
      threads.emplace_back([&w, mine = std::make_shared<sender<int>>(to)]() mutable {
        w = 1;
        mine.reset();
      });
    to = {};
    check(from.recv() == std::nullopt, "something came");
    check(written[0] == 1 && written[1] == 1, "what was written before the last sender went is not seen");
  }
}
TEST(an_end, of_all_senders_hands_over_what_they_wrote) { expect_sound("senders", {.seeds = 3000}, drop_senders); }

// ---- what fibers of one family make late
// -----------------------------------------------------------------------------

/// Branches that use their fiber's locals at once, when it has no place for any yet. Making a value takes a while, so
/// that what was looked for in vain is there when it is added.
void make_locals_at_once() {
  static fiber_local<int> first{[] {
    wait_a_little();
    return 1;
  }};
  static fiber_local<int> second{[] {
    wait_a_little();
    return 2;
  }};
  for (int i = 0; i < 4; ++i)
    spawn([] {
      detail::atomic<int> there{0};
      const auto meet = [&there] {
        there.fetch_add(1, std::memory_order_relaxed);
        for (int k = 0; k < 40 && there.load(std::memory_order_relaxed) != 2; ++k) detail::os_sleep(500);
      };
      fork_join(
          [&] {
            meet();
            wait_a_little();
            check(*first == 1, "a wrong value");
            check(*second == 2, "a wrong value");
          },
          [&] {
            meet();
            check(*second == 2, "a wrong value");
            wait_a_little();
            check(*first == 1, "a wrong value");
          });
    }).join();
}
TEST(extras, may_be_made_at_once) { expect_sound("locals at once", {.seeds = 2000}, in_runtime(make_locals_at_once)); }

/// Children that ask for the name of their scope's owner, and wait, while it opens its first region.
void open_a_region_late() {
  for (int i = 0; i < 3; ++i)
    spawn(fiber_options{}, [] {
      scope s;
      detail::atomic<bool> begun{false};
      for (int k = 0; k < 2; ++k)
        s.spawn([&begun] {
          begun.store(true, std::memory_order_relaxed);
          for (int n = 0; n < 3; ++n) {
            check(this_fiber::name().empty(), "a wrong name");
            this_fiber::sleep_for(std::chrono::microseconds{pick(3)});
          }
        });
      for (int k = 0; k < 40 && !begun.load(std::memory_order_relaxed); ++k) detail::os_sleep(500);
      with_timeout(1h, [] { this_fiber::sleep_for(1us); });
      s.join();
    }).join();
}
TEST(extras, may_be_made_late) { expect_sound("a late region", {.seeds = 2000}, in_runtime(open_a_region_late)); }

/// A child that waits is stopped by way of its scope's owner, just when that one opens its first region.
void stop_beside_a_late_region() {
  runtime rt{workers(2)};
  auto owner = rt.spawn([] {
    scope s;
    s.spawn([] {
      channel<int> never;
      try {
        never.recv();
      } catch (const cancelled&) {
      }
    });
    detail::os_sleep(500 * pick(40));  // the child is stolen
    try {
      for (int i = 0; i < 3; ++i) with_timeout(1h, [] { this_fiber::sleep_for(1us); });
    } catch (const cancelled&) {
    }
    s.join();
  });
  {
    simulated_thread outside{[&] {
      wait_a_little();
      owner.request_stop();
    }};
  }
  try {
    owner.join();
  } catch (const cancelled&) {
  }
}
TEST(extras, may_be_made_beside_a_stop) {
  expect_sound("stop beside a late region", {.seeds = 2000, .time_flies = false}, stop_beside_a_late_region);
}

// ---- the end of a runtime
// --------------------------------------------------------------------------------------------

/// Fibers that end while they have just started others.
void leave_children_behind() {
  detail::atomic<int> begun{0};
  detail::atomic<int> over{0};
  {
    runtime rt{workers(2)};
    for (int i = 0; i < 2; ++i)
      rt.spawn([&] {
          if (pick(2) == 0) this_fiber::yield();
          try {
            spawn([&] {
              begun.fetch_add(1, std::memory_order_relaxed);
              try {
                this_fiber::sleep_for(1h);
              } catch (const cancelled&) {
              }
              over.fetch_add(1, std::memory_order_relaxed);
            }).detach();
          } catch (const cancelled&) {
          }
        }).detach();
    wait_a_little();
  }
  check(begun.load(std::memory_order_relaxed) == over.load(std::memory_order_relaxed), "a fiber outlived its runtime");
}
TEST(a_runtime, ends_after_what_its_fibers_started_last) {
  expect_sound("children left behind", {.seeds = 3000, .time_flies = false}, leave_children_behind);
}

/// The monitor goes to rest, or looks, or calls a spare, just when the runtime ends.
void end_beside_the_monitor() {
  const with_monitor monitored;
  runtime_options o = workers(1);
  o.spare_workers = static_cast<int>(pick(2));
  runtime rt{o};
  if (pick(2) == 0) {
    rt.run([] {
      spawn([] {}).detach();
      detail::os_sleep(20'000'000 * pick(8));
    });
  }
  detail::os_sleep(1'000'000 * pick(32));
}
TEST(a_runtime, ends_whatever_its_monitor_does) {
  expect_sound("end beside the monitor", {.seeds = 2000}, end_beside_the_monitor);
}

/// The sleeper that is to come for one of two tasks goes to sleep just when they are spawned.
void need_the_other_one() {
  runtime rt{workers(2)};
  rt.run([] {
    detail::atomic<bool> ran{false};
    detail::os_sleep(1000 * pick(60));
    std::array<join_handle<void>, 2> both;
    for (auto& one : both) one = spawn([&] { ran.store(true, std::memory_order_release); });
    while (!ran.load(std::memory_order_acquire)) detail::spin_pause();
    for (auto& one : both) one.join();
  });
}
TEST(a_sleeper, comes_for_the_last_tasks_spawned) {
  expect_sound("the other one", {.seeds = 3000, .steps_most = 30'000}, need_the_other_one);
}

}  // namespace
}  // namespace ramie::interleave
