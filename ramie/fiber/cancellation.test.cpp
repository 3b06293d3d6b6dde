// Deadlines, shields and stop requests: what they reach, what they do not, whose exception it is.
#include <ramie/fiber/cancellation.hpp>

#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/machine/test_options.hpp>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;
using steady = std::chrono::steady_clock;

/// As workers: 0 is a plain thread.
class regions : public ::testing::TestWithParam<std::pair<int, bool>> {
 protected:
  template <class F>
  static void run(F f) {
    const auto [workers, migrating] = GetParam();
    if (workers == 0) {
      f();
      return;
    }
    runtime_options o;
    o.workers = workers;
    const detail::with_test_options options{{.migrate_always = migrating}};
    runtime{o}.run(f);
  }
  static bool on_thread() { return GetParam().first == 0; }
};
INSTANTIATE_TEST_SUITE_P(in, regions,
                         ::testing::Values(std::pair{0, false}, std::pair{1, false}, std::pair{2, false},
                                           std::pair{8, false}, std::pair{2, true}, std::pair{8, true}),
                         [](const auto& p) {
                           if (p.param.first == 0) return std::string{"thread"};
                           return "w" + std::to_string(p.param.first) + (p.param.second ? "_migrating" : "");
                         });

RAMIE_NOINLINE void wait_for_ever() { this_fiber::sleep_for(1h); }

/// Counts those that were destroyed.
struct guard {
  std::atomic<int>* count;
  explicit guard(std::atomic<int>& c) : count{&c} {}
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard() { ++*count; }
};

TEST_P(regions, pass_results_and_exceptions_on) {
  run([] {
    EXPECT_EQ(with_timeout(1h, [] { return 5; }), 5);
    int x = 1;
    int& same = with_timeout(1h, [&]() -> int& { return x; });
    EXPECT_EQ(&same, &x);
    EXPECT_EQ(*with_deadline(steady::time_point::max(), [] { return std::make_unique<int>(6); }), 6);
    EXPECT_EQ(shield([] { return std::string{"text"}; }), "text");
    with_timeout(1h, [] {});
    shield([] {});
    EXPECT_THROW(with_timeout(1h, [] { throw std::runtime_error{"own"}; }), std::runtime_error);
    EXPECT_THROW(shield([] { throw 7; }), int);
    EXPECT_EQ(with_timeout(-1h, [] { return 8; }), 8) << "what does not wait is not interrupted";
    EXPECT_EQ(with_timeout(0s, [] { return 9; }), 9);
    EXPECT_THROW(with_timeout(-1h, []() -> int { throw std::runtime_error{"late, but its own"}; }), std::runtime_error);
    EXPECT_THROW(with_timeout(1h, [] { throw cancelled{}; }), cancelled) << "not late: not a timeout";
  });
}

TEST_P(regions, end_waits_when_their_time_has_come) {
  run([] {
    std::atomic<int> destroyed{0};
    const auto start = steady::now();
    EXPECT_THROW(with_timeout(200us,
                              [&] {
                                const guard g{destroyed};
                                wait_for_ever();
                              }),
                 timeout_error);
    EXPECT_GE(steady::now() - start, 200us);
    EXPECT_EQ(destroyed, 1);
    EXPECT_THROW(with_timeout(0s, [] { wait_for_ever(); }), timeout_error);
    using wall = std::chrono::system_clock;
    EXPECT_THROW(with_deadline(wall::now() - 1h, [] { wait_for_ever(); }), timeout_error);
    EXPECT_THROW(with_deadline(wall::now() + 2ms, [] { wait_for_ever(); }), timeout_error);
    EXPECT_EQ(with_deadline(wall::time_point::max(), [] { return 6; }), 6);
    EXPECT_THROW(with_deadline(steady::time_point::min(), [] { wait_for_ever(); }), timeout_error);
    event never;
    EXPECT_THROW(with_timeout(50us, [&] { never.wait(); }), timeout_error);
    with_timeout(1h, [] { this_fiber::sleep_for(10us); });
    this_fiber::sleep_for(10us);  // it leaves nothing behind
  });
}

TEST_P(regions, that_are_over_end_every_further_wait) {
  run([] {
    int ended = 0;
    EXPECT_THROW(with_timeout(20us,
                              [&] {
                                for (int i = 0; i < 5; ++i) try {
                                    wait_for_ever();
                                  } catch (const cancelled&) {
                                    ++ended;
                                  }
                                EXPECT_TRUE(this_fiber::stop_requested());
                                EXPECT_THROW(this_fiber::throw_if_stopped(), cancelled);
                                wait_for_ever();
                              }),
                 timeout_error);
    EXPECT_EQ(ended, 5);
    EXPECT_FALSE(this_fiber::stop_requested());
    this_fiber::throw_if_stopped();
    // Its result counts, even if it is late.
    EXPECT_EQ(with_timeout(0s,
                           [] {
                             try {
                               wait_for_ever();
                             } catch (const cancelled&) {
                             }
                             return 3;
                           }),
              3);
  });
}

TEST_P(regions, nest_and_the_earliest_wins) {
  run([] {
    std::string who;
    const auto inner_and_outer = [&](auto inner, auto outer) {
      who.clear();
      try {
        with_timeout(outer, [&] {
          try {
            with_timeout(inner, [] { wait_for_ever(); });
          } catch (const timeout_error&) {
            who = "inner";
          }
        });
      } catch (const timeout_error&) {
        who += "outer";
      }
      return who;
    };
    EXPECT_EQ(inner_and_outer(50us, 1h), "inner");
    EXPECT_EQ(inner_and_outer(1h, 50us), "outer");
    EXPECT_EQ(inner_and_outer(1h, 0us), "outer");
    // Many deep: the third from within.
    int level = 0;
    const auto nested = [&](auto& self, int depth) -> void {
      try {
        with_timeout(depth == 3 ? 100us : std::chrono::microseconds{1h}, [&] {
          if (depth == 0) wait_for_ever();
          else self(self, depth - 1);
        });
      } catch (const timeout_error&) {
        level = depth;
      }
    };
    nested(nested, 10);
    EXPECT_EQ(level, 3);
  });
}

TEST_P(regions, stop_requested_tells_of_them) {
  run([] {
    EXPECT_FALSE(this_fiber::stop_requested());
    with_timeout(1h, [] { EXPECT_FALSE(this_fiber::stop_requested()); });
    with_timeout(0s, [] {
      EXPECT_TRUE(this_fiber::stop_requested());
      shield([] {
        EXPECT_FALSE(this_fiber::stop_requested());
        with_timeout(0s, [] { EXPECT_TRUE(this_fiber::stop_requested()); });
        EXPECT_FALSE(this_fiber::stop_requested());
      });
      EXPECT_TRUE(this_fiber::stop_requested());
      with_timeout(1h, [] { EXPECT_TRUE(this_fiber::stop_requested()) << "the outer one is over"; });
    });
    EXPECT_FALSE(this_fiber::stop_requested());
  });
}

TEST_P(regions, shields_keep_deadlines_off_but_not_their_own) {
  run([] {
    std::atomic<bool> cleaned{false};
    EXPECT_THROW(with_timeout(0s,
                              [&] {
                                shield([&] {
                                  this_fiber::sleep_for(20us);
                                  EXPECT_THROW(with_timeout(20us, [] { wait_for_ever(); }), timeout_error);
                                  this_fiber::sleep_for(20us);
                                  cleaned = true;
                                });
                                wait_for_ever();
                              }),
                 timeout_error);
    EXPECT_TRUE(cleaned);
  });
}

TEST_P(regions, shields_keep_stop_requests_off) {
  if (on_thread()) GTEST_SKIP() << "nobody can stop a thread";
  run([] {
    std::atomic<int> step{0};
    event go_on;
    auto h = spawn([&] {
      shield([&] {
        step = 1;
        go_on.wait();
        EXPECT_FALSE(this_fiber::stop_requested());
        this_fiber::sleep_for(10us);
        EXPECT_THROW(with_timeout(20us, [] { wait_for_ever(); }), timeout_error);
        step = 2;
      });
      EXPECT_TRUE(this_fiber::stop_requested());
      wait_for_ever();
      step = 3;
    });
    await([&] { return step == 1 && go_on.parked() == 1; });
    h.request_stop();
    for (int i = 0; i < 20; ++i) this_fiber::yield();
    EXPECT_EQ(step, 1);
    go_on.set();
    EXPECT_THROW(h.join(), cancelled);
    EXPECT_EQ(step, 2);
  });
}

TEST_P(regions, shields_keep_shutdown_off) {
  if (on_thread()) GTEST_SKIP() << "no runtime";
  std::atomic<bool> shielded{false};
  std::atomic<bool> cleaned{false};
  std::atomic<bool> ended{false};
  {
    runtime_options o;
    o.workers = GetParam().first;
    const detail::with_test_options migrating{{.migrate_always = GetParam().second}};
    runtime rt{o};
    rt.spawn([&] {
        try {
          shielded = true;
          shield([&] {
            for (int i = 0; i < 20; ++i) this_fiber::sleep_for(100us);
            cleaned = true;
          });
          wait_for_ever();
        } catch (const cancelled&) {
          ended = true;
        }
      }).detach();
    await([&] { return shielded.load(); });
  }
  EXPECT_TRUE(cleaned);
  EXPECT_TRUE(ended);
}

TEST_P(regions, stop_requests_inside_a_deadline_are_no_timeouts) {
  if (on_thread()) GTEST_SKIP() << "nobody can stop a thread";
  run([] {
    event never;
    auto h = spawn([&] { with_timeout(1h, [&] { never.wait(); }); });
    await([&] { return never.parked() == 1; });
    h.request_stop();
    EXPECT_THROW(h.join(), cancelled);
    // Both: the deadline has passed, too, but it is also asked to stop from outside.
    std::atomic<bool> go{false};
    auto both = spawn([&] {
      with_timeout(0s, [&] {
        await([&] { return go.load(); });
        wait_for_ever();
      });
    });
    both.request_stop();
    go = true;
    EXPECT_THROW(both.join(), cancelled);
  });
}

TEST_P(regions, end_joins_and_leave_the_joined_alone) {
  if (on_thread()) GTEST_SKIP() << "no runtime";
  run([] {
    event go;
    auto h = spawn([&] {
      go.wait();
      return 5;
    });
    EXPECT_THROW(with_timeout(50us, [&] { return h.join(); }), timeout_error);
    EXPECT_TRUE(h.joinable());
    EXPECT_EQ(with_timeout(1h, [&] { return h.join_for(50us); }), std::nullopt);
    go.set();
    EXPECT_EQ(h.join(), 5);
  });
}

TEST_P(regions, do_not_reach_fibers_that_are_spawned_inside) {
  if (on_thread()) GTEST_SKIP() << "no runtime";
  run([] {
    event go;
    join_handle<int> h;
    EXPECT_THROW(with_timeout(0s,
                              [&] {
                                h = spawn([&] {
                                  go.wait();
                                  return this_fiber::stop_requested() ? 1 : 2;
                                });
                                wait_for_ever();
                              }),
                 timeout_error);
    go.set();
    EXPECT_EQ(h.join(), 2);
  });
}

// Forks: what runs inside a region, wherever it runs.

TEST_P(regions, reach_fork_jobs) {
  run([] {
    for (int round = 0; round < scaled(GetParam().second ? 10 : 50); ++round) {
      std::atomic<int> destroyed{0};
      const auto job = [&] {
        const guard g{destroyed};
        wait_for_ever();
      };
      EXPECT_THROW(with_timeout(200us, [&] { fork_join(job, job, job); }), timeout_error);
      // Of the jobs that came after the first failure on the same worker some need not have run.
      EXPECT_GE(destroyed, 1);
      // The fork outside, the region inside: the other job is not concerned.
      std::atomic<int> right{0};
      fork_join(
          [&] {
            EXPECT_THROW(with_timeout(50us, [&] { wait_for_ever(); }), timeout_error);
            ++right;
          },
          [&] {
            this_fiber::sleep_for(300us);
            right += this_fiber::stop_requested() ? 0 : 1;
          });
      EXPECT_EQ(right, 2);
      // Regions inside a region's jobs.
      const auto by_turns = [&] {
        for (;;) try {
            with_timeout(20us, [] { wait_for_ever(); });
          } catch (const timeout_error&) {
          }
      };
      EXPECT_THROW(with_timeout(300us, [&] { fork_join(by_turns, by_turns); }), timeout_error);
    }
  });
}

TEST_P(regions, reach_children_of_scopes) {
  run([] {
    for (int round = 0; round < scaled(GetParam().second ? 10 : 30); ++round) {
      std::atomic<int> destroyed{0};
      std::atomic<int> begun{0};
      EXPECT_THROW(with_timeout(300us,
                                [&] {
                                  scope s;
                                  // Many, and large: not all of their records fit into the scope itself.
                                  for (int i = 0; i < 12; ++i)
                                    s.spawn([&, ballast = std::array<char, 100>{}] {
                                      ++begun;
                                      const guard g{destroyed};
                                      this_fiber::sleep_for(1h + std::chrono::nanoseconds{ballast[5]});
                                    });
                                  s.join();
                                }),
                   timeout_error);
      EXPECT_GE(begun, 1);
      EXPECT_EQ(begun, destroyed);
    }
  });
}

TEST_P(regions, reach_the_children_of_children) {
  run([] {
    for (int round = 0; round < scaled(GetParam().second ? 10 : 20); ++round) {
      std::atomic<int> begun{0};
      std::atomic<int> destroyed{0};
      const auto leaf = [&] {
        ++begun;
        const guard g{destroyed};
        wait_for_ever();
      };
      EXPECT_THROW(with_timeout(300us,
                                [&] {
                                  scope outer;
                                  for (int i = 0; i < 3; ++i)
                                    outer.spawn([&, ballast = std::array<char, 200>{}] {
                                      scope inner;
                                      for (int k = 0; k < 4; ++k)
                                        inner.spawn([&, more = ballast] { more[0] == 0 ? leaf() : void(); });
                                      fork_join(leaf, leaf);
                                    });
                                  outer.join();
                                }),
                   timeout_error);
      EXPECT_EQ(begun, destroyed);
    }
  });
}

TEST_P(regions, shields_around_forks_hold_for_the_jobs) {
  run([] {
    for (int round = 0; round < scaled(GetParam().second ? 10 : 30); ++round) {
      std::atomic<int> finished{0};
      EXPECT_THROW(with_timeout(0s,
                                [&] {
                                  const auto job = [&] {
                                    this_fiber::sleep_for(20us);
                                    EXPECT_FALSE(this_fiber::stop_requested());
                                    ++finished;
                                  };
                                  shield([&] {
                                    fork_join(job, job, job);
                                    scope s;
                                    for (int i = 0; i < 5; ++i)
                                      s.spawn([job, b = std::array<char, 90>{}] { b[7] == 0 ? job() : void(); });
                                    s.join();
                                  });
                                  wait_for_ever();
                                }),
                   timeout_error);
      EXPECT_EQ(finished, 8);
    }
  });
}

TEST_P(regions, of_one_fiber_do_not_concern_another) {
  if (on_thread()) GTEST_SKIP() << "no fibers";
  run([] {
    std::vector<join_handle<int>> all;
    for (int i = 0; i < scaled(500); ++i)
      all.push_back(spawn([i] {
        int late = 0;
        try {
          with_timeout(i % 2 == 0 ? 50us : std::chrono::microseconds{1h},
                       [&] { this_fiber::sleep_for(i % 2 == 0 ? std::chrono::microseconds{1h} : 50us); });
        } catch (const timeout_error&) {
          late = 1;
        }
        this_fiber::sleep_for(1us);
        return late;
      }));
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].join(), i % 2 == 0 ? 1 : 0);
  });
}

TEST_P(regions, destructors_may_wait_while_an_exception_passes) {
  run([] {
    struct waits_at_end {
      bool* ended;
      ~waits_at_end() {
        this_fiber::sleep_for(20us);
        *ended = true;
      }
    };
    bool ended = false;
    EXPECT_THROW(with_timeout(0s,
                              [&] {
                                const waits_at_end w{&ended};
                                wait_for_ever();
                              }),
                 timeout_error);
    EXPECT_TRUE(ended);
  });
}

}  // namespace
}  // namespace ramie
