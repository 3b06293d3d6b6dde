// Workers that sleep in an event source (event_source.hpp, E1 to E6): the source is the test's, and its events come
// from a simulated thread.
#include "programs.hpp"

#include <ramie/machine/futex.hpp>
#include <ramie/ramie.hpp>
#include <ramie/task/wait.hpp>
#include <ramie/worker/event_source.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// What epoll is to the poller: events of a level, until they have been told; and an interruption.
class simulated_source final : public detail::event_source {
 public:
  int look(std::int64_t timeout_ns) noexcept override {
    check(!within_.exchange(true, std::memory_order_relaxed), "two threads look at once");
    if (timeout_ns != 0 && word_.load(std::memory_order_acquire) == 0) detail::futex_wait(word_, 0, timeout_ns);
    const std::uint32_t found = word_.exchange(0, std::memory_order_acq_rel) / event;
    ++looks_;
    within_.store(false, std::memory_order_relaxed);
    return static_cast<int>(found);
  }
  void dispatch() noexcept override {
    if (const std::uint64_t bits = waiter_.exchange(0, std::memory_order_acq_rel); bits != 0)
      detail::wake(detail::waiter_ref::from_bits(bits));
  }
  void interrupt() noexcept override {
    word_.fetch_or(1, std::memory_order_acq_rel);
    detail::futex_wake(word_);
  }
  [[nodiscard]] bool is_waited_for() noexcept override { return waiter_.load(std::memory_order_relaxed) != 0; }
  void end() noexcept override { ++ended_; }
  [[nodiscard]] int ended() const noexcept { return ended_; }

  /// From outside.
  void happen() noexcept {
    word_.fetch_add(event, std::memory_order_acq_rel);
    detail::futex_wake(word_);
  }
  /// For a fiber: until an event has been dispatched.
  void await() {
    detail::wait pause{detail::wait::kind::uninterruptible};
    waiter_.store(pause.ref().bits(), std::memory_order_release);
    pause.suspend();
  }

 private:
  static constexpr std::uint32_t event = 2;
  detail::atomic<std::uint32_t> word_{0};
  detail::atomic<std::uint64_t> waiter_{0};
  detail::atomic<bool> within_{false};
  int looks_ = 0;  // with the role: plain, so that the simulator sees whether the role hands it over
  int ended_ = 0;
};

/// A fiber waits for events, while others are spawned from outside, so that a worker in the source is woken for both.
template <int n>
void wait_for_events() {
  simulated_source source;
  {
    runtime rt{workers(n)};
    detail::atomic<int> served{0};
    auto waiter = rt.spawn([&] {
      check(&rt.internals().events.install(source) == &source, "another source was there");
      for (int i = 0; i < 3; ++i) {
        source.await();
        served.store(i + 1, std::memory_order_release);
      }
    });
    {
      simulated_thread outside{[&] {
        for (int i = 0; i < 3; ++i) {
          while (!source.is_waited_for()) detail::os_sleep(1000);
          wait_a_little();
          source.happen();
          while (served.load(std::memory_order_acquire) == i) detail::os_sleep(1000);
        }
      }};
      for (int i = 0; i < 4; ++i) {
        wait_a_little();
        check(rt.spawn([] { return 7; }).join() == 7, "a wrong result");
      }
    }
    waiter.join();
  }
}
TEST(an_event_source, serves_waiters_and_lets_itself_be_interrupted) {
  expect_sound("events, one worker", {.seeds = 1500, .time_flies = false}, wait_for_events<1>);
  expect_sound("events, two workers", {.seeds = 2000, .time_flies = false}, wait_for_events<2>);
  expect_sound("events, three workers", {.seeds = 1000, .time_flies = false}, wait_for_events<3>);
}
TEST(an_event_source, slept_in_without_a_fence_is_found) {
  expect_found(plant::source_sleep_no_fence, "E2 without its fence", {.seeds = 20'000, .time_flies = false},
               wait_for_events<1>);
}
TEST(an_event_source, woken_without_a_fence_is_found) {
  expect_found(plant::source_wake_no_fence, "E3 without its fence", {.seeds = 20'000, .time_flies = false},
               wait_for_events<1>);
}
TEST(an_event_source, whose_role_is_kept_is_found) {
  expect_found(plant::source_role_kept, "the role is kept", {.seeds = 20'000, .time_flies = false}, wait_for_events<2>);
}
TEST(an_event_source, whose_role_is_shared_is_found) {
  expect_found(plant::source_role_shared, "the role is shared", {.seeds = 20'000, .time_flies = false},
               wait_for_events<2>);
}

/// A fiber holds up the only worker, while another sleeps, which the reserve has to run (reserve.cpp). The reserve
/// rests in the source; when the worker gets on, both have to agree who is in there for the event that comes then.
void wait_beside_a_reserve() {
  const with_monitor monitored;
  simulated_source source;
  runtime_options o = workers(1);
  o.spare_workers = 1;
  runtime rt{o};
  std::int64_t told_ns = 0;
  detail::atomic<bool> hogged{true};
  auto waiter = rt.spawn([&] {
    rt.internals().events.install(source);
    source.await();
    check(detail::now_ns() - told_ns < 50'000'000, "nobody was in the source");
  });
  auto sleeper = rt.spawn([&] {
    for (std::uint64_t i = pick(3); i != 0; --i) this_fiber::sleep_for(1ms);
    hogged.store(false, std::memory_order_release);
  });
  auto hog = rt.spawn([&] {
    while (hogged.load(std::memory_order_acquire)) detail::os_sleep(500'000);
    detail::os_sleep(1000 * pick(3000));
  });
  hog.join();
  sleeper.join();
  detail::os_sleep(1000 * pick(40'000));
  while (!source.is_waited_for()) detail::os_sleep(1000);
  told_ns = detail::now_ns();
  source.happen();
  waiter.join();
}
TEST(an_event_source, has_somebody_in_it_when_the_reserve_has_left) {
  expect_sound("events, a reserve", {.seeds = 400, .steps_most = 400'000, .time_flies = false}, wait_beside_a_reserve);
}
TEST(an_event_source, left_alone_by_the_reserve_is_found) {
  expect_found(plant::source_left_alone, "the reserve leaves the source alone",
               {.seeds = 20'000, .steps_most = 400'000, .time_flies = false}, wait_beside_a_reserve);
}

/// A fiber holds up the only worker, so that the monitor polls, perhaps just as the worker falls asleep.
void wait_beside_the_monitor() {
  const with_monitor monitored;
  simulated_source source;
  runtime rt{workers(1)};
  std::int64_t told_ns = 0;
  auto waiter = rt.spawn([&] {
    rt.internals().events.install(source);
    source.await();
    check(detail::now_ns() - told_ns < 50'000'000, "nobody was in the source");
  });
  rt.spawn([] { detail::os_sleep(1000 * (1500 + pick(2500))); }).join();
  detail::os_sleep(1000 * pick(20'000));
  while (!source.is_waited_for()) detail::os_sleep(1000);
  told_ns = detail::now_ns();
  source.happen();
  waiter.join();
}
TEST(an_event_source, has_somebody_in_it_when_the_monitor_has_polled) {
  expect_sound("events, the monitor", {.seeds = 15'000, .time_flies = false}, wait_beside_the_monitor);
}
TEST(an_event_source, left_alone_by_the_monitor_is_found) {
  expect_found(plant::monitor_leaves_source, "the monitor leaves the source alone",
               {.seeds = 40'000, .time_flies = false}, wait_beside_the_monitor);
}

/// Two fibers install one each at once; the loser's has ended. A third worker looks into the winner's, which it did not
/// make.
void install_two() {
  std::array<std::unique_ptr<simulated_source>, 2> sources;
  runtime rt{workers(3)};
  std::vector<join_handle<void>> fibers;
  for (auto& mine : sources)
    fibers.push_back(rt.spawn([&] {
      mine = std::make_unique<simulated_source>();
      check(!rt.internals().events.install(*mine).is_waited_for(), "somebody waits for it");
      this_fiber::sleep_for(std::chrono::microseconds{pick(3)});
    }));
  for (auto& f : fibers) f.join();
  rt.shutdown();
  for (const auto& s : sources) check(s->ended() == 1, "a source was not ended once");
}
TEST(an_event_source, is_installed_once) { expect_sound("two sources", {.seeds = 2000}, install_two); }

}  // namespace
}  // namespace ramie::interleave
