// What happens to algorithms when bodies throw, wait, are stopped, or call algorithms.
#include <ramie/parallel.hpp>

#include <ramie/base/error.hpp>
#include <ramie/channel/channel.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/parallel/testing.hpp>
#include <ramie/sync/mutex.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace parallel_tests;

struct algorithm {
  const char* name;
  /// Calls `body` for elements of 0 to n.
  std::function<void(std::vector<int>&, const std::function<void(int)>&)> run;
  bool twice = false;  // may call it more than once for an element
};

const std::vector<algorithm>& all_algorithms() {
  using body = std::function<void(int)>;
  static const std::vector<algorithm> all{
      {"for_each", [](std::vector<int>& v, const body& b) { parallel::for_each(v, b); }},
      {"transform",
       [](std::vector<int>& v, const body& b) { parallel::transform(v, v.begin(), [&](int x) { return b(x), x; }); }},
      {"reduce",
       [](std::vector<int>& v, const body& b) {
         static_cast<void>(parallel::reduce(v, 0, std::plus<>{}, [&](int x) { return b(x), x; }));
       }},
      {"reduce, deterministic",
       [](std::vector<int>& v, const body& b) {
         static_cast<void>(
             parallel::reduce(parallel::deterministic, v, 0, std::plus<>{}, [&](int x) { return b(x), x; }));
       }},
      {"count_if", [](std::vector<int>& v,
                      const body& b) { static_cast<void>(parallel::count_if(v, [&](int x) { return b(x), true; })); }},
      {"find_if", [](std::vector<int>& v,
                     const body& b) { static_cast<void>(parallel::find_if(v, [&](int x) { return b(x), false; })); }},
      {"all_of", [](std::vector<int>& v,
                    const body& b) { static_cast<void>(parallel::all_of(v, [&](int x) { return b(x), true; })); }},
      {"min_element",
       [](std::vector<int>& v, const body& b) {
         static_cast<void>(parallel::min_element(v, {}, [&](int x) { return b(x), x; }));
       },
       true},
      {"histogram",
       [](std::vector<int>& v, const body& b) {
         std::vector<int> bins(1);
         parallel::histogram(v, bins, [&](int x) { return b(x), 0; });
       }},
      {"inclusive_scan",
       [](std::vector<int>& v, const body& b) {
         std::vector<int> out(v.size());
         parallel::inclusive_scan(v, out.begin(), [&](int, int y) { return b(y), y; }, 0);
       },
       true},
      {"copy_if",
       [](std::vector<int>& v, const body& b) {
         std::vector<int> out(v.size());
         parallel::copy_if(v, out.begin(), [&](int x) { return b(x), true; });
       }},
      {"unique",
       [](std::vector<int>& v, const body& b) {
         parallel::unique(v, [&](int x, int y) { return b(x), b(y), x == y; });
       },
       true},
      {"partition",
       [](std::vector<int>& v, const body& b) { parallel::partition(v, [&](int x) { return b(x), x % 2 == 0; }); }},
      {"merge",
       [](std::vector<int>& v, const body& b) {
         std::vector<int> out(2 * v.size());
         parallel::merge(v, v, out.begin(), [&](int x, int y) { return b(x), b(y), x < y; });
       },
       true},
      {"sort",
       [](std::vector<int>& v, const body& b) { parallel::sort(v, [&](int x, int y) { return b(x), b(y), x < y; }); },
       true},
      {"stable_sort",
       [](std::vector<int>& v, const body& b) {
         parallel::stable_sort(v, [&](int x, int y) { return b(x), b(y), x < y; });
       },
       true},
      {"for_blocks",
       [](std::vector<int>& v, const body& b) {
         parallel::for_blocks(v.size(), 1, [&](parallel::index_range rows, parallel::index_range) {
           for (const std::size_t r : rows) b(v[r]);
         });
       }},
      {"invoke",
       [](std::vector<int>& v, const body& b) {
         std::vector<std::function<void()>> calls;
         calls.reserve(v.size());
         for (const int x : v) calls.emplace_back([&b, x] { b(x); });
         parallel::invoke(calls);
       }},
      {"pipeline",
       [](std::vector<int>& v, const body& b) {
         std::size_t at = 0;
         parallel::pipeline(
             8, [&]() -> std::optional<int> { return at < v.size() ? std::optional{v[at++]} : std::nullopt; },
             [&](int x) { return b(x), x; }, parallel::ordered{[](int x) { return x; }}, [](int) {});
       }},
      {"task_graph",
       [](std::vector<int>& v, const body& b) {
         parallel::task_graph graph;
         auto first = graph.add("first", [] {});
         for (const int x : v) first.precede(graph.add("some", [&b, x] { b(x); }));
         graph.run();
       }},
  };
  return all;
}

std::vector<int> up_to(std::size_t n) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

class any_algorithm : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, any_algorithm, few_and_many());

TEST_P(any_algorithm, rethrows_what_a_body_throws_when_all_have_ended) {
  in_runtime([] {
    for (const algorithm& a : all_algorithms()) {
      for (const int bad : {0, 1, 1000, 1999}) {
        std::vector<int> v = up_to(2000);
        std::atomic<int> inside{0};
        EXPECT_EQ(message_of<std::runtime_error>([&] {
                    a.run(v, [&](int x) {
                      ++inside;
                      if (x % 100 == 0) this_fiber::yield();
                      --inside;
                      if (x == bad) throw std::runtime_error{"bad"};
                    });
                  }),
                  "bad")
            << a.name << " " << bad;
        EXPECT_EQ(inside, 0) << a.name;
      }
    }
  });
}

TEST_P(any_algorithm, stops_waits_of_others_when_a_body_throws) {
  if (GetParam() == 1) GTEST_SKIP() << "nothing else has begun when the first body throws";
  in_runtime([] {
    for (const algorithm& a : all_algorithms()) {
      if (a.twice) continue;  // what one element waits for may be waited for again
      std::vector<int> v = up_to(scaled(20'000) + 2000);
      std::atomic<int> calls{0};
      event never;
      // The first call waits until another one, made by somebody else, has failed.
      EXPECT_EQ(message_of<std::runtime_error>([&] {
                  a.run(v, [&](int) {
                    if (calls++ == 0) never.wait();
                    else throw std::runtime_error{"bad"};
                  });
                }),
                "bad")
          << a.name;
      EXPECT_FALSE(never.is_set());
    }
  });
}

TEST_P(any_algorithm, bodies_may_wait) {
  in_runtime([] {
    for (const algorithm& a : all_algorithms()) {
      std::vector<int> v = up_to(300);
      mutex lock;
      long sum = 0;
      channel<int> numbers{4};
      auto source = spawn([&] {
        for (int i = 0; numbers.send(i) == channel_status::ok; ++i) {
        }
      });
      std::atomic<int> calls{0};
      a.run(v, [&](int x) {
        ++calls;
        if (x % 3 == 0) static_cast<void>(numbers.recv());
        if (x % 50 == 0) this_fiber::sleep_for(1us);
        std::lock_guard guard{lock};
        if (x % 5 == 0) this_fiber::yield();
        sum += x;
      });
      numbers.close();
      source.join();
      EXPECT_GE(calls, 299) << a.name;
      if (!a.twice) {
        EXPECT_EQ(calls, 300) << a.name;
        EXPECT_EQ(sum, 300 * 299 / 2) << a.name;
      }
    }
  });
}

TEST_P(any_algorithm, ends_at_a_deadline_in_a_wait) {
  in_runtime([] {
    for (const algorithm& a : all_algorithms()) {
      std::vector<int> v = up_to(1000);
      event never;
      EXPECT_THROW(with_timeout(1ms, [&] { a.run(v, [&](int x) { x >= 500 ? never.wait() : void(); }); }),
                   timeout_error)
          << a.name;
      EXPECT_EQ(never.parked(), 0) << a.name;
    }
  });
}

TEST_P(any_algorithm, ends_when_its_fiber_is_stopped) {
  in_runtime([] {
    for (const algorithm& a : all_algorithms()) {
      std::vector<int> v = up_to(1000);
      event never;
      auto fiber = spawn([&] { a.run(v, [&](int x) { x >= 500 ? never.wait() : void(); }); });
      await([&] { return never.parked() != 0; });
      fiber.request_stop();
      EXPECT_THROW(fiber.join(), cancelled) << a.name;
      EXPECT_EQ(never.parked(), 0) << a.name;
    }
  });
}

TEST_P(any_algorithm, may_be_called_by_bodies) {
  in_runtime([] {
    for (const algorithm& outer : all_algorithms()) {
      if (outer.twice) continue;
      for (const algorithm& inner : all_algorithms()) {
        if (inner.twice) continue;
        std::vector<int> v = up_to(12);
        std::atomic<int> calls{0};
        outer.run(v, [&](int) {
          std::vector<int> w = up_to(20);
          inner.run(w, [&](int x) {
            if (x == 7) this_fiber::yield();
            ++calls;
          });
        });
        EXPECT_EQ(calls, 240) << outer.name << " of " << inner.name;
      }
    }
  });
}

TEST_P(any_algorithm, of_a_body_that_fails_within_a_body_fails) {
  in_runtime([] {
    for (const algorithm& a : all_algorithms()) {
      std::vector<int> v = up_to(50);
      EXPECT_EQ(message_of<std::runtime_error>([&] {
                  a.run(v, [&](int) {
                    parallel::for_each(up_to(50), [](int x) {
                      if (x == 30) throw std::runtime_error{"within"};
                    });
                  });
                }),
                "within")
          << a.name;
    }
  });
}

/// The first body that waits is only stopped; the second fails while it saves its work.
TEST_P(any_algorithm, that_is_stopped_and_fails_fails) {
  in_runtime([] {
    for (const algorithm& a : all_algorithms()) {
      std::vector<int> v = up_to(20);
      event never;
      std::atomic<int> begun{0};
      captured_stderr output;
      auto h = spawn([&] {
        a.run(v, [&](int) {
          const int n = begun++;
          try {
            never.wait();
          } catch (const cancelled&) {
            if (n != 1) throw;
            shield([] { this_fiber::yield(); });
            throw std::runtime_error{"could not be saved"};
          }
        });
      });
      // On one worker bodies come one after the other, and in some algorithms elsewhere.
      for (int i = 0; begun == 0 || (GetParam() != 1 && begun < 2 && i < 100); ++i)
        this_fiber::sleep_for(std::chrono::milliseconds{1});
      const bool both = begun >= 2;
      h.request_stop();
      try {
        h.join();
        ADD_FAILURE() << a.name;
      } catch (const std::runtime_error&) {
        EXPECT_GE(begun, 2) << a.name;
      } catch (const cancelled&) {
        EXPECT_FALSE(both) << a.name;
      }
      EXPECT_EQ(output.text(), "") << a.name;
    }
  });
}

// A loop that never waits ends at a deadline, too, if it is long enough: bodies go on until they see it pass.
TEST_P(any_algorithm, ends_at_a_deadline_between_chunks) {
  in_runtime([] {
    std::vector<int> v = up_to(1'000'000);
    std::atomic<int> calls_after{0};
    EXPECT_THROW(with_timeout(1ms,
                              [&] {
                                parallel::for_each(v, [&](int) {
                                  const auto until = std::chrono::steady_clock::now() + 10us;
                                  while (std::chrono::steady_clock::now() < until) {
                                  }
                                  ++calls_after;
                                });
                              }),
                 timeout_error);
    EXPECT_LT(calls_after, 1'000'000);  // ten seconds
  });
}

TEST_P(any_algorithm, sorts_pass_on_what_comparisons_throw_at_any_time) {
  in_runtime([] {
    for (const int calls_most : {0, 10, 5000, 100'000}) {
      for (const bool is_stable : {false, true}) {
        std::vector<std::string> v;
        for (const int x : random_ints(20'000, 1000))
          v.push_back("a text that does not fit into itself " + std::to_string(x));
        std::atomic<int> calls{0};
        const auto fails = [&](const std::string& a, const std::string& b) {
          if (calls.fetch_add(1, std::memory_order_relaxed) == calls_most) throw std::runtime_error{"comparison"};
          return a < b;
        };
        EXPECT_EQ(message_of<std::runtime_error>([&] {
                    if (is_stable) parallel::stable_sort(v, fails);
                    else parallel::sort(v, fails);
                  }),
                  "comparison");
        EXPECT_EQ(v.size(), 20'000u);
      }
    }
  });
}

TEST(algorithms_on_a_plain_thread, run_there) {
  for (const algorithm& a : all_algorithms()) {
    std::vector<int> v = up_to(1000);
    const std::thread::id here = std::this_thread::get_id();
    int calls = 0;
    a.run(v, [&](int) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++calls;
    });
    EXPECT_GE(calls, 999) << a.name;
    EXPECT_THROW(a.run(v, [](int x) { x == 700 ? throw std::runtime_error{"bad"} : void(); }), std::runtime_error)
        << a.name;
  }
}

TEST(algorithms_of_a_runtime_that_ends, end_with_it) {
  for (const algorithm& a : all_algorithms()) {
    runtime_options options;
    options.workers = 2;
    runtime rt{options};
    event never;
    auto fiber = rt.spawn([&] {
      std::vector<int> v = up_to(1000);
      a.run(v, [&](int x) { x >= 500 ? never.wait() : void(); });
    });
    await([&] { return never.parked() != 0; });
    rt.shutdown();
    EXPECT_THROW(fiber.join(), cancelled) << a.name;
  }
}

}  // namespace
}  // namespace ramie
