// Behaviours of Kotlin's coroutines (kotlinx.coroutines: CoroutineScopeTest, SupervisorTest, AsyncTest,
// WithTimeoutTest, JobTest, and the guide's chapters on cancellation, timeouts and exceptions), as programs for ramie.
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class kotlin : public with_workers {};
INSTANTIATE_TEST_SUITE_P(on, kotlin, few_and_many());

// CoroutineScopeTest.testScope: coroutineScope returns only after what was launched in it.
TEST_P(kotlin, coroutine_scope_ends_after_what_it_launched) {
  in_runtime([] {
    std::vector<int> order{1};
    scope s;
    s.spawn([&] {
      this_fiber::sleep_for(1ms);
      order.push_back(2);
    });
    s.join();
    order.push_back(3);
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  });
}

// CoroutineScopeTest.testScopeCancelledFromWithin: the others end, nothing is thrown.
TEST_P(kotlin, a_scope_is_cancelled_from_within) {
  in_runtime([] {
    bool went_on = false;
    scope s;
    s.spawn([&] {
      this_fiber::sleep_for(1h);
      went_on = true;
    });
    s.spawn([&] { s.cancel(); });
    s.join();
    EXPECT_FALSE(went_on);
  });
}

// CoroutineScopeTest.testDocumentationExample: async results are awaited inside.
TEST_P(kotlin, async_children_bring_their_results) {
  in_runtime([] {
    scope s;
    auto one = s.spawn([] {
      this_fiber::sleep_for(1ms);
      return 13;
    });
    auto two = s.spawn([] { return 29; });
    EXPECT_EQ(one.get() + two.get(), 42);
    s.join();
    EXPECT_TRUE(one.is_ready() && two.is_ready());
    EXPECT_EQ(one.get(), 13) << "again";
  });
}

// AsyncTest.testAsyncWithException: await rethrows; so does the scope.
TEST_P(kotlin, async_children_fail_for_the_caller_of_get_and_for_the_scope) {
  in_runtime([] {
    scope s;
    auto bad = s.spawn([]() -> int { throw std::runtime_error{"no answer"}; });
    EXPECT_EQ(message_of<std::runtime_error>([&] { bad.get(); }), "no answer");
    EXPECT_EQ(message_of<std::runtime_error>([&] { s.join(); }), "no answer");
  });
}

// JobTest, "await of a cancelled Deferred": the cancellation is the child's, not the caller's.
TEST_P(kotlin, a_cancelled_child_says_whose_cancellation_it_is) {
  in_runtime([] {
    scope s;
    auto slow = s.spawn([] {
      this_fiber::sleep_for(1h);
      return 1;
    });
    this_fiber::sleep_for(1ms);
    s.spawn([] { throw 8; });
    EXPECT_THROW(s.join(), int);
    EXPECT_THROW(slow.get(), child_cancelled);
    EXPECT_EQ(this_fiber::why_stopped(), this_fiber::stop_cause::none);
  });
}

// Guide, "Structured concurrency with async": the first failure cancels the other, which sees it in its finally.
TEST_P(kotlin, a_failed_sum_cancels_the_other_half) {
  in_runtime([] {
    std::atomic<bool> begun{false}, first_cancelled{false};
    const auto failed_sum = [&] {
      scope s;
      auto one = s.spawn([&] {
        begun = true;
        try {
          this_fiber::sleep_for(1h);
        } catch (const cancelled&) {
          first_cancelled = true;
          throw;
        }
        return 42;
      });
      await([&] { return begun.load(); });  // one that has not begun would be dropped
      auto two = s.spawn([]() -> int { throw std::domain_error{"arithmetic"}; });
      s.join();
      return one.get() + two.get();
    };
    EXPECT_THROW(failed_sum(), std::domain_error);
    EXPECT_TRUE(first_cancelled);
  });
}

// SupervisorTest.testSupervisorScope: if children handle their failures, their siblings continue.
TEST_P(kotlin, children_that_handle_their_failures_leave_siblings_alone) {
  in_runtime([] {
    std::atomic<int> handled{0}, finished{0};
    scope s;
    for (int i = 0; i < 10; ++i)
      s.spawn([&, i] {
        try {
          this_fiber::yield();
          if (i % 2 == 0) throw i;
          ++finished;
        } catch (int) {
          ++handled;
        }
      });
    s.join();
    EXPECT_EQ(handled, 5);
    EXPECT_EQ(finished, 5);
  });
}

// WithTimeoutTest.testNestedTimeout, testInnerTimeoutTest: the exception leaves the level whose deadline passed.
TEST_P(kotlin, with_timeout_throws_from_the_right_level) {
  in_runtime([] {
    std::string levels;
    with_timeout(1h, [&] {
      try {
        with_timeout(1ms, [] { this_fiber::sleep_for(1h); });
      } catch (const timeout_error&) {
        levels += "inner";
      }
    });
    EXPECT_EQ(levels, "inner");
  });
}

// WithTimeoutTest.testSuppressExceptionWithResult: a body that swallows the cancellation returns its result.
TEST_P(kotlin, a_result_in_spite_of_the_timeout_is_returned) {
  in_runtime([] {
    const int got = with_timeout(1ms, [] {
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
      }
      return 7;
    });
    EXPECT_EQ(got, 7);
  });
}

// WithTimeoutTest of launched children: a timeout reaches all generations.
TEST_P(kotlin, a_timeout_reaches_all_generations) {
  in_runtime([] {
    std::atomic<int> begun{0}, ended{0};
    struct life {
      std::atomic<int>& n;
      life(std::atomic<int>& from, std::atomic<int>& to) : n{to} { ++from; }
      ~life() { ++n; }
    };
    EXPECT_THROW(with_timeout(10ms,
                              [&] {
                                scope a;
                                a.spawn([&] {
                                  const life one{begun, ended};
                                  this_fiber::yield();
                                  scope b;
                                  b.spawn([&] {
                                    const life two{begun, ended};
                                    this_fiber::yield();
                                    a.spawn([&] {
                                      const life three{begun, ended};
                                      this_fiber::sleep_for(1h);
                                    });
                                    this_fiber::sleep_for(1h);
                                  });
                                  b.join();
                                });
                                a.join();
                              }),
                 timeout_error);
    EXPECT_EQ(begun, ended);
  });
}

// Guide, "Run non-cancellable block": withContext(NonCancellable) in a finally.
TEST_P(kotlin, a_finally_block_may_wait_in_a_shield) {
  in_runtime([] {
    std::atomic<bool> closed{false};
    auto job = spawn([&] {
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        shield([&] {
          scope s;
          this_fiber::sleep_for(1ms);
          s.spawn([&] {
            this_fiber::sleep_for(1ms);
            closed = true;
          });
          s.join();
        });
        throw;
      }
    });
    this_fiber::sleep_for(1ms);
    job.request_stop();
    EXPECT_THROW(job.join(), child_cancelled);
    EXPECT_TRUE(closed);
  });
}

// Guide, "Making computation code cancellable": isActive.
TEST_P(kotlin, computations_ask_whether_they_are_active) {
  in_runtime([] {
    auto job = spawn([] {
      long turns = 1;
      for (; !this_fiber::stop_requested(); ++turns) this_fiber::yield();
      return turns;
    });
    this_fiber::sleep_for(1ms);
    job.request_stop();
    EXPECT_GT(job.join(), 0);
  });
}

// JobTest.testCancelledParent: children that are added later are born cancelled.
TEST_P(kotlin, children_of_a_stopped_fiber_are_born_stopped) {
  in_runtime([] {
    std::atomic<int> stopped{0};
    auto job = spawn([&] {
      await([] { return this_fiber::stop_requested(); });
      scope s;
      for (int i = 0; i < 3; ++i)
        s.spawn([&] {
          EXPECT_EQ(this_fiber::why_stopped(), this_fiber::stop_cause::requested);
          try {
            this_fiber::sleep_for(1h);
          } catch (const cancelled&) {
            ++stopped;
            throw;
          }
        });
      s.join();
    });
    job.request_stop();
    EXPECT_THROW(job.join(), child_cancelled);
    EXPECT_GE(stopped, 1);
  });
}

// CoroutineName: children show the name they were given, else their parent's.
TEST_P(kotlin, names_are_inherited_and_replaced) {
  in_runtime([] {
    auto parent = spawn(fiber_options{.name = "parent"}, [] {
      std::string given, inherited;
      scope s;
      s.spawn(fiber_options{.name = "child"}, [&] { given = this_fiber::name(); });
      s.spawn([&] { inherited = this_fiber::name(); });
      s.join();
      EXPECT_EQ(given, "child");
      EXPECT_EQ(inherited, "parent");
    });
    parent.join();
  });
}

// ThreadContextElementTest: a context value set by the parent is seen in children, before and after suspensions.
TEST_P(kotlin, context_values_are_seen_by_children) {
  static fiber_local<std::string> user;
  in_runtime([] {
    *user = "ada";
    std::atomic<int> right{0};
    scope s;
    s.spawn([&] { right += *user == "ada" ? 1 : 0; });
    this_fiber::yield();
    s.spawn([&] {
      this_fiber::yield();
      right += *user == "ada" ? 1 : 0;
    });
    s.join();
    EXPECT_EQ(right, 2);
  });
}

}  // namespace
}  // namespace ramie
