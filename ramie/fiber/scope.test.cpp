#include <ramie/fiber/scope.hpp>

#include <ramie/fiber/testing.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace ramie {
namespace {

using namespace fiber_tests;

static_assert(!std::is_copy_constructible_v<scope> && !std::is_move_constructible_v<scope>);

class scopes : public with_workers {
 protected:
  void SetUp() override { counted::reset(); }
  void TearDown() override { EXPECT_EQ(counted::alive, 0); }
};
INSTANTIATE_TEST_SUITE_P(workers, scopes, few_and_many());

TEST_P(scopes, run_all_children_however_many) {
  in_runtime([] {
    for (const int n : {0, 1, 2, 3, 100, 20'000, scaled(100'000)}) {
      std::atomic<int> ran{0};
      scope s;
      for (int i = 0; i < n; ++i) s.spawn([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
      s.join();
      EXPECT_EQ(ran, n);
    }
  });
}

TEST_P(scopes, may_be_used_again_after_join) {
  in_runtime([] {
    scope s;
    int ran = 0;
    for (int round = 0; round < 100; ++round) {
      std::atomic<int> now{0};
      for (int i = 0; i < round; ++i) s.spawn([&now, c = counted{i}] { ++now; });
      s.join();
      EXPECT_EQ(now, round);
      ran += now;
      if (round % 10 == 0) this_fiber::yield();
      if (round % 10 == 5) s.join();
    }
    EXPECT_EQ(ran, 99 * 50);
    s.spawn([] { throw 1; });
    EXPECT_THROW(s.join(), int);
    std::atomic<bool> after{false};
    s.spawn([&] { after = true; });
    s.join();
    EXPECT_TRUE(after) << "a failure is over with its join";
  });
}

struct alignas(64) cache_line {
  std::array<char, 64> bytes{};
};

TEST_P(scopes, children_may_be_of_any_size_and_alignment) {
  in_runtime([] {
    for (int i = 0; i < 50; ++i) {
      std::atomic<int> right{0};
      scope s;
      s.spawn([&, data = cache_line{}] {
        right += reinterpret_cast<std::uintptr_t>(&data) % 64 == 0 && data.bytes[63] == 0 ? 1 : 0;
      });
      s.spawn([&, data = std::array<char, 5000>{'a'}] { right += data[0] == 'a' && data[4999] == 0 ? 1 : 0; });
      s.spawn([&, data = std::make_unique<int>(3)] { right += *data == 3 ? 1 : 0; });
      s.spawn([&, text = std::string(100, 'x')]() mutable { right += (text += 'y').size() == 101 ? 1 : 0; });
      const auto kept = [&, c = counted{1}] { right += c.value; };
      s.spawn(kept);
      s.join();
      EXPECT_EQ(right, 5);
    }
  });
}

TEST_P(scopes, closures_are_gone_after_join_run_or_not) {
  in_runtime([] {
    scope s;
    for (int i = 0; i < 100; ++i)
      s.spawn([c = counted{i}] {
        if (c.value == 30) throw 1;
      });
    EXPECT_THROW(s.join(), int);
    EXPECT_EQ(counted::alive, 0);
    {
      scope dropped;
      for (int i = 0; i < 100; ++i) dropped.spawn([c = counted{i}] {});
    }
    EXPECT_EQ(counted::alive, 0);
  });
}

struct throws_when_copied {
  throws_when_copied() = default;
  throws_when_copied(const throws_when_copied&) { throw std::runtime_error{"a copy"}; }
  void operator()() const { ADD_FAILURE() << "was run"; }
};

TEST_P(scopes, what_copying_a_child_throws_leaves_spawn_and_the_others_run) {
  in_runtime([] {
    std::atomic<int> ran{0};
    scope s;
    const throws_when_copied bad;
    for (int i = 0; i < 10; ++i) {
      s.spawn([&] { ++ran; });
      EXPECT_EQ(message_of<std::runtime_error>([&] { s.spawn(bad); }), "a copy");
    }
    // The other way in: from where the children are not the youngest jobs.
    fork_join([&] { EXPECT_EQ(message_of<std::runtime_error>([&] { s.spawn(bad); }), "a copy"); }, [] {});
    s.join();
    EXPECT_EQ(ran, 10);
  });
}

// Nesting.

void tree(scope& all, std::atomic<int>& leaves, int depth) {
  if (depth == 0) {
    ++leaves;
    return;
  }
  for (int i = 0; i < 3; ++i) all.spawn([&all, &leaves, depth] { tree(all, leaves, depth - 1); });
}

TEST_P(scopes, children_spawn_into_it) {
  const int depth = sanitized ? 5 : 8;
  in_runtime([=] {
    for (int round = 0; round < 5; ++round) {
      std::atomic<int> leaves{0};
      scope s;
      tree(s, leaves, depth);
      s.join();
      EXPECT_EQ(leaves, sanitized ? 243 : 6561);
    }
  });
}

TEST_P(scopes, children_spawn_into_it_wherever_they_go_on) {
  in_runtime([] {
    for (int round = 0; round < scaled(500); ++round) {
      std::atomic<int> ran{0};
      scope s;
      for (int i = 0; i < 4; ++i)
        s.spawn([&, i] {
          for (int k = 0; k < 3; ++k) {
            if ((i + k) % 2 == 0) this_fiber::yield();
            s.spawn([&] {
              ++ran;
              this_fiber::yield();
              s.spawn([&] { ++ran; });
            });
          }
        });
      if (round % 2 == 0) this_fiber::yield();
      s.spawn([&] { ++ran; });
      s.join();
      EXPECT_EQ(ran, 4 * 3 * 2 + 1);
    }
  });
}

TEST_P(scopes, take_children_from_nested_forks) {
  in_runtime([] {
    for (int round = 0; round < scaled(500); ++round) {
      std::atomic<int> ran{0};
      scope s;
      s.spawn([&] { ++ran; });
      fork_join(
          [&] {
            s.spawn([&] { ++ran; });
            fork_join([&] { s.spawn([&] { ++ran; }); }, [&] { s.spawn([&] { ++ran; }); });
          },
          [&] { s.spawn([&] { ++ran; }); });
      s.spawn([&] { ++ran; });
      s.join();
      EXPECT_EQ(ran, 6);
    }
  });
}

TEST_P(scopes, nest_and_mingle) {
  in_runtime([] {
    for (int round = 0; round < scaled(300); ++round) {
      std::atomic<int> ran{0};
      scope outer;
      outer.spawn([&] { ++ran; });
      {
        scope inner;
        inner.spawn([&] { ++ran; });
        outer.spawn([&] { ++ran; });  // below the inner one's child
        inner.spawn([&] {
          scope innermost;
          for (int i = 0; i < 5; ++i) {
            innermost.spawn([&] { ++ran; });
            inner.spawn([&] { ++ran; });
            outer.spawn([&] { ++ran; });
          }
          if (round % 3 == 0) this_fiber::yield();
          innermost.join();
        });
        if (round % 2 == 0) this_fiber::yield();
        inner.join();
      }
      outer.join();
      EXPECT_EQ(ran, 18);
    }
  });
}

int sum_by_scopes(int low, int high) {
  if (high - low == 1) return low;
  const int middle = low + (high - low) / 2;
  int a = 0, b = 0;
  scope s;
  s.spawn([&] { a = sum_by_scopes(low, middle); });
  s.spawn([&] { b = sum_by_scopes(middle, high); });
  s.join();
  return a + b;
}

TEST_P(scopes, in_a_recursion) {
  const int n = sanitized ? 2'000 : 30'000;
  EXPECT_EQ(in_runtime([=] { return sum_by_scopes(0, n); }), n / 2 * (n - 1));
}

// Suspension.

TEST_P(scopes, children_may_wait_for_each_other_and_for_the_owner) {
  in_runtime([] {
    for (int round = 0; round < scaled(500); ++round) {
      std::array<event, 5> stage;
      int order = 0;
      scope s;
      // The youngest is run first at join, and waits for all that are older.
      for (std::size_t i = 0; i < 4; ++i)
        s.spawn([&, i] {
          stage[i].wait();
          EXPECT_EQ(order++, static_cast<int>(i));
          stage[i + 1].set();
        });
      if (round % 2 == 0) this_fiber::yield();
      stage[0].set();
      s.join();
      EXPECT_EQ(order, 4);
    }
  });
}

TEST_P(scopes, the_owner_may_suspend_between_spawns) {
  in_runtime([] {
    for (int round = 0; round < scaled(300); ++round) {
      std::atomic<int> ran{0};
      scope s;
      for (int i = 0; i < 10; ++i) {
        s.spawn([&ran, i] {
          if (i % 3 == 0) this_fiber::yield();
          ++ran;
        });
        if ((i + round) % 4 == 0) this_fiber::sleep_for(1us);
        if ((i + round) % 4 == 1) this_fiber::yield();
      }
      s.join();
      EXPECT_EQ(ran, 10);
    }
  });
}

TEST_P(scopes, in_many_fibers_at_once) {
  in_runtime([] {
    std::vector<join_handle<int>> handles;
    for (int i = 0; i < scaled(500); ++i)
      handles.push_back(spawn([] {
        std::atomic<int> ran{0};
        scope s;
        for (int k = 0; k < 20; ++k)
          s.spawn([&, k] {
            if (k % 5 == 0) this_fiber::yield();
            ++ran;
          });
        this_fiber::yield();
        s.join();
        return ran.load();
      }));
    for (auto& h : handles) EXPECT_EQ(h.join(), 20);
  });
}

// Failures.

TEST_P(scopes, the_first_failure_is_rethrown_and_what_has_not_begun_is_dropped) {
  runtime_options o = options();
  o.spare_workers = 0;  // with one worker there is no thief
  runtime rt{o};
  rt.run([&] {
    std::atomic<int> ran{0};
    scope s;
    for (int i = 0; i < 1000; ++i) s.spawn([&] { ++ran; });
    s.spawn([] { throw std::runtime_error{"first"}; });  // the youngest, so the owner runs it before the others
    for (int i = 0; rt.workers() > 1 && i < 3; ++i) this_fiber::yield();
    EXPECT_EQ(message_of<std::runtime_error>([&] { s.join(); }), "first");
    EXPECT_TRUE(rt.workers() > 1 || ran == 0);
    EXPECT_NO_THROW(s.join()) << "only once";
  });
}

TEST_P(scopes, later_failures_are_reported) {
  runtime rt{options()};
  captured_stderr output;
  rt.run([] {
    scope s;
    event first_failed, second_began;
    s.spawn([&] {
      second_began.set();
      first_failed.wait();
      throw std::runtime_error{"second"};
    });
    s.spawn([&] {
      second_began.wait();
      struct telling {
        event& e;
        ~telling() { e.set(); }
      } const at_exit{first_failed};
      throw std::runtime_error{"first"};
    });
    const std::string what = message_of<std::runtime_error>([&] { s.join(); });
    EXPECT_TRUE(what == "first" || what == "second");
  });
  const std::string text = output.text();
  EXPECT_EQ(occurrences(text, "first") + occurrences(text, "second"), 1) << text;
}

TEST_P(scopes, a_failure_that_nobody_joined_for_is_reported) {
  runtime rt{options()};
  captured_stderr output;
  rt.run([] {
    event began;
    scope s;
    s.spawn([&] {
      began.set();
      throw std::runtime_error{"unseen"};
    });
    began.wait();
  });
  EXPECT_EQ(occurrences(output.text(), "unseen"), 1);
}

TEST_P(scopes, the_destructor_waits_for_what_has_begun_and_drops_the_rest) {
  runtime rt{options()};
  rt.run([&] {
    event began, go;
    std::atomic<bool> ended{false};
    std::atomic<int> dropped{0};
    auto helper = spawn([&] {
      began.wait();
      this_fiber::yield();
      go.set();
    });
    {
      scope s;
      s.spawn([&] {
        began.set();
        go.wait();
        ended = true;
      });
      began.wait();
      for (int i = 0; i < 10; ++i) s.spawn([&] { ++dropped; });
    }
    EXPECT_TRUE(ended);
    helper.join();
  });
}

TEST_P(scopes, a_failure_cancels_children_that_run) {
  runtime rt{options()};
  rt.run([] {
    event never, began;
    std::atomic<int> cancelled_children{0};
    scope s;
    // The first one waits for ever: as a strand, as a fiber, or in the owner's own join, depending on the schedule.
    for (int i = 0; i < 3; ++i)
      s.spawn([&] {
        began.set();
        try {
          never.wait();
        } catch (const cancelled&) {
          ++cancelled_children;
          throw;
        }
      });
    auto watcher = spawn([&] { began.wait(); });
    s.spawn([&] {
      began.wait();
      throw std::runtime_error{"first"};
    });
    EXPECT_THROW(s.join(), std::runtime_error);
    EXPECT_GE(cancelled_children.load(), 1);  // the one that set `began`
    watcher.join();
    // The owner itself is not stopped, neither now nor in another scope.
    this_fiber::sleep_for(std::chrono::microseconds{1});
    scope again;
    again.spawn([] { this_fiber::sleep_for(std::chrono::microseconds{1}); });
    again.join();
  });
}

/// All of them are fibers that wait.
TEST_P(scopes, of_hundreds_of_waiting_fibers_end_by_a_request_and_by_a_failure) {
  in_runtime([] {
    constexpr int n = RAMIE_TSAN ? 100 : 600;  // ThreadSanitizer takes 30 ms for each new fiber
    for (const bool fails : {false, true}) {
      std::atomic<int> waiting{0};
      std::atomic<int> stopped{0};
      event never, others_go_on;
      auto bystander = spawn([&] { others_go_on.wait(); });
      auto owner = spawn([&] {
        scope s;
        for (int i = 0; i < n; ++i)
          s.spawn(fiber_options{.name = "child"}, [&] {
            ++waiting;
            try {
              never.wait();
            } catch (const cancelled&) {
              ++stopped;
              throw;
            }
          });
        while (waiting != n) this_fiber::yield();
        if (fails) s.spawn(fiber_options{.name = "fails"}, [] { throw std::runtime_error{"first"}; });
        s.join();
      });
      while (waiting != n) this_fiber::yield();
      if (fails) {
        EXPECT_THROW(owner.join(), std::runtime_error);
      } else {
        owner.request_stop();
        EXPECT_THROW(owner.join(), cancelled);
      }
      EXPECT_EQ(stopped, n);
      others_go_on.set();
      EXPECT_NO_THROW(bystander.join());
    }
  });
}

TEST_P(scopes, a_failure_in_a_fiber_of_the_scope_cancels_the_others) {
  runtime rt{options()};
  rt.run([] {
    event never, began;
    scope s;
    this_fiber::yield();
    event opened;
    auto other = spawn([&] { opened.set(); });
    opened.wait();  // a suspension: from here on children are fibers
    s.spawn([&] {
      began.set();
      never.wait();
    });
    s.spawn([&] {
      began.wait();
      throw std::runtime_error{"first"};
    });
    EXPECT_THROW(s.join(), std::runtime_error);
  });
}

TEST_P(scopes, an_exception_that_passes_cancels_children_that_run) {
  runtime rt{options()};
  rt.run([] {
    event never, began;
    auto helper = spawn([] {});
    const auto body = [&] {
      scope s;
      helper.join();
      s.spawn([&] {
        began.set();
        never.wait();
      });
      began.wait();
      throw std::runtime_error{"the owner's own"};
    };
    EXPECT_THROW(body(), std::runtime_error);
  });
}

TEST_P(scopes, the_destructor_against_failing_children) {
  runtime rt{options()};
  captured_stderr output;
  rt.run([] {
    for (int round = 0; round < scaled(2000); ++round) {
      std::atomic<int> ran{0};
      scope s;
      s.spawn([&] {
        ++ran;
        throw 1;
      });
      s.spawn([&] { ++ran; });
      for (int i = 0; i < round % 20; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  });
}

TEST_P(scopes, an_exception_through_the_owner_waits_for_children) {
  in_runtime([] {
    event began;
    std::atomic<bool> ended{false};
    EXPECT_THROW(
        [&] {
          scope s;
          s.spawn([&] {
            began.set();
            for (int i = 0; i < 10; ++i) this_fiber::yield();
            ended = true;
          });
          began.wait();
          throw 1;
        }(),
        int);
    EXPECT_TRUE(ended);
  });
}

TEST_P(scopes, are_cancelled_with_their_fiber) {
  runtime rt{options()};
  event began;
  auto handle = rt.spawn([&] {
    scope s;
    for (int i = 0; i < 5; ++i)
      s.spawn([&] {
        began.set();
        this_fiber::sleep_for(1h);
      });
    s.join();
  });
  began.wait();
  handle.request_stop();
  EXPECT_THROW(handle.join(), cancelled);
}

// Plain threads.

TEST(scopes_on_a_plain_thread, children_run_at_once) {
  std::string order;
  scope s;
  for (char c = 'a'; c < 'f'; ++c) {
    s.spawn([&order, c] { order += c; });
    order += '.';
  }
  EXPECT_EQ(order, "a.b.c.d.e.");
  s.join();
  s.spawn([] { throw std::runtime_error{"x"}; });
  s.spawn([&] { order += "dropped"; });
  EXPECT_EQ(message_of<std::runtime_error>([&] { s.join(); }), "x");
  s.spawn([&] { order += "again"; });
  s.join();
  EXPECT_EQ(order, "a.b.c.d.e.again");
  scope empty;
  empty.join();
}

TEST(scopes_on_a_plain_thread, nest_and_report) {
  captured_stderr output;
  {
    scope outer;
    outer.spawn([] {
      scope inner;
      inner.spawn([&] { inner.spawn([] { throw std::runtime_error{"deep"}; }); });
      inner.join();
    });
  }
  EXPECT_TRUE(contains(output.text(), "deep"));
}

}  // namespace
}  // namespace ramie
