// Behaviours after Trio's tests (trio/_core/_tests/test_run.py, trio/_tests/test_timeouts.py and the manual's chapter
// on nurseries and cancel scopes), as programs for ramie. Each names its test or section.
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class nurseries : public with_workers {};
class cancel_scopes : public with_workers {};
INSTANTIATE_TEST_SUITE_P(trio, nurseries, few_and_many());
INSTANTIATE_TEST_SUITE_P(trio, cancel_scopes, few_and_many());

// test_nursery_warn_use_async_with, "nurseries wait": a block does not end before its children, join or no join.
TEST_P(nurseries, wait_at_the_end_of_the_block) {
  in_runtime([] {
    std::atomic<int> ran{0};
    {
      scope s;
      for (int i = 0; i < 10; ++i)
        s.spawn([&] {
          this_fiber::sleep_for(1ms);
          ++ran;
        });
    }
    EXPECT_EQ(ran, 10);
    {
      scope s;
      this_fiber::yield();
      for (int i = 0; i < 10; ++i)
        s.spawn([&] {
          this_fiber::sleep_for(1ms);
          ++ran;
        });
    }
    EXPECT_EQ(ran, 20);
  });
}

// test_child_crash_basic: the exception of a child comes out of the block.
TEST_P(nurseries, pass_on_a_childs_exception) {
  in_runtime([] {
    scope s;
    s.spawn([] { throw std::runtime_error{"uh oh"}; });
    EXPECT_EQ(message_of<std::runtime_error>([&] { s.join(); }), "uh oh");
  });
}

// test_child_crash_wakes_parent: the parent is in the block and waits for something else; here it waits in join.
TEST_P(nurseries, wake_a_parent_that_waits_for_another_child) {
  in_runtime([] {
    scope s;
    s.spawn([] { this_fiber::sleep_for(1h); });
    this_fiber::yield();
    s.spawn([] { throw std::runtime_error{"crash"}; });
    EXPECT_THROW(s.join(), std::runtime_error);
  });
}

// test_root_task_cancelled_on_crash of siblings: a crash cancels the siblings, whose clean-up runs.
TEST_P(nurseries, cancel_siblings_on_a_crash) {
  in_runtime([] {
    std::atomic<int> begun{0}, cleaned{0};
    scope s;
    for (int i = 0; i < 5; ++i) {
      s.spawn([&] {
        ++begun;
        try {
          this_fiber::sleep_for(1h);
        } catch (const cancelled&) {
          ++cleaned;
          throw;
        }
      });
      this_fiber::yield();
    }
    await([&] { return begun == 5; });
    s.spawn([] { throw 1; });
    EXPECT_THROW(s.join(), int);
    EXPECT_EQ(cleaned, 5);
  });
}

// test_two_child_crashes: one comes out; the other is not lost silently.
TEST_P(nurseries, report_the_second_of_two_crashes) {
  captured_stderr err;
  in_runtime([] {
    scope s;
    std::atomic<int> there{0};
    for (int i = 0; i < 2; ++i)
      s.spawn([&, i] {
        ++there;
        await([&] { return there == 2; });
        throw std::runtime_error{"crash " + std::to_string(i)};
      });
    EXPECT_THROW(s.join(), std::runtime_error);
  });
  EXPECT_EQ(occurrences(err.text(), "crash "), 1);
}

// test_spawn_nested_nursery, test_nursery_start: nested blocks, an inner failure leaves through both.
TEST_P(nurseries, nest_and_pass_failures_outwards) {
  in_runtime([] {
    std::atomic<bool> sibling_begun{false}, sibling_stopped{false};
    scope outer;
    outer.spawn([&] {
      sibling_begun = true;
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        sibling_stopped = true;
        throw;
      }
    });
    await([&] { return sibling_begun.load(); });
    outer.spawn([] {
      scope inner;
      this_fiber::yield();
      inner.spawn([] { this_fiber::sleep_for(1h); });
      inner.spawn([] { throw std::logic_error{"inner"}; });
      inner.join();
    });
    EXPECT_EQ(message_of<std::logic_error>([&] { outer.join(); }), "inner");
    EXPECT_TRUE(sibling_stopped);
  });
}

// "Spawning tasks without becoming a parent": a task gets the nursery of another one and adds to it.
TEST_P(nurseries, take_children_from_fibers_that_are_not_their_own) {
  in_runtime([] {
    channel<int> never;
    std::atomic<int> stopped{0};
    auto owner = spawn([&] {
      scope s;
      auto stranger = spawn([&] {
        for (int i = 0; i < 3; ++i)
          s.spawn([&] {
            try {
              never.recv();
            } catch (const cancelled&) {
              ++stopped;
              throw;
            }
          });
      });
      stranger.join();
      s.join();
    });
    this_fiber::sleep_for(2ms);
    owner.request_stop();
    EXPECT_THROW(owner.join(), cancelled);
    EXPECT_LE(stopped, 3);
  });
}

// test_nursery_parent_... a nursery inherits the cancel scopes around the block, not those around the call of
// start_soon.
TEST_P(nurseries, stand_in_the_deadlines_of_the_block_not_of_the_spawner) {
  in_runtime([] {
    std::atomic<bool> finished{false};
    scope s;
    with_timeout(1ms, [&] {
      this_fiber::yield();
      s.spawn([&] {
        EXPECT_FALSE(this_fiber::deadline());
        this_fiber::sleep_for(3ms);
        finished = true;
      });
    });
    s.join();
    EXPECT_TRUE(finished);
  });
}

// test_nursery_cancel_doesnt_create_cyclic_garbage, nursery.cancel_scope.cancel(): cancelling is not an error.
TEST_P(nurseries, end_quietly_when_cancelled) {
  in_runtime([] {
    std::atomic<int> stopped{0};
    scope s;
    this_fiber::yield();
    for (int i = 0; i < 4; ++i)
      s.spawn([&] {
        try {
          this_fiber::sleep_for(1h);
        } catch (const cancelled&) {
          EXPECT_EQ(this_fiber::why_stopped(), this_fiber::stop_cause::scope);
          ++stopped;
          throw;
        }
      });
    this_fiber::sleep_for(1ms);
    s.cancel();
    EXPECT_TRUE(s.is_cancelled());
    EXPECT_NO_THROW(s.join());
    EXPECT_FALSE(s.is_cancelled());
    EXPECT_LE(stopped, 4);
    EXPECT_EQ(this_fiber::why_stopped(), this_fiber::stop_cause::none);
  });
}

// nursery.cancel_scope.cancel() from a child: the first answer wins ("happy eyeballs" of the manual).
TEST_P(nurseries, are_cancelled_by_the_child_that_is_first) {
  in_runtime([] {
    std::atomic<int> winner{-1};
    scope s;
    for (int i = 0; i < 5; ++i)
      s.spawn([&, i] {
        this_fiber::sleep_for(i == 3 ? 1ms : 1h);
        winner = i;
        s.cancel();
      });
    s.join();
    EXPECT_EQ(winner, 3);
  });
}

// test_cancel_unbound, "cancel before start": a task that has not started never starts.
TEST_P(nurseries, drop_children_added_after_the_cancellation) {
  in_runtime([] {
    int ran = 0;
    scope s;
    s.cancel();
    s.spawn([&] { ++ran; });
    this_fiber::yield();
    s.spawn([&] { ++ran; });
    s.join();
    EXPECT_EQ(ran, 0);
    s.spawn([&] { ++ran; });
    s.join();
    EXPECT_EQ(ran, 1);
  });
}

// A real failure beside a cancellation is not swallowed (test_cancel_scope_exceptiongroup_filtering0).
TEST_P(nurseries, pass_on_failures_although_cancelled) {
  in_runtime([] {
    std::atomic<bool> begun{false};
    scope s;
    s.spawn([&] {
      begun = true;
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        throw std::runtime_error{"in the clean-up"};
      }
    });
    s.spawn([&] {
      await([&] { return begun.load(); });
      s.cancel();
    });
    EXPECT_EQ(message_of<std::runtime_error>([&] { s.join(); }), "in the clean-up");
  });
}

// An exception in the block itself cancels the children, and the block still waits for them
// (test_nursery_exception_in_the_body).
TEST_P(nurseries, cancel_children_when_the_body_throws) {
  in_runtime([] {
    std::atomic<int> stopped{0}, begun{0};
    const auto child = [&] {
      ++begun;
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        ++stopped;
        throw;
      }
    };
    EXPECT_THROW(
        {
          scope s;
          this_fiber::yield();
          for (int i = 0; i < 3; ++i) s.spawn(child);
          await([&] { return begun == 3; });
          throw 5;
        },
        int);
    EXPECT_EQ(stopped, 3);
  });
}

// test_timekeeping, test_move_on_after: the deadline ends the block in about that time.
TEST_P(cancel_scopes, move_on_after_a_while) {
  in_runtime([] {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(with_timeout(5ms, [] { this_fiber::sleep_for(1h); }), timeout_error);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 5ms);
  });
}

// test_cancel_scope_nesting: the inner deadline does not end the outer one, the outer ends the inner.
TEST_P(cancel_scopes, nest) {
  in_runtime([] {
    with_timeout(1h, [] {
      EXPECT_THROW(with_timeout(1ms, [] { this_fiber::sleep_for(1h); }), timeout_error);
      this_fiber::sleep_for(1ms);
    });
    bool inner_late = false;
    EXPECT_THROW(with_timeout(1ms,
                              [&] {
                                try {
                                  with_timeout(1h, [] { this_fiber::sleep_for(1h); });
                                } catch (const timeout_error&) {
                                  inner_late = true;
                                }
                              }),
                 timeout_error);
    EXPECT_FALSE(inner_late);
  });
}

// test_cancel_shielding: inside a shield the outer deadline has no effect; after it it has.
TEST_P(cancel_scopes, are_hidden_by_a_shield) {
  in_runtime([] {
    bool done = false;
    EXPECT_THROW(with_timeout(1ms,
                              [&] {
                                shield([&] {
                                  EXPECT_FALSE(this_fiber::deadline());
                                  this_fiber::sleep_for(3ms);
                                  done = true;
                                });
                                this_fiber::sleep_for(1h);
                              }),
                 timeout_error);
    EXPECT_TRUE(done);
  });
}

// "a shielded clean-up with a timeout of its own" (manual: cancellation and clean-up).
TEST_P(cancel_scopes, inside_a_shield_still_count) {
  in_runtime([] {
    auto h = spawn([] {
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        EXPECT_THROW(shield([] { with_timeout(1ms, [] { this_fiber::sleep_for(1h); }); }), timeout_error);
        throw;
      }
    });
    this_fiber::sleep_for(1ms);
    h.request_stop();
    EXPECT_THROW(h.join(), child_cancelled);
  });
}

// The accept loop of Trio's echo server (manual, "serve_tcp"): one child a connection, and one deadline around it ends
// loop and children.
TEST_P(cancel_scopes, end_an_accept_loop_and_all_it_accepted) {
  // Until a deadline leaves enough time for all to be accepted.
  const auto serve = [](std::chrono::milliseconds deadline) {
    channel<int> connections{5};
    channel<int> never;
    std::atomic<int> open{0}, closed{0};
    for (int i = 0; i < 5; ++i) static_cast<void>(connections.send(i));
    EXPECT_THROW(with_timeout(deadline,
                              [&] {
                                scope handlers;
                                for (;;) {
                                  const int c = connections.recv().value_or(-1);
                                  handlers.spawn([&, c] {
                                    ++open;
                                    struct closing {
                                      std::atomic<int>& n;
                                      ~closing() { ++n; }
                                    } at_end{closed};
                                    never.recv();
                                    static_cast<void>(c);
                                  });
                                }
                              }),
                 timeout_error);
    EXPECT_EQ(open, closed);
    return open.load();
  };
  in_runtime([&] {
    for (auto deadline = 10ms; serve(deadline) != 5; deadline *= 2) {
    }
  });
}

// test_cancel_points: code that never waits is not interrupted, and its next wait is.
TEST_P(cancel_scopes, are_felt_at_waits_only) {
  in_runtime([] {
    int steps = 0;
    EXPECT_THROW(with_timeout(0ms,
                              [&] {
                                ++steps;
                                this_fiber::yield();  // no point of cancellation
                                ++steps;
                                this_fiber::sleep_for(1ms);
                                ++steps;
                              }),
                 timeout_error);
    EXPECT_EQ(steps, 2);
  });
}

}  // namespace
}  // namespace ramie
