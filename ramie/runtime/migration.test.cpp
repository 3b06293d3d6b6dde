// Fibers that resume on another worker after every wait (test_options::migrate_always), which reveals anything kept
// from the old one.
#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/parallel.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/machine/test_options.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class migrating : public ::testing::TestWithParam<int> {
 protected:
  static runtime_options options() {
    runtime_options o;
    o.workers = GetParam();
    return o;
  }

 private:
  detail::with_test_options migrating_{{.migrate_always = true}};
};
INSTANTIATE_TEST_SUITE_P(workers, migrating, ::testing::Values(1, 2, 8));

/// Read where the compiler cannot keep the thread's address.
RAMIE_NOINLINE std::thread::id here() {
  asm volatile("" ::: "memory");
  return std::this_thread::get_id();
}

TEST_P(migrating, every_wait_ends_on_another_thread) {
  if (GetParam() == 1) GTEST_SKIP() << "there is no other";
  runtime_options o = options();
  o.stall_after = std::chrono::hours{1};  // what the monitor moves is for any worker
  runtime rt{o};
  rt.run([] {
    // A fiber that need not wait, or that is woken before it has left, stays; nothing else runs on its worker
    // meanwhile.
    const auto moves = [](auto wait) {
      const auto before = here();
      const std::uint64_t session = detail::current_worker()->session;
      wait();
      return here() != before || detail::current_worker()->session == session;
    };
    for (int i = 0; i < scaled(300); ++i) {
      EXPECT_TRUE(moves([] { this_fiber::sleep_for(1us); }));
      auto child = spawn([] { this_fiber::sleep_for(1us); });
      EXPECT_TRUE(moves([&] { child.join(); }));
    }
  });
}

TEST_P(migrating, one_alone_goes_on) {
  runtime rt{options()};
  EXPECT_EQ(rt.run([] {
    int n = 0;
    for (int i = 0; i < scaled(500); ++i) {
      this_fiber::sleep_for(1us);
      this_fiber::yield();
      ++n;
    }
    return n;
  }),
            scaled(500));
}

TEST_P(migrating, many_at_once) {
  runtime rt{options()};
  std::atomic<int> ran{0};
  std::vector<join_handle<void>> handles;
  for (int i = 0; i < scaled(500); ++i)
    handles.push_back(rt.spawn([&, i] {
      const fiber_id me = this_fiber::get_id();
      for (int k = 0; k < 5; ++k) {
        switch ((i + k) % 3) {
          case 0: this_fiber::yield(); break;
          case 1: this_fiber::sleep_for(std::chrono::microseconds{i % 10}); break;
          default: EXPECT_EQ(spawn([k] { return this_fiber::yield(), k; }).join(), k);
        }
        EXPECT_EQ(this_fiber::get_id(), me);
      }
      ++ran;
    }));
  for (auto& h : handles) h.join();
  EXPECT_EQ(ran, scaled(500));
}

TEST_P(migrating, forks_scopes_and_loops) {
  runtime rt{options()};
  rt.run([] {
    for (int i = 0; i < scaled(200); ++i) {
      auto [a, b] = fork_join(
          [] {
            this_fiber::sleep_for(1us);
            return fork_join([] { return this_fiber::sleep_for(1us), 1; }, [] { return 2; });
          },
          [] { return this_fiber::sleep_for(1us), 3; });
      EXPECT_EQ(std::get<0>(a) + std::get<1>(a) + b, 6);
      std::atomic<int> ran{0};
      scope s;
      for (int k = 0; k < 6; ++k) {
        s.spawn([&, k] {
          if (k % 2 == 0) this_fiber::sleep_for(1us);
          s.spawn([&] { ++ran; });
          ++ran;
        });
        if (k == 3) this_fiber::sleep_for(1us);
      }
      s.join();
      EXPECT_EQ(ran, 12);
    }
    std::atomic<int> ran{0};
    parallel_for(0, 200, [&](int k) {
      if (k % 5 == 0) this_fiber::sleep_for(1us);
      ++ran;
    });
    EXPECT_EQ(ran, 200);
  });
}

/// Not inlined: the compiler takes the address of errno for a constant of the function.
RAMIE_NOINLINE void leave_error(int code) { errno = code; }

TEST_P(migrating, thread_locals_are_those_of_the_thread) {
  // What the C library keeps per thread is found anew by each call, not by an address kept across a wait.
  runtime rt{options()};
  rt.run([] {
    for (int i = 0; i < scaled(200); ++i) {
      leave_error(1000 + i);
      this_fiber::sleep_for(1us);
      const fiber_id id = this_fiber::get_id();
      EXPECT_EQ(spawn([] { return 1; }).join(), 1);
      EXPECT_EQ(this_fiber::get_id(), id);
      EXPECT_FALSE(this_fiber::stop_requested());
    }
  });
}

TEST_P(migrating, blocking_calls_and_deep_stacks) {
  runtime rt{options()};
  rt.run([] {
    struct deep {
      static int go(int n) {
        volatile char frame[256];
        frame[0] = 1;
        if (n == 0) {
          this_fiber::sleep_for(1us);
          return blocking([] { return 0; });
        }
        return go(n - 1) + frame[0];
      }
    };
    for (int i = 0; i < scaled(100); ++i) EXPECT_EQ(deep::go(100), 100);
  });
}

TEST_P(migrating, cancellation_finds_them) {
  runtime rt{options()};
  for (int i = 0; i < scaled(300); ++i) {
    auto handle = rt.spawn([] {
      for (;;) this_fiber::sleep_for(1us);
    });
    for (int k = 0; k < i % 20; ++k) std::this_thread::yield();
    handle.request_stop();
    EXPECT_THROW(handle.join(), cancelled);
  }
}

}  // namespace
}  // namespace ramie
