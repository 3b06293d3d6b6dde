// What all waits have in common: stop requests, deadlines and shields reach them, in fibers, fork jobs and plain
// threads alike, and leave nothing behind.
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/future/future.hpp>
#include <ramie/future/promise.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/sync/barrier.hpp>
#include <ramie/sync/condition_variable.hpp>
#include <ramie/sync/event.hpp>
#include <ramie/sync/latch.hpp>
#include <ramie/sync/mutex.hpp>
#include <ramie/sync/once.hpp>
#include <ramie/sync/semaphore.hpp>
#include <ramie/sync/testing.hpp>
#include <ramie/sync/wait_group.hpp>

#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>

namespace ramie {
namespace {

using namespace sync_tests;

/// One of each primitive, and no waker.
struct closed {
  counting_semaphore<> semaphore{0};
  latch gate{1};
  wait_group group{1};
  event manual;
  event automatic{event_reset::automatic};
  barrier<> meet{1'000'000};
  promise<int> source;
  shared_future<int> result{source.get_future()};
  mutex guard;
  condition_variable changed;
};

struct way {
  const char* name;
  void (*wait)(closed& c);
};

const way ways[] = {
    {"semaphore", [](closed& c) { c.semaphore.acquire(); }},
    {"timed_semaphore", [](closed& c) { static_cast<void>(c.semaphore.try_acquire_for(1h)); }},
    {"latch", [](closed& c) { c.gate.wait(); }},
    {"timed_latch", [](closed& c) { static_cast<void>(c.gate.wait_for(1h)); }},
    {"wait_group", [](closed& c) { c.group.wait(); }},
    {"event", [](closed& c) { c.manual.wait(); }},
    {"automatic_event", [](closed& c) { c.automatic.wait(); }},
    {"timed_event", [](closed& c) { static_cast<void>(c.automatic.wait_for(1h)); }},
    {"barrier", [](closed& c) { c.meet.arrive_and_wait(); }},
    {"future", [](closed& c) { c.result.wait(); }},
    {"timed_future", [](closed& c) { c.result.wait_for(1h); }},
    {"condition_variable",
     [](closed& c) {
       std::unique_lock lock{c.guard};
       c.changed.wait(lock, [] { return false; });
     }},
    {"timed_condition_variable",
     [](closed& c) {
       std::unique_lock lock{c.guard};
       c.changed.wait_for(lock, 1h, [] { return false; });
     }},
};

class each_wait : public ::testing::TestWithParam<std::tuple<std::size_t, setting>> {
 protected:
  static void wait(closed& c) { ways[std::get<0>(GetParam())].wait(c); }
  template <class F>
  static void in_runtime(F&& f) {
    runtime_options o;
    o.workers = std::get<1>(GetParam()).workers;
    const detail::with_test_options migrating{{.migrate_always = std::get<1>(GetParam()).migrate}};
    runtime rt{o};
    rt.run(std::forward<F>(f));
  }
};
INSTANTIATE_TEST_SUITE_P(of, each_wait,
                         ::testing::Combine(::testing::Range(std::size_t{0}, std::size(ways)),
                                            ::testing::Values(setting{1, false}, setting{2, false}, setting{8, true})),
                         [](const auto& p) {
                           return std::string{ways[std::get<0>(p.param)].name} + "_" +
                                  ::testing::PrintToString(std::get<1>(p.param));
                         });

TEST_P(each_wait, ends_when_its_fiber_is_asked_to_stop) {
  in_runtime([] {
    closed c;
    expect_cancelled([&] { wait(c); });
    EXPECT_TRUE(c.guard.try_lock());
    c.guard.unlock();
  });
}

TEST_P(each_wait, ends_at_a_deadline_around_it) {
  const auto use = [] {
    closed c;
    EXPECT_THROW(with_timeout(1ms, [&] { wait(c); }), timeout_error);
    EXPECT_THROW(with_timeout(-1h, [&] { wait(c); }), timeout_error);
    EXPECT_TRUE(c.guard.try_lock());
    c.guard.unlock();
  };
  use();
  in_runtime(use);
}

TEST_P(each_wait, ends_in_a_fork_job_when_its_fiber_is_asked_to_stop) {
  in_runtime([] {
    closed c;
    auto h = spawn([&] { fork_join([&] { wait(c); }, [&] { wait(c); }); });
    let_others_run();
    h.request_stop();
    EXPECT_THROW(h.join(), cancelled);
  });
}

TEST_P(each_wait, ends_when_its_scope_fails) {
  in_runtime([] {
    closed c;
    EXPECT_THROW(
        {
          scope all;
          for (int i = 0; i < 3; ++i) all.spawn([&] { wait(c); });
          all.spawn([] {
            let_others_run();
            throw std::runtime_error{"enough"};
          });
          all.join();
        },
        std::runtime_error);
  });
}

TEST_P(each_wait, ends_when_the_runtime_ends) {
  closed c;
  in_runtime([&] {
    for (int i = 0; i < 3; ++i) spawn([&] { wait(c); }).detach();
    let_others_run();
  });
}

class no_wait : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, no_wait, settings(), ::testing::PrintToStringParamName());

TEST_P(no_wait, behind_a_shield_is_cut_short) {
  in_runtime([] {
    counting_semaphore<> s{0};
    event begun;
    bool got = false;
    auto h = spawn([&] {
      shield([&] {
        begun.set();
        s.acquire();
        got = true;
      });
      this_fiber::sleep_for(1h);
    });
    begun.wait();
    h.request_stop();
    let_others_run();
    s.release();
    EXPECT_THROW(h.join(), cancelled);
    EXPECT_TRUE(got);
  });
}

TEST_P(no_wait, for_a_mutex_is_cut_short_by_a_deadline) {
  in_runtime([] {
    mutex m;
    m.lock();
    event begun;
    bool got = false;
    auto h = spawn([&] {
      with_timeout(1us, [&] {
        begun.set();
        std::lock_guard guard{m};
        got = true;
      });
    });
    begun.wait();
    this_fiber::sleep_for(1ms);
    m.unlock();
    h.join();  // the result of f is passed on, even if late
    EXPECT_TRUE(got);
  });
}

TEST_P(no_wait, of_a_destructor_that_runs_for_a_cancellation_is_cut_short) {
  in_runtime([] {
    counting_semaphore<> s{0};
    event begun;
    bool got = false;
    struct closing {
      counting_semaphore<>& s;
      bool& got;
      ~closing() {
        s.acquire();
        got = true;
      }
    };
    auto h = spawn([&] {
      const closing at_end{s, got};
      begun.set();
      this_fiber::sleep_for(1h);
    });
    begun.wait();
    h.request_stop();
    let_others_run();
    s.release();
    EXPECT_THROW(h.join(), cancelled);
    EXPECT_TRUE(got);
  });
}

}  // namespace
}  // namespace ramie
