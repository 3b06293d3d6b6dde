// Helper threads: as many as needed, no more than allowed, and an error when none can be started.
#include <ramie/machine/blocking_pool.hpp>

#include <ramie/base/error.hpp>
#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::hold_until;
using testing::scaled;

struct call : blocking_call {
  std::function<void()> f;
  explicit call(std::function<void()> function) : blocking_call{&go}, f{std::move(function)} {}
  static void go(blocking_call& self) noexcept { static_cast<call&>(self).f(); }
};

TEST(blocking_pools, run_what_is_submitted_once) {
  const int n = scaled(20'000);
  std::atomic<int> runs{0};
  std::vector<std::unique_ptr<call>> calls;
  {
    blocking_pool pool{4, "test"};
    for (int i = 0; i < n; ++i) {
      calls.push_back(std::make_unique<call>([&] { runs.fetch_add(1); }));
      pool.submit(*calls.back());
    }
    hold_until([&] { return runs.load() >= n; });
  }
  EXPECT_EQ(runs.load(), n);
}

TEST(blocking_pools, take_calls_from_many_threads) {
  blocking_pool pool{3, "test"};
  const int n = scaled(10'000);
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < n; ++i) {
        std::atomic<bool> ran{false};
        call c{[&] {
          runs.fetch_add(1);
          ran.store(true);
        }};
        pool.submit(c);
        hold_until([&] { return ran.load(); });
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(runs.load(), 4 * n);
}

TEST(blocking_pools, start_as_many_threads_as_calls_block) {
  blocking_pool pool{8, "test"};
  std::atomic<int> inside{0};
  std::atomic<bool> go{false};
  std::atomic<int> ended{0};
  std::vector<std::unique_ptr<call>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(std::make_unique<call>([&] {
      inside.fetch_add(1);
      hold_until([&] { return go.load(); });
      ended.fetch_add(1);
    }));
    pool.submit(*calls.back());
  }
  hold_until([&] { return inside.load() == 8; });
  go.store(true);
  hold_until([&] { return ended.load() == 8; });
}

TEST(blocking_pools, keep_to_their_limit) {
  blocking_pool pool{2, "test"};
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<bool> go{false};
  std::atomic<int> ended{0};
  std::vector<std::unique_ptr<call>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::make_unique<call>([&] {
      const int now = inside.fetch_add(1) + 1;
      for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      hold_until([&] { return go.load(); });
      inside.fetch_sub(1);
      ended.fetch_add(1);
    }));
    pool.submit(*calls.back());
  }
  hold_until([&] { return inside.load() == 2; });
  go.store(true);
  hold_until([&] { return ended.load() == 20; });
  EXPECT_EQ(most.load(), 2);
}

TEST(blocking_pools, keep_order) {
  blocking_pool pool{1, "test"};
  std::atomic<bool> go{false};
  std::atomic<int> ended{0};
  std::vector<int> order;
  std::vector<std::unique_ptr<call>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::make_unique<call>([&, i] {
      hold_until([&] { return go.load(); });
      order.push_back(i);
      ended.fetch_add(1);
    }));
    pool.submit(*calls.back());
  }
  go.store(true);
  hold_until([&] { return ended.load() == 20; });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(blocking_pools, end_while_their_threads_start_or_sleep) {
  for (int i = 0; i < scaled(500); ++i) {
    std::atomic<bool> ran{false};
    call c{[&] { ran.store(true); }};
    {
      blocking_pool pool{2, "test"};
      pool.submit(c);
      if (i % 2 == 0) hold_until([&] { return ran.load(); });
    }
    EXPECT_TRUE(ran.load());  // what was submitted is run, even so
  }
}

/// What a library keeps for each thread that calls it, and takes a while to give back.
struct kept_by_thread {
  ~kept_by_thread() {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    given_back.fetch_add(1);
  }
  void use() {}
  static std::atomic<int> given_back;
};
std::atomic<int> kept_by_thread::given_back{0};

TEST(blocking_pools, end_after_their_threads_have_exited) {
  for (int round = 0; round < 10; ++round) {
    kept_by_thread::given_back = 0;
    constexpr int n = 3;
    std::atomic<int> runs{0};
    std::vector<std::unique_ptr<call>> calls;
    {
      blocking_pool pool{n, "test"};
      for (int i = 0; i < n; ++i) {
        calls.push_back(std::make_unique<call>([&] {
          thread_local kept_by_thread kept;
          kept.use();
          runs.fetch_add(1);
          hold_until([&] { return runs.load() == n; });  // one thread each
        }));
        pool.submit(*calls.back());
      }
    }
    ASSERT_EQ(kept_by_thread::given_back.load(), n);
  }
}

TEST(blocking_pools, without_calls_have_no_threads) {
  const std::size_t before = testing::threads_of_process();
  for (int i = 0; i < 100; ++i) {
    const blocking_pool pool{2, "test"};
    EXPECT_LE(testing::threads_of_process(), before);
  }
}

/// In a child, because the limit cannot be undone: an address space in which no further thread's stack has room.
int refuse_threads(bool after_one) {
  const pid_t child = ::fork();
  if (child == 0) {
    blocking_pool& pool = *new blocking_pool{4, "test"};
    std::atomic<int> runs{0};
    std::atomic<bool> go{false};
    call first{[&] {
      runs.fetch_add(1);
      hold_until([&] { return go.load(); });
    }};
    call second{[&] { runs.fetch_add(1); }};
    if (after_one) {
      pool.submit(first);
      hold_until([&] { return runs.load() == 1; });
    }
    // Larger stacks than any that an ended thread left behind for reuse.
    pthread_attr_t large;
    ::pthread_attr_init(&large);
    ::pthread_attr_setstacksize(&large, std::size_t{1} << 30);
    const rlimit none{1 << 20, 1 << 20};
    if (::pthread_setattr_default_np(&large) != 0 || ::setrlimit(RLIMIT_AS, &none) != 0) ::_exit(10);
    try {
      pool.submit(second);
    } catch (const resource_error& e) {
      const std::string what = e.what();
      if (after_one) ::_exit(11);
      if (e.code() != EAGAIN || what.find("RLIMIT_NPROC") == std::string::npos ||
          what.find("blocking") == std::string::npos)
        ::_exit(12);
      ::_exit(0);
    }
    if (!after_one) ::_exit(13);
    // The existing thread runs it.
    go.store(true);
    hold_until([&] { return runs.load() == 2; });
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(blocking_pools, say_so_when_no_thread_can_be_had) {
  if (testing::sanitized) GTEST_SKIP() << "sanitizers do not live in a bounded address space";
  if (testing::emulated()) GTEST_SKIP() << "an emulator keeps such limits to itself";
  EXPECT_EQ(refuse_threads(false), 0);
}

TEST(blocking_pools, do_with_the_threads_they_have) {
  if (testing::sanitized) GTEST_SKIP() << "sanitizers do not live in a bounded address space";
  if (testing::emulated()) GTEST_SKIP() << "an emulator keeps such limits to itself";
  EXPECT_EQ(refuse_threads(true), 0);
}

}  // namespace
}  // namespace ramie::detail
