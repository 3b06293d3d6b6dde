#include <ramie/fiber/stop_token.hpp>

#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/fiber/this_fiber.hpp>

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace ramie {
namespace {

using namespace fiber_tests;
using namespace std::chrono_literals;

class stop_tokens : public ::testing::TestWithParam<int> {
 protected:
  template <class F>
  static void run(F f) {
    runtime rt{{.workers = GetParam()}};
    rt.run(std::move(f));
  }
  /// Third-party code: it waits until it is stopped, and knows nothing of fibers.
  static bool wait_as_others_do(const std::stop_token& token) {
    std::mutex m;
    std::condition_variable_any changed;
    std::unique_lock lock{m};
    return changed.wait(lock, token, [] { return false; });
  }
};
INSTANTIATE_TEST_SUITE_P(on, stop_tokens, ::testing::Values(1, 2, 8));

TEST_P(stop_tokens, are_stopped_with_their_fiber) {
  run([] {
    std::atomic<bool> inside{false};
    auto h = spawn([&] {
      return with_stop_token([&](const std::stop_token& token) {
        EXPECT_TRUE(token.stop_possible());
        EXPECT_FALSE(token.stop_requested());
        inside = true;
        shield([&] { EXPECT_FALSE(blocking([&] { return wait_as_others_do(token); })); });
        return token.stop_requested();
      });
    });
    await([&] { return inside.load(); });
    h.request_stop();
    EXPECT_TRUE(h.join());
  });
}

TEST_P(stop_tokens, are_stopped_where_the_thread_is_blocked) {
  run([] {
    auto h = spawn([] { with_stop_token([](const std::stop_token& token) { wait_as_others_do(token); }); });
    this_fiber::yield();
    h.request_stop();
    h.join();
  });
}

TEST_P(stop_tokens, are_stopped_by_deadlines_and_scopes_around_them) {
  run([] {
    const auto until_stopped = [](const std::stop_token& token) { await([&] { return token.stop_requested(); }); };
    EXPECT_NO_THROW(with_timeout(
        100us, [&] { with_stop_token([&](const std::stop_token& token) { shield([&] { until_stopped(token); }); }); }));
    scope s;
    s.spawn([&] { with_stop_token([&](const std::stop_token& token) { shield([&] { until_stopped(token); }); }); });
    s.spawn([&] { s.cancel(); });
    s.join();
  });
}

TEST_P(stop_tokens, are_left_alone_inside_a_shield_and_afterwards) {
  run([] {
    std::stop_token kept;
    EXPECT_EQ(with_stop_token([&](std::stop_token token) {
                kept = std::move(token);
                return 5;
              }),
              5);
    EXPECT_FALSE(kept.stop_requested()) << "the call is over, and nobody asked it to stop";
    std::atomic<bool> inside{false};
    auto h = spawn([&] {
      shield([&] {
        with_stop_token([&](const std::stop_token& token) {
          inside = true;
          await([&] { return this_fiber::stop_requested() || !inside; });
          EXPECT_FALSE(token.stop_requested());
        });
      });
    });
    await([&] { return inside.load(); });
    h.request_stop();
    inside = false;
    EXPECT_NO_THROW(h.join());
    EXPECT_THROW(with_stop_token([](const std::stop_token&) { throw std::runtime_error{"as it is"}; }),
                 std::runtime_error);
  });
}

TEST(stop_token, of_a_plain_thread_is_never_stopped) {
  EXPECT_FALSE(with_stop_token([](const std::stop_token& token) { return token.stop_possible(); }));
}

}  // namespace
}  // namespace ramie
