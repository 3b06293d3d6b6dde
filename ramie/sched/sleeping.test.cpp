// Workers that sleep and are woken, without a runtime: a thread of the test sleeps in the place of a worker.
#include <ramie/sched/sleeping.hpp>

#include <ramie/sched/testing.hpp>
#include <ramie/worker/event_source.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace ramie::detail {
namespace {

using testing::hold_until;
using testing::idle_crew;
using testing::idle_tasks;

/// A worker that sleeps in it has entered the idle set, and has looked at all queues for the last time (S1 to S3).
class bed : public event_source {
 public:
  int look(std::int64_t) noexcept override {
    taken.store(true, std::memory_order_release);
    hold_until([&] { return interrupted.exchange(false); });
    taken.store(false, std::memory_order_release);
    return 0;
  }
  void dispatch() noexcept override {}
  void interrupt() noexcept override { interrupted.store(true); }
  [[nodiscard]] bool is_waited_for() noexcept override { return false; }
  void end() noexcept override {}

  std::atomic<bool> taken{false};

 private:
  std::atomic<bool> interrupted{false};
};

class sleepers : public ::testing::Test {
 protected:
  /// Returns when worker `i` is in the idle set. It may still look at the queues.
  std::thread lay_down(std::size_t i) {
    std::thread thread{[this, i] { sleeping.sleep(workers[i]); }};
    hold_until([&] { return workers[i].idle.load(); });
    return thread;
  }
  /// Returns when worker `i` is asleep. For one of them: it sleeps in the only bed.
  std::thread sleep(std::size_t i) {
    events.install(place);
    std::thread thread = lay_down(i);
    hold_until([&] { return place.taken.load(); });
    return thread;
  }
  /// Each worker's next fork looks for sleepers.
  bool all_marked() const {
    for (std::size_t i = 0; i < workers.all.size(); ++i)
      if (workers[i].limit.load_relaxed() != nullptr) return false;
    return true;
  }
  void take_marks() {
    for (std::size_t i = 0; i < workers.all.size(); ++i) workers[i].limit.store_relaxed(workers[i].end - 1);
  }

  idle_crew workers{3};
  idle_tasks tasks{8};
  bed place;
  event_desk events;
  sleeper sleeping{workers.all, events};
};

TEST_F(sleepers, leave_the_last_one_awake_alone) {
  EXPECT_FALSE(sleeping.is_alone(workers[0]));
  std::thread one = lay_down(1);
  EXPECT_FALSE(sleeping.is_alone(workers[0]));
  workers[2].on_duty.store(false);
  EXPECT_TRUE(sleeping.is_alone(workers[0]));
  workers[2].on_duty.store(true);
  std::thread two = lay_down(2);
  EXPECT_TRUE(sleeping.is_alone(workers[0]));
  sleeping.wake_all();
  one.join();
  two.join();
}

TEST_F(sleepers, do_not_sleep_where_work_is_in_sight) {
  workers.all.injected.push_new(&tasks[0]);
  sleeping.sleep(workers[0]);
  EXPECT_TRUE(workers[0].searching);
  sleeping.end_search(workers[0]);
  static_cast<void>(workers.all.injected.pop(true, [](const stack&) { return true; }));

  workers[1].spawned.push(&tasks[0]);
  workers[1].spawned.push(&tasks[1]);
  sleeping.sleep(workers[0]);
  EXPECT_TRUE(workers[0].searching) << "two new tasks of another worker are a surplus";
}

TEST_F(sleepers, wake_when_a_timer_is_due) {
  timer_node soon;
  const std::int64_t deadline_ns = now_ns() + 1'000'000;
  workers[0].timers.add(soon, deadline_ns);
  sleeping.sleep(workers[0]);
  EXPECT_GE(now_ns(), deadline_ns);
  EXPECT_TRUE(workers[0].searching);
  workers[0].timers.remove(soon);
}

TEST_F(sleepers, are_woken_for_a_surplus_only) {
  EXPECT_FALSE(sleeping.hint());
  std::thread second = sleep(1);
  EXPECT_TRUE(sleeping.hint());
  workers[0].spawned.push(&tasks[0]);
  sleeping.published(&workers[0], 1);
  EXPECT_TRUE(sleeping.hint()) << "a single task is left to its worker";
  workers[0].spawned.push(&tasks[1]);
  sleeping.published(&workers[0], 2);
  second.join();
  EXPECT_FALSE(sleeping.hint());
  EXPECT_TRUE(workers[1].searching);
}

TEST_F(sleepers, are_woken_by_what_is_sent_to_them) {
  std::thread second = sleep(1);
  std::thread third = lay_down(2);
  workers[1].sent.push(&tasks[0]);
  sleeping.published_to(workers[1]);
  second.join();
  EXPECT_FALSE(workers[1].searching) << "it has something to do";
  EXPECT_TRUE(workers[2].idle.load());
  sleeping.wake_all();
  third.join();
}

TEST_F(sleepers, mark_all_fork_deques) {
  if (!asymmetric_fences) GTEST_SKIP() << "the marks are there for good";
  take_marks();
  std::thread second = sleep(1);
  EXPECT_TRUE(all_marked());
  sleeping.wake_all();
  second.join();
}

TEST_F(sleepers, are_woken_when_the_last_search_ends_and_work_is_in_sight) {
  ASSERT_TRUE(sleeping.begin_search(workers[0]));
  std::thread second = sleep(1);
  EXPECT_FALSE(sleeping.hint()) << "somebody searches";
  workers[0].spawned.push(&tasks[0]);
  workers[0].spawned.push(&tasks[1]);
  sleeping.published(&workers[0], 2);
  EXPECT_TRUE(workers[1].idle.load());
  take_marks();
  sleeping.end_search(workers[0]);
  second.join();
  EXPECT_TRUE(!asymmetric_fences || all_marked());
  EXPECT_TRUE(workers[1].searching);
}

TEST_F(sleepers, sleep_on_when_a_search_ends_and_nothing_is_in_sight) {
  ASSERT_TRUE(sleeping.begin_search(workers[0]));
  std::thread second = sleep(1);
  sleeping.end_search(workers[0]);
  EXPECT_TRUE(workers[1].idle.load());
  EXPECT_TRUE(sleeping.hint());
  sleeping.wake_one();
  second.join();
}

}  // namespace
}  // namespace ramie::detail
