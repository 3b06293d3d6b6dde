// Behaviours of Java's StructuredTaskScope and ScopedValue (JEP 453, 505, 506; the JDK's test/jdk/java/util/concurrent/
// StructuredTaskScope/StructuredTaskScopeTest), as programs for ramie.
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class java : public with_workers {};
INSTANTIATE_TEST_SUITE_P(on, java, few_and_many());

// JEP 453, handle(): two subtasks, both results.
TEST_P(java, two_subtasks_make_one_response) {
  in_runtime([] {
    scope s;
    auto user = s.spawn([] { return std::string{"ada"}; });
    auto order = s.spawn([] {
      this_fiber::sleep_for(1ms);
      return 7;
    });
    s.join();
    EXPECT_EQ(user.get() + std::to_string(order.get()), "ada7");
  });
}

// testShutdownOnFailure: one fails, the other is interrupted; the failure is thrown.
TEST_P(java, shutdown_on_failure_interrupts_the_others) {
  in_runtime([] {
    std::atomic<int> begun{0}, interrupted{0};
    scope s;
    s.spawn([&] {
      ++begun;
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        ++interrupted;
        throw;
      }
    });
    await([&] { return begun == 1; });  // one that has not begun would be dropped
    s.spawn([] { throw std::runtime_error{"fetch"}; });
    EXPECT_THROW(s.join(), std::runtime_error);
    EXPECT_EQ(interrupted, 1);
  });
}

// testShutdownOnSuccess, race(): the first result wins.
TEST_P(java, the_first_of_several_wins) {
  in_runtime([] {
    for (int round = 0; round < 10; ++round) {
      std::optional<int> first;
      mutex guard;
      scope s;
      for (int i = 0; i < 5; ++i)
        s.spawn([&, i] {
          this_fiber::sleep_for(i == 2 ? 100us : 1h);
          const std::lock_guard lock{guard};
          if (!first) first = i;
          s.cancel();
        });
      s.join();
      EXPECT_EQ(first, 2);
    }
  });
}

// testJoinUntil: a deadline for the whole.
TEST_P(java, join_until_a_deadline) {
  in_runtime([] {
    std::atomic<int> ended{0};
    EXPECT_THROW(with_timeout(5ms,
                              [&] {
                                scope s;
                                this_fiber::yield();
                                auto r = s.spawn([&] {
                                  try {
                                    this_fiber::sleep_for(1h);
                                  } catch (const cancelled&) {
                                    ++ended;
                                    throw;
                                  }
                                  return 1;
                                });
                                s.join();
                                static_cast<void>(r.get());
                              }),
                 timeout_error);
    EXPECT_LE(ended, 1);
  });
}

// testForkAfterShutdown: a subtask that is forked after the shutdown does not run; its get says so.
TEST_P(java, a_subtask_forked_after_the_shutdown_is_unavailable) {
  in_runtime([] {
    scope s;
    s.cancel();
    auto late = s.spawn([] { return 1; });
    this_fiber::yield();
    auto later = s.spawn([] { return 2; });
    s.join();
    EXPECT_THROW(late.get(), child_cancelled);
    EXPECT_THROW(later.get(), child_cancelled);
  });
}

// testForkAfterJoin: the scope may be used again (Java refuses; ramie allows it).
TEST_P(java, a_scope_is_used_again_after_join) {
  in_runtime([] {
    scope s;
    int sum = 0;
    for (int i = 0; i < 5; ++i) {
      auto r = s.spawn([i] { return i; });
      s.join();
      sum += r.get();
    }
    EXPECT_EQ(sum, 10);
  });
}

// testCloseAwaits / testClose...: close waits for the threads even if join was not called.
TEST_P(java, close_waits_although_join_was_not_called) {
  in_runtime([] {
    std::atomic<bool> done{false};
    {
      scope s;
      s.spawn([&] {
        this_fiber::sleep_for(2ms);
        done = true;
      });
    }
    EXPECT_TRUE(done);
  });
}

// testInterruptJoin: the owner is interrupted in join; subtasks are interrupted, join throws.
TEST_P(java, an_interrupted_owner_interrupts_its_subtasks) {
  in_runtime([] {
    std::atomic<int> begun{0}, interrupted{0};
    auto owner = spawn([&] {
      scope s;
      this_fiber::yield();
      for (int i = 0; i < 3; ++i)
        s.spawn([&] {
          ++begun;
          try {
            this_fiber::sleep_for(1h);
          } catch (const cancelled&) {
            ++interrupted;
            throw;
          }
        });
      s.join();
    });
    await([&] { return begun == 3; });
    owner.request_stop();
    EXPECT_THROW(owner.join(), child_cancelled);
    EXPECT_EQ(interrupted, 3);
  });
}

// testForkNestedScopes of ensureOwner tests: subtasks open scopes of their own, closed before theirs ends.
TEST_P(java, subtasks_open_scopes_of_their_own) {
  in_runtime([] {
    std::atomic<int> leaves{0};
    scope outer;
    for (int i = 0; i < 4; ++i)
      outer.spawn([&] {
        scope inner;
        this_fiber::yield();
        for (int k = 0; k < 4; ++k)
          inner.spawn([&] {
            this_fiber::yield();
            ++leaves;
          });
        inner.join();
      });
    outer.join();
    EXPECT_EQ(leaves, 16);
  });
}

// JEP 453, "observability": a thread dump shows the tree; here each child has a name.
TEST_P(java, subtasks_have_names) {
  in_runtime([] {
    scope s;
    auto name = s.spawn(fiber_options{.name = "fetch order"}, [] { return std::string{this_fiber::name()}; });
    EXPECT_EQ(name.get(), "fetch order");
    s.join();
  });
}

// JEP 506: a scoped value bound around the scope is seen by subtasks that are forked inside.
TEST_P(java, scoped_values_are_inherited) {
  static fiber_local<int> principal{[] { return 0; }};
  in_runtime([] {
    *principal = 9;
    scope s;
    this_fiber::yield();
    std::vector<child_result<int>> seen;
    for (int i = 0; i < 10; ++i)
      seen.push_back(s.spawn([] {
        this_fiber::yield();
        return *principal;
      }));
    s.join();
    for (auto& r : seen) EXPECT_EQ(r.get(), 9);
  });
}

// testGet before join: here it waits for that subtask.
TEST_P(java, a_result_may_be_had_before_join) {
  in_runtime([] {
    scope s;
    auto slow = s.spawn([] {
      this_fiber::sleep_for(1ms);
      return 5;
    });
    EXPECT_EQ(slow.get(), 5);
    s.spawn([] { this_fiber::sleep_for(1h); });
    s.cancel();
    s.join();
  });
}

// A result that cannot be copied.
TEST_P(java, results_may_be_of_any_type) {
  in_runtime([] {
    scope s;
    auto r = s.spawn([] { return std::make_unique<int>(3); });
    s.join();
    EXPECT_EQ(*std::move(r.get()), 3);
  });
}

}  // namespace
}  // namespace ramie
