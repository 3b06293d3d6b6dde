#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/cancellation.hpp>

#include <ramie/fiber/testing.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class blocking_calls : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, blocking_calls, few_and_many());

TEST_P(blocking_calls, give_results_of_all_kinds) {
  in_runtime([] {
    EXPECT_EQ(blocking([] { return 42; }), 42);
    EXPECT_EQ(*blocking([] { return std::make_unique<int>(7); }), 7);
    bool ran = false;
    blocking([&] { ran = true; });
    EXPECT_TRUE(ran);
    auto counter = [n = 0]() mutable { return ++n; };
    EXPECT_EQ(blocking(counter), 1);
    EXPECT_EQ(blocking(counter), 2) << "called in place, not copied";
    const std::string text = "abc";
    EXPECT_EQ(blocking([&] { return text + "d"; }), "abcd");
  });
}

TEST_P(blocking_calls, rethrow) {
  in_runtime([] {
    EXPECT_EQ(message_of<std::runtime_error>([] { blocking([] { throw std::runtime_error{"x"}; }); }), "x");
    EXPECT_THROW(blocking([]() -> int { throw 3; }), int);
  });
}

TEST_P(blocking_calls, run_on_a_thread_of_their_own) {
  in_runtime([] {
    const auto here = std::this_thread::get_id();
    const fiber_id me = this_fiber::get_id();
    blocking([&] {
      EXPECT_NE(std::this_thread::get_id(), here);
      EXPECT_NE(this_fiber::get_id(), me);
      EXPECT_EQ(this_fiber::name(), "");
      EXPECT_THROW(static_cast<void>(spawn([] {})), usage_error);
      EXPECT_EQ(blocking([] { return 1; }), 1) << "a plain call there";
    });
    EXPECT_EQ(this_fiber::get_id(), me);
  });
}

TEST_P(blocking_calls, let_other_fibers_run) {
  in_runtime([] {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    auto reader = spawn([&] {
      return blocking([&] {
        char c = 0;
        EXPECT_EQ(::read(ends[0], &c, 1), 1);
        return c;
      });
    });
    for (int i = 0; i < 100; ++i) this_fiber::yield();
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    EXPECT_EQ(reader.join(), 'x');
    ::close(ends[0]);
    ::close(ends[1]);
  });
}

TEST_P(blocking_calls, many_at_once) {
  in_runtime([] {
    // All are inside at the same time, so each has a thread.
    constexpr int n = 64;
    std::atomic<int> inside{0};
    std::vector<join_handle<int>> handles;
    for (int i = 0; i < n; ++i)
      handles.push_back(spawn([&, i] {
        return blocking([&] {
          ++inside;
          await([&] { return inside == n; });
          return i;
        });
      }));
    for (int i = 0; i < n; ++i) EXPECT_EQ(handles[static_cast<std::size_t>(i)].join(), i);
  });
}

TEST_P(blocking_calls, no_more_at_once_than_allowed) {
  runtime_options o = options();
  o.blocking_threads = 3;
  runtime rt{o};
  rt.run([] {
    std::atomic<int> inside{0}, most{0};
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 100; ++i)
      handles.push_back(spawn([&] {
        blocking([&] {
          const int now = ++inside;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          for (int k = 0; k < 20; ++k) std::this_thread::yield();
          --inside;
        });
      }));
    for (auto& h : handles) h.join();
    EXPECT_LE(most, 3);
    EXPECT_GE(most, 1);
  });
}

TEST_P(blocking_calls, wait_for_their_turn_first_in_first_out) {
  runtime_options o = options();
  o.blocking_threads = 1;
  runtime rt{o};
  rt.run([] {
    event first_inside, go;
    std::vector<int> order;
    std::vector<join_handle<void>> handles;
    handles.push_back(spawn([&] {
      blocking([&] {
        first_inside.set();
        go.wait();
        order.push_back(0);
      });
    }));
    first_inside.wait();
    for (int i = 1; i <= 5; ++i) {
      std::atomic<bool> called{false};
      handles.push_back(spawn([&, i] {
        called = true;
        blocking([&, i] { order.push_back(i); });
      }));
      await([&] { return called.load(); });
      for (int k = 0; k < 3; ++k) this_fiber::yield();
    }
    go.set();
    for (auto& h : handles) h.join();
    EXPECT_EQ(order.size(), 6u);
    EXPECT_EQ(order.front(), 0);
  });
}

TEST_P(blocking_calls, are_not_cut_short) {
  in_runtime([] {
    event inside, go;
    auto handle = spawn([&] {
      const int result = blocking([&] {
        inside.set();
        go.wait();
        return 5;
      });
      EXPECT_TRUE(this_fiber::stop_requested());
      EXPECT_THROW(blocking([] { return 6; }), cancelled) << "another one is not begun";
      EXPECT_EQ(shield([] { return blocking([] { return 7; }); }), 7);
      EXPECT_THROW(this_fiber::sleep_for(1h), cancelled);
      return result;
    });
    inside.wait();
    handle.request_stop();
    EXPECT_EQ(handle.join_for(1ms), std::nullopt);
    go.set();
    EXPECT_EQ(handle.join(), 5);
  });
}

TEST_P(blocking_calls, that_wait_for_a_thread_are_cancelled) {
  runtime_options o = options();
  o.blocking_threads = 1;
  runtime rt{o};
  rt.run([] {
    event inside, go;
    auto first = spawn([&] {
      blocking([&] {
        inside.set();
        go.wait();
      });
    });
    inside.wait();
    std::atomic<bool> called{false};
    event soon;
    auto second = spawn([&] {
      soon.set();
      blocking([&] { called = true; });
    });
    soon.wait();
    this_fiber::yield();
    second.request_stop();
    EXPECT_THROW(second.join(), cancelled);
    EXPECT_FALSE(called.load());
    go.set();
    first.join();
  });
}

TEST_P(blocking_calls, may_use_the_runtime_from_inside) {
  runtime rt{options()};
  rt.run([&] {
    EXPECT_EQ(blocking([&] { return rt.run([] { return blocking([] { return 9; }); }); }), 9);
    auto handle = spawn([] {
      this_fiber::yield();
      return 4;
    });
    EXPECT_EQ(blocking([&] { return handle.join(); }), 4);
  });
}

TEST_P(blocking_calls, in_every_part_of_a_fork) {
  in_runtime([] {
    for (int i = 0; i < scaled(200); ++i) {
      auto [a, b, c] = fork_join([] { return blocking([] { return 1; }); }, [] { return blocking([] { return 2; }); },
                                 [] { return 3; });
      EXPECT_EQ(a + b + c, 6);
    }
  });
}

TEST_P(blocking_calls, hammered) {
  runtime_options o = options();
  o.blocking_threads = 4;
  runtime rt{o};
  rt.run([] {
    std::atomic<int> ran{0};
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 50; ++i)
      handles.push_back(spawn([&] {
        for (int k = 0; k < scaled(200); ++k) {
          blocking([&] { ++ran; });
          if (k % 4 == 0) this_fiber::yield();
        }
      }));
    for (auto& h : handles) h.join();
    EXPECT_EQ(ran, 50 * scaled(200));
  });
}

TEST(blocking_on_a_plain_thread, just_calls) {
  const auto here = std::this_thread::get_id();
  EXPECT_EQ(blocking([] { return std::this_thread::get_id(); }), here);
  EXPECT_THROW(blocking([] { throw 1; }), int);
}

// Blocking without the help of `blocking`: spare threads replace stalled workers.

class stalled_workers : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, stalled_workers, few_and_many());

TEST_P(stalled_workers, fibers_blocked_in_read_do_not_stop_the_one_that_writes) {
  runtime rt{options()};
  const int n = 2 * GetParam();  // all workers are stuck, and those that replace them
  std::vector<std::array<int, 2>> pipes(static_cast<std::size_t>(n));
  for (auto& p : pipes) ASSERT_EQ(::pipe(p.data()), 0);
  std::atomic<int> reading{0};
  rt.run([&] {
    std::vector<join_handle<char>> readers;
    for (auto& p : pipes)
      readers.push_back(spawn([&] {
        ++reading;
        char c = 0;
        EXPECT_EQ(::read(p[0], &c, 1), 1);
        return c;
      }));
    auto writer = spawn([&] {
      await([&] { return reading == n; });
      for (auto& p : pipes) EXPECT_EQ(::write(p[1], "w", 1), 1);
    });
    for (auto& r : readers) EXPECT_EQ(r.join(), 'w');
    writer.join();
  });
  for (auto& p : pipes) {
    ::close(p[0]);
    ::close(p[1]);
  }
}

TEST_P(stalled_workers, hogs_on_every_worker_do_not_stop_a_ticker) {
  runtime rt{options()};
  rt.run([&] {
    std::atomic<int> ticks{0};
    std::atomic<int> hogging{0};
    std::vector<join_handle<void>> hogs;
    auto ticker = spawn([&] {
      for (; ticks < 20; ++ticks) this_fiber::sleep_for(1ms);
    });
    for (int i = 0; i < rt.workers(); ++i)
      hogs.push_back(spawn([&] {
        ++hogging;
        while (ticks < 20) std::atomic_signal_fence(std::memory_order_seq_cst);  // computes
      }));
    ticker.join();
    for (auto& h : hogs) h.join();
    EXPECT_EQ(hogging, rt.workers());
  });
}

TEST_P(stalled_workers, nor_a_thread_that_waits_for_a_fiber) {
  runtime rt{options()};
  std::atomic<bool> go_on{true};
  std::atomic<int> hogging{0};
  std::vector<join_handle<void>> hogs;
  for (int i = 0; i < rt.workers(); ++i)
    hogs.push_back(rt.spawn([&] {
      ++hogging;
      while (go_on) std::atomic_signal_fence(std::memory_order_seq_cst);
    }));
  await([&] { return hogging == rt.workers(); });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rt.run([i] { return i; }), i);
  go_on = false;
  for (auto& h : hogs) h.join();
}

TEST_P(stalled_workers, come_back_again_and_again) {
  runtime_options o = options();
  o.stall_after = 1ms;
  runtime rt{o};
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> go_on{true};
    std::vector<join_handle<void>> hogs;
    for (int i = 0; i < rt.workers() + 1; ++i)
      hogs.push_back(rt.spawn([&] {
        while (go_on) std::atomic_signal_fence(std::memory_order_seq_cst);
      }));
    EXPECT_EQ(rt.run([] {
      this_fiber::sleep_for(1ms);
      return 1;
    }),
              1);
    go_on = false;
    for (auto& h : hogs) h.join();
    rt.run([] {
      for (int i = 0; i < 100; ++i) this_fiber::yield();
    });
  }
}

}  // namespace
}  // namespace ramie
