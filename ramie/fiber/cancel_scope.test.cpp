// Calls that others cut short, and whose deadline moves while waits are under way.
#include <ramie/fiber/cancel_scope.hpp>

#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/in_scope.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/machine/test_options.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;
using this_fiber::stop_cause;

class cancel_scopes : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  template <class F>
  static void run(F f) {
    runtime rt{{.workers = std::get<0>(GetParam())}};
    rt.run(std::move(f));
  }

 private:
  detail::with_test_options migrating_{{.migrate_always = std::get<1>(GetParam())}};
};
INSTANTIATE_TEST_SUITE_P(on, cancel_scopes,
                         ::testing::Values(std::tuple{1, false}, std::tuple{2, false}, std::tuple{8, false},
                                           std::tuple{2, true}));

TEST_P(cancel_scopes, leave_alone_what_ends_by_itself) {
  run([] {
    cancel_scope limit{1h};
    EXPECT_TRUE(limit.run([] { this_fiber::sleep_for(1us); }));
    EXPECT_EQ(limit.run([] { return 5; }), 5);
    const auto moved = limit.run([] { return std::make_unique<int>(6); });
    EXPECT_EQ(**moved, 6);
    EXPECT_THROW(limit.run([] { throw std::runtime_error{"as it is"}; }), std::runtime_error);
    EXPECT_FALSE(limit.is_over());
  });
}

TEST_P(cancel_scopes, end_what_waits_when_cancelled_and_go_on_after) {
  run([] {
    cancel_scope limit;
    event inside;
    auto other = spawn([&] {
      inside.wait();
      limit.cancel();
    });
    std::optional<int> got = limit.run([&] {
      inside.set();
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        EXPECT_EQ(this_fiber::why_stopped(), stop_cause::scope);
        EXPECT_TRUE(this_fiber::stop_requested());
        throw;
      }
      return 1;
    });
    EXPECT_EQ(got, std::nullopt);
    EXPECT_TRUE(limit.is_over());
    EXPECT_FALSE(this_fiber::stop_requested());
    this_fiber::sleep_for(1us);
    other.join();
    EXPECT_FALSE(limit.run([] { this_fiber::sleep_for(1h); })) << "it stays cancelled";
    EXPECT_TRUE(limit.run([] {})) << "nothing waits";
    EXPECT_FALSE(limit.expires_after(1h));
  });
}

TEST_P(cancel_scopes, end_what_is_late) {
  run([] {
    cancel_scope limit{1us};
    EXPECT_FALSE(limit.run([&] {
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        EXPECT_EQ(this_fiber::why_stopped(), stop_cause::deadline);
        EXPECT_FALSE(limit.expires_after(1h)) << "what has passed does not come back";
        throw;
      }
    }));
    EXPECT_TRUE(limit.is_over());
    cancel_scope negative{-1s};
    EXPECT_FALSE(negative.run([] { this_fiber::sleep_for(1h); }));
  });
}

TEST_P(cancel_scopes, reach_forks_and_children_but_none_from_outside) {
  run([] {
    std::atomic<int> begun{0}, ended{0};
    const auto wait = [&] {
      ++begun;
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        ++ended;
        throw;
      }
    };
    event there, over;
    in_scope([&](auto& around) {
      std::atomic<bool> sleeps{true};
      around.spawn(fiber_options{}, [&] {
        there.set();
        over.wait();
        sleeps = false;
      });
      there.wait();
      for (const bool by_deadline : {false, true}) {
        begun = ended = 0;
        cancel_scope limit;
        around.spawn(fiber_options{}, [&] {
          await([&] { return begun == 5; });
          if (by_deadline) limit.expires_after(1ms);
          else limit.cancel();
        });
        EXPECT_FALSE(limit.run([&] {
          scope s;
          for (int i = 0; i < 3; ++i) s.spawn(fiber_options{}, wait);
          fork_join(wait, wait);
        }));
        EXPECT_EQ(ended, 5);
      }
      EXPECT_TRUE(sleeps);
      over.set();
    });
  });
}

TEST_P(cancel_scopes, can_have_later_deadlines_while_something_waits) {
  run([] {
    const auto child = [](event& end) {
      scope s;
      s.spawn(fiber_options{}, [&] { end.wait(); });
      s.join();
    };
    const auto result = [](event& end) {
      scope s;
      auto r = s.spawn(fiber_options{}, [&] {
        shield([&] { end.wait(); });
        return 1;
      });
      EXPECT_EQ(r.get(), 1);
    };
    const auto join = [](event& end) { spawn([&] { end.wait(); }).join(); };
    const auto timed = [](event& end) {
      auto h = spawn([&] { end.wait(); });
      EXPECT_TRUE(h.join_for(1h));
    };
    const auto sleep = [](event& end) {
      for (; !end.is_set();) this_fiber::sleep_for(20ms);
    };
    const auto plain = [](event& end) { end.wait(); };
    const std::vector<std::function<void(event&)>> waits{child, result, join, timed, sleep, plain};
    for (const auto& wait : waits) {
      for (bool in_time = false; !in_time;) {
        cancel_scope limit{5ms};
        event inside, end;
        auto other = spawn([&] {
          inside.wait();
          in_time = limit.expires_after(1h);
          if (in_time) this_fiber::sleep_for(6ms);  // the timer of the wait fires
          end.set();
        });
        const bool whole = limit.run([&] {
          inside.set();
          wait(end);
        });
        other.join();
        EXPECT_TRUE(whole || !in_time);
      }
    }
  });
}

TEST_P(cancel_scopes, can_have_earlier_deadlines_while_something_waits) {
  run([] {
    cancel_scope limit{1h};
    event inside;
    auto other = spawn([&] {
      inside.wait();
      EXPECT_TRUE(limit.expires_after(1h));
      EXPECT_TRUE(limit.expires_after(30min));
      EXPECT_TRUE(limit.never_expires());
      EXPECT_TRUE(limit.expires_after(1ms));
    });
    EXPECT_FALSE(limit.run([&] {
      inside.set();
      this_fiber::sleep_for(1h);
    }));
    other.join();
    cancel_scope own;
    EXPECT_FALSE(own.run([&] {
      own.expires_after(1h);
      own.expires_after(1us);
      this_fiber::sleep_for(1h);
    }));
    cancel_scope before{1h};
    before.expires_after(1us);
    EXPECT_FALSE(before.run([&] { this_fiber::sleep_for(1h); }));
  });
}

TEST_P(cancel_scopes, are_moved_and_cancelled_from_anywhere) {
  const auto moves = [](cancel_scope& limit) { EXPECT_TRUE(limit.expires_after(1us)); };
  const auto cancels = [](cancel_scope& limit) { limit.cancel(); };
  const std::vector<std::function<void(cancel_scope&)>> ways{moves, cancels};
  run([&] {
    for (const auto& end : ways) {
      cancel_scope by_thread{1h}, by_call, by_runtime{1h};
      std::thread other;
      EXPECT_FALSE(by_thread.run([&] {
        other = std::thread{[&] { end(by_thread); }};
        this_fiber::sleep_for(1h);
      }));
      other.join();
      EXPECT_FALSE(by_call.run([&] {
        blocking([&] { end(by_call); });
        this_fiber::sleep_for(1h);
      }));
      EXPECT_FALSE(by_runtime.run([&] {
        blocking([&] { ramie::run([&] { end(by_runtime); }); });
        this_fiber::sleep_for(1h);
      }));
      cancel_scope in_fork{1h};
      const auto forked = [&] {
        EXPECT_FALSE(in_fork.run([&] {
          end(in_fork);
          this_fiber::sleep_for(1h);
        }));
      };
      fork_join(forked, [] { this_fiber::sleep_for(10us); });
    }
  });
}

TEST_P(cancel_scopes, tell_their_deadlines) {
  run([] {
    cancel_scope limit;
    EXPECT_TRUE(limit.run([&] {
      EXPECT_EQ(this_fiber::deadline(), std::nullopt);
      const auto deadline = std::chrono::steady_clock::now() + 1h;
      limit.expires_at(deadline);
      EXPECT_EQ(this_fiber::deadline(), deadline);
      with_timeout(2h, [&] { EXPECT_EQ(this_fiber::deadline(), deadline); });
      shield([] { EXPECT_EQ(this_fiber::deadline(), std::nullopt); });
      limit.never_expires();
      EXPECT_EQ(this_fiber::deadline(), std::nullopt);
    }));
  });
}

TEST_P(cancel_scopes, nest) {
  run([] {
    cancel_scope outer, inner;
    EXPECT_FALSE(outer.run([&] {
      EXPECT_FALSE(inner.run([&] {
        outer.cancel();
        this_fiber::sleep_for(1h);
      })) << "the outer one is for the outer one";
      ADD_FAILURE() << "not reached";
    }));
    EXPECT_FALSE(inner.is_over());
    EXPECT_TRUE(outer.run([&] { shield([] { this_fiber::sleep_for(1us); }); }));
    bool lasted = false;
    struct clean_up {
      bool& lasted;
      ~clean_up() {
        this_fiber::sleep_for(1us);
        lasted = true;
      }
    };
    EXPECT_FALSE(outer.run([&] {
      const clean_up at_end{lasted};
      this_fiber::sleep_for(1h);
    }));
    EXPECT_TRUE(lasted);
    cancel_scope once;
    EXPECT_TRUE(once.run([&] { EXPECT_THROW(once.run([] {}), usage_error); }));
  });
}

TEST_P(cancel_scopes, pass_on_what_stops_their_caller) {
  run([] {
    cancel_scope limit{1h};
    event inside;
    auto h = spawn([&] {
      limit.run([&] {
        inside.set();
        this_fiber::sleep_for(1h);
      });
      ADD_FAILURE() << "not reached";
    });
    inside.wait();
    h.request_stop();
    EXPECT_THROW(h.join(), child_cancelled);
    auto stopped = spawn([] { this_fiber::sleep_for(1h); });
    stopped.request_stop();
    EXPECT_THROW(limit.run([&] { stopped.join(); }), child_cancelled) << "no deadline of this call";
    EXPECT_THROW(with_timeout(1us, [&] { limit.run([] { this_fiber::sleep_for(1h); }); }), timeout_error);
  });
}

TEST(cancel_scope_of_a_plain_thread, ends_waits_that_begin_later) {
  cancel_scope late{1us};
  EXPECT_FALSE(late.run([] { this_fiber::sleep_for(1h); }));
  cancel_scope limit;
  std::atomic<bool> cancelled_it{false};
  std::atomic<bool> inside{false};
  std::thread other{[&] {
    while (!inside) std::this_thread::yield();
    EXPECT_TRUE(limit.expires_after(2h));
    limit.cancel();
    cancelled_it = true;
  }};
  EXPECT_EQ(limit.run([&] {
    inside = true;
    while (!cancelled_it) std::this_thread::yield();
    this_fiber::sleep_for(1h);
    return 1;
  }),
            std::nullopt);
  other.join();

  // A wait keeps the deadline that it began with; what ends by it is no failure of the caller.
  cancel_scope moved{20ms};
  std::thread moving{[&] {
    std::this_thread::sleep_for(1ms);
    moved.expires_after(1h);
  }};
  EXPECT_FALSE(moved.run([] { this_fiber::sleep_for(1h); }));
  moving.join();
}

// What ends the waits of a call must be through with it when the call returns.
TEST_P(cancel_scopes, end_beside_those_that_move_them) {
  run([] {
    std::atomic<int> whole{0}, cut{0};
    for (int round = scaled(300); round > 0; --round) {
      scope all;
      auto limit = std::make_unique<cancel_scope>(1h);
      std::atomic<bool> ready{false};
      for (unsigned i = 0; i < 3; ++i)
        all.spawn(fiber_options{}, [&, i, seed = static_cast<unsigned>(round)] {
          std::minstd_rand random{seed * 4 + i};
          while (!ready) this_fiber::yield();
          for (int n = 0; n < 4; ++n) {
            const auto time = std::chrono::microseconds{random() % 200};
            if (random() % 8 == 0) limit->cancel();
            else limit->expires_after(random() % 2 == 0 ? time : time + 1h);
            if (random() % 2 == 0) this_fiber::yield();
          }
        });
      const bool by_itself = limit->run([&] {
        ready = true;
        scope children;
        for (int i = 0; i < 3; ++i) children.spawn(fiber_options{}, [] { this_fiber::sleep_for(50us); });
        children.join();
        for (int i = 0; i < 5; ++i) this_fiber::sleep_for(20us);
      });
      ++(by_itself ? whole : cut);
      all.join();
    }
    EXPECT_EQ(whole + cut, scaled(300));
  });
}

}  // namespace
}  // namespace ramie
