#include <ramie/fiber/fork_join.hpp>

#include <ramie/fiber/testing.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>

namespace ramie {
namespace {

using namespace fiber_tests;

class forking : public with_workers {
 protected:
  void SetUp() override { counted::reset(); }
  void TearDown() override { EXPECT_EQ(counted::alive, 0); }
};
INSTANTIATE_TEST_SUITE_P(workers, forking, few_and_many());

// Results.

TEST_P(forking, gives_all_results_in_the_order_of_the_functions) {
  in_runtime([] {
    for (int i = 0; i < 100; ++i) {
      auto [a, b] = fork_join([=] { return i; }, [=] { return std::to_string(i); });
      EXPECT_EQ(a, i);
      EXPECT_EQ(b, std::to_string(i));
      auto [c, d, e, f, g] =
          fork_join([] { return 1; }, [] { return 2L; }, [] {}, [] { return 'x'; }, [] { return 5.0; });
      EXPECT_EQ(std::tuple(c, d, e, f, g), std::tuple(1, 2L, std::monostate{}, 'x', 5.0));
    }
  });
}

TEST_P(forking, void_gives_monostate_and_references_decay) {
  in_runtime([] {
    static_assert(std::is_same_v<decltype(fork_join([] {}, [] {})), std::tuple<std::monostate, std::monostate>>);
    int n = 1;
    const std::string text = "abc";
    auto both = fork_join([&]() -> int& { return n; }, [&]() -> const std::string& { return text; });
    static_assert(std::is_same_v<decltype(both), std::tuple<int, std::string>>);
    std::get<0>(both) = 2;
    EXPECT_EQ(n, 1);
    EXPECT_EQ(std::get<1>(both), "abc");
  });
}

struct alignas(64) cache_line {
  std::array<char, 64> bytes{};
};

/// Both functions run, the second one elsewhere if there are workers: the first waits for it, parked.
template <class F, class G>
auto fork_for_sure(F f, G g) {
  event right_began;
  return fork_join(
      [&] {
        right_began.wait(detail::wait::kind::uninterruptible);
        return f();
      },
      [&] {
        right_began.set();
        return g();
      });
}

TEST_P(forking, results_may_be_move_only_or_over_aligned) {
  in_runtime([] {
    auto [a, b] = fork_for_sure([] { return std::make_unique<int>(1); }, [] { return std::make_unique<int>(2); });
    EXPECT_EQ(*a + *b, 3);
    auto [c, d] = fork_for_sure([] { return cache_line{{'c'}}; }, [] { return cache_line{{'d'}}; });
    EXPECT_EQ(c.bytes[0], 'c');
    EXPECT_EQ(d.bytes[0], 'd');
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&d) % 64, 0u);
    auto [e, f, g] = fork_join([] { return counted{1}; }, [] { return counted{2}; }, [] { return counted{3}; });
    EXPECT_EQ(e.value + f.value * 10 + g.value * 100, 321);
    EXPECT_EQ(counted::copies, 0);
  });
}

TEST_P(forking, functions_may_be_lvalues_large_not_copyable_and_noexcept) {
  in_runtime([] {
    const std::array<long, 100> numbers{1, 2, 3};
    auto left = [owned = std::make_unique<int>(4)]() mutable { return (*owned)++; };
    const auto right = [numbers]() noexcept { return numbers[0] + numbers[1] + numbers[2]; };
    EXPECT_EQ(fork_join(left, right), std::tuple(4, 6L));
    EXPECT_EQ(fork_join(left, right), std::tuple(5, 6L));
    int calls = 0;
    auto counting = [&calls]() noexcept { ++calls; };
    fork_join(counting, [] {});
    EXPECT_EQ(calls, 1);
  });
}

TEST_P(forking, nests) {
  struct tree {
    static long fib(int n) {
      if (n < 2) return n;
      auto [a, b] = fork_join([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
      return a + b;
    }
    static long wide(int depth) {
      if (depth == 0) return 1;
      auto [a, b, c, d] = fork_join([=] { return wide(depth - 1); }, [=] { return wide(depth - 1); },
                                    [=] { return wide(depth - 1); }, [=] { return wide(depth - 1); });
      return a + b + c + d;
    }
  };
  in_runtime([] {
    EXPECT_EQ(tree::fib(sanitized ? 18 : 25), sanitized ? 2584 : 75025);
    EXPECT_EQ(tree::wide(sanitized ? 5 : 8), sanitized ? 1024 : 65536);
  });
}

// Identity.

TEST_P(forking, all_share_the_identity_of_the_fiber) {
  runtime rt{options()};
  rt.spawn(fiber_options{.name = "whole"}, [] {
      const fiber_id id = this_fiber::get_id();
      const auto check = [id] {
        EXPECT_EQ(this_fiber::get_id(), id);
        EXPECT_EQ(this_fiber::name(), "whole");
        EXPECT_FALSE(this_fiber::stop_requested());
      };
      fork_for_sure(check, [&] {
        check();
        fork_for_sure(check, check);
        this_fiber::yield();
        check();
      });
    }).join();
}

TEST_P(forking, all_are_asked_to_stop_with_the_fiber) {
  runtime rt{options()};
  event ready;
  std::atomic<int> met{0};
  auto handle = rt.spawn([&] {
    const auto until_stopped = [&] {
      ready.set();
      await([] { return this_fiber::stop_requested(); });
      EXPECT_THROW(this_fiber::throw_if_stopped(), cancelled);
      EXPECT_THROW(this_fiber::sleep_for(1h), cancelled);
      ++met;
    };
    fork_for_sure(until_stopped, [&] { fork_for_sure(until_stopped, until_stopped); });
  });
  ready.wait();
  handle.request_stop();
  handle.join();
  EXPECT_EQ(met, 3);
}

// Suspension.

// The left side waits for what only the right side does: pending jobs must not be stuck below a parked fiber.
TEST_P(forking, the_left_may_wait_for_the_right) {
  in_runtime([] {
    for (int i = 0; i < scaled(2000); ++i)
      EXPECT_EQ(fork_for_sure([] { return 1; }, [] { return 2; }), std::tuple(1, 2));
  });
}

TEST_P(forking, and_the_right_for_the_left) {
  in_runtime([] {
    for (int i = 0; i < scaled(2000); ++i) {
      event right_began, left_ended;
      fork_join(
          [&] {
            right_began.wait();
            left_ended.set();
          },
          [&] {
            right_began.set();
            left_ended.wait();
          });
    }
  });
}

TEST_P(forking, all_of_several_may_wait_for_each_other) {
  in_runtime([] {
    for (int i = 0; i < scaled(1000); ++i) {
      std::array<event, 4> began;
      const auto meet = [&](std::size_t mine) {
        began[mine].set();
        for (event& e : began) e.wait();
        return mine;
      };
      EXPECT_EQ(
          fork_join([&] { return meet(0); }, [&] { return meet(1); }, [&] { return meet(2); }, [&] { return meet(3); }),
          std::tuple(std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}));
    }
  });
}

// Every level of the recursion has a job pending when the innermost call waits for the outermost one.
int nest(int depth, event& innermost, event& outermost) {
  if (depth == 0) {
    innermost.set();
    outermost.wait();
    return 0;
  }
  auto [a, b] = fork_join([&] { return nest(depth - 1, innermost, outermost); }, [] { return 1; });
  return a + b;
}

TEST_P(forking, the_innermost_may_wait_for_the_outermost) {
  in_runtime([] {
    for (int i = 0; i < scaled(200); ++i) {
      event innermost, outermost;
      EXPECT_EQ(std::get<0>(fork_join([&] { return nest(100, innermost, outermost); },
                                      [&] {
                                        innermost.wait();
                                        outermost.set();
                                      })),
                100);
    }
  });
}

long restless(int n, unsigned seed) {
  switch (seed % 16) {
    case 0: this_fiber::yield(); break;
    case 1: this_fiber::sleep_for(std::chrono::microseconds{seed / 16 % 20}); break;
    case 2: spawn([] { this_fiber::yield(); }).join(); break;
    default: break;
  }
  if (n < 2) return n;
  const unsigned next = seed * 1664525u + 1013904223u;
  auto [a, b] = fork_join([=] { return restless(n - 1, next >> 8); }, [=] { return restless(n - 2, next >> 4); });
  if (next >> 28 == 0) this_fiber::yield();
  return a + b;
}

TEST_P(forking, may_suspend_anywhere) {
  const int n = RAMIE_TSAN != 0 ? 10 : sanitized ? 13 : 17;
  const long right = RAMIE_TSAN != 0 ? 55 : sanitized ? 233 : 1597;
  in_runtime([=] {
    std::vector<join_handle<long>> handles;
    for (unsigned i = 0; i < 16; ++i) handles.push_back(spawn(restless, n, i * 7919));
    for (auto& h : handles) EXPECT_EQ(h.join(), right);
  });
}

TEST_P(forking, in_many_fibers_at_once) {
  in_runtime([] {
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 100; ++i)
      handles.push_back(spawn([i] {
        for (int k = 0; k < scaled(100); ++k) {
          auto [a, b, c] = fork_join(
              [&] {
                this_fiber::yield();
                return i;
              },
              [&] {
                if (k % 3 == 0) this_fiber::yield();
                return i + 1;
              },
              [&] { return i + 2; });
          ASSERT_EQ(a + b + c, 3 * i + 3);
        }
      }));
    for (auto& h : handles) h.join();
  });
}

long deep(int n, bool park) {
  if (n == 0) {
    if (park) this_fiber::sleep_for(1us);
    return 0;
  }
  auto [a, b] = fork_join([=] { return deep(n - 1, park); }, [] { return 1L; });
  return a + b;
}

// The deque of a worker holds 16,384 jobs. TSan keeps a shadow of the call stack that is not that deep.
TEST_P(forking, may_nest_deeper_than_the_deque) {
  if (RAMIE_TSAN != 0) GTEST_SKIP() << "too deep for TSan";
  runtime_options o = options();
  o.stack_size = std::size_t{512} << 20;
  runtime rt{o};
  rt.run([] {
    const int depth = sanitized ? 20'000 : 50'000;
    EXPECT_EQ(deep(depth, false), depth);
    EXPECT_EQ(deep(depth, true), depth);
    EXPECT_EQ(deep(16'383, true), 16'383);
    EXPECT_EQ(deep(16'384, true), 16'384);
    EXPECT_EQ(deep(16'385, true), 16'385);
    EXPECT_EQ(deep(depth, false), depth);
  });
}

// Jobs that were promoted and taken back by their own fiber must not pile up while other fibers keep the worker busy.
TEST_P(forking, a_fork_that_yields_leaves_nothing_behind) {
  if (sanitized) GTEST_SKIP() << "their memory is not ours";
  runtime_options o = options();
  o.spare_workers = 0;  // each has memory of its own
  run(o, [] {
    const auto pages = [] {
      std::FILE* f = std::fopen("/proc/self/statm", "r");
      long all = 0, resident = 0;
      EXPECT_EQ(std::fscanf(f, "%ld %ld", &all, &resident), 2);
      std::fclose(f);
      return resident;
    };
    const auto turns = [](int n) {
      std::vector<join_handle<void>> handles;
      for (int i = 0; i < 4; ++i)
        handles.push_back(spawn([n] {
          for (int k = 0; k < n; ++k) fork_join([] { this_fiber::yield(); }, [] {});
        }));
      for (auto& h : handles) h.join();
    };
    turns(100);
    long grown = 0;
    for (int i = 0; i < 3; ++i) {  // something else may grow once
      const long before = pages();
      turns(50'000);
      grown = pages() - before;
      if (grown < 1024) break;  // 200,000 jobs of 96 bytes would be 4,700, each time
    }
    EXPECT_LT(grown, 1024) << "pages";
  });
}

// Exceptions.

TEST_P(forking, what_the_left_throws_comes_out_and_the_right_is_dropped_if_it_has_not_begun) {
  runtime_options o = options();
  o.spare_workers = 0;  // with one worker there is no thief
  runtime rt{o};
  rt.run([&] {
    for (int i = 0; i < 100; ++i) {
      std::atomic<bool> right_ran{false};
      EXPECT_EQ(message_of<std::runtime_error>([&] {
                  fork_join([]() -> int { throw std::runtime_error{"left"}; },
                            [&] {
                              right_ran = true;
                              return counted{1};
                            });
                }),
                "left");
      EXPECT_FALSE(rt.workers() == 1 && right_ran);
      EXPECT_EQ(counted::alive, 0);
    }
  });
}

TEST_P(forking, the_left_s_exception_waits_for_the_right) {
  in_runtime([] {
    for (int i = 0; i < 100; ++i) {
      bool right_ended = false;
      EXPECT_THROW(fork_for_sure([]() -> int { throw 1; },
                                 [&] {
                                   this_fiber::yield();
                                   this_fiber::sleep_for(1us);
                                   right_ended = true;
                                   return counted{2};
                                 }),
                   int);
      EXPECT_TRUE(right_ended);
      EXPECT_EQ(counted::alive, 0) << "a result nobody gets is destroyed";
    }
  });
}

TEST_P(forking, what_the_right_throws_comes_out) {
  in_runtime([] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_THROW(fork_join([] { return counted{1}; }, [] { throw 2; }), int);
      EXPECT_THROW(fork_for_sure([] { return counted{1}; }, [] { throw 2; }), int);
      EXPECT_THROW(fork_for_sure([] { return counted{1}; },
                                 [] {
                                   this_fiber::yield();
                                   throw 2;
                                 }),
                   int);
      EXPECT_EQ(counted::alive, 0);
    }
  });
}

TEST_P(forking, of_two_failures_the_left_comes_out_and_the_other_is_reported) {
  runtime rt{options()};
  captured_stderr output;
  rt.run([] {
    EXPECT_EQ(message_of<std::runtime_error>([] {
                fork_for_sure([] { throw std::runtime_error{"left one"}; },
                              [] { throw std::runtime_error{"right one"}; });
              }),
              "left one");
  });
  const std::string text = output.text();
  EXPECT_TRUE(contains(text, "right one")) << text;
  EXPECT_FALSE(contains(text, "left one")) << text;
}

TEST_P(forking, of_several_failures_one_comes_out_and_the_others_are_reported) {
  runtime rt{options()};
  std::string thrown;
  captured_stderr output;
  rt.run([&] {
    // All have begun before any fails, so all are waited for.
    std::array<event, 3> began;
    const auto meet = [&](std::size_t mine) {
      began[mine].set();
      for (event& e : began) e.wait();
    };
    thrown = message_of<std::runtime_error>([&] {
      fork_join([&] { meet(0); },
                [&] {
                  meet(1);
                  throw std::runtime_error{"second"};
                },
                [&] {
                  meet(2);
                  throw std::runtime_error{"third"};
                });
    });
  });
  ASSERT_TRUE(thrown == "second" || thrown == "third") << thrown;
  EXPECT_TRUE(contains(output.text(), thrown == "second" ? "third" : "second"));
}

/// A stop ends one function, and another fails while it saves its work.
TEST_P(forking, of_a_cancellation_and_a_failure_the_failure_comes_out) {
  in_runtime([] {
    const auto saving = [](event& begun) {
      try {
        begun.set();
        event{}.wait();
      } catch (const cancelled&) {
        shield([] { this_fiber::yield(); });
        throw std::runtime_error{"could not be saved"};
      }
    };
    const auto waiting = [](event& begun) {
      begun.set();
      event{}.wait();
    };
    captured_stderr output;
    for (int order = 0; order < 3; ++order) {
      event first, second, third;
      auto h = spawn([&] {
        if (order == 0) fork_join([&] { saving(first); }, [&] { waiting(second); }, [&] { waiting(third); });
        if (order == 1) fork_join([&] { waiting(first); }, [&] { saving(second); }, [&] { waiting(third); });
        if (order == 2) fork_join([&] { waiting(first); }, [&] { waiting(second); }, [&] { saving(third); });
      });
      for (event* e : {&first, &second, &third}) e->wait();
      h.request_stop();
      EXPECT_EQ(message_of<std::runtime_error>([&] { h.join(); }), "could not be saved") << order;
    }
    EXPECT_EQ(output.text(), "");
  });
}

TEST_P(forking, from_any_depth) {
  struct tree {
    static int leaves(int depth, int bad) {
      if (depth == 0) {
        if (bad == 0) throw std::runtime_error{"leaf"};
        if (bad % 5 == 0) this_fiber::yield();
        return 1;
      }
      const counted witness{depth};
      const int half = 1 << (depth - 1);
      auto [a, b] = fork_join([=] { return leaves(depth - 1, bad); }, [=] { return leaves(depth - 1, bad - half); });
      return a + b;
    }
  };
  in_runtime([] {
    for (int bad = 0; bad < 256; bad += sanitized ? 37 : 5) {
      EXPECT_EQ(message_of<std::runtime_error>([=] { tree::leaves(8, bad); }), "leaf");
      EXPECT_EQ(counted::alive, 0);
    }
    EXPECT_EQ(tree::leaves(8, -1), 256);
  });
}

// Plain threads.

TEST(forking_on_a_plain_thread, calls_one_after_the_other) {
  int running = 0;
  const auto alone = [&](int n) {
    EXPECT_EQ(++running, 1);
    --running;
    return n;
  };
  EXPECT_EQ(fork_join([&] { return alone(1); }, [&] { return alone(2); }, [&] { return alone(3); }),
            std::tuple(1, 2, 3));
  EXPECT_THROW(fork_join([] { throw 1; }, [] { ADD_FAILURE() << "not begun, so dropped"; }), int);
  EXPECT_THROW(fork_join([] {}, [] { throw 1; }), int);
  EXPECT_EQ(deep(1'000, true), 1'000);
}

TEST(forking_on_a_plain_thread, beside_runtimes) {
  runtime rt{{.workers = 2}};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < scaled(500); ++k) {
        auto [a, b] = fork_join([&] { return rt.run([] { return fork_join([] { return 1; }, [] { return 2; }); }); },
                                [] { return 3; });
        EXPECT_EQ(std::get<0>(a) + std::get<1>(a) + b, 6);
      }
    });
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace ramie
