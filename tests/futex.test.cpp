// All sleeping and waking uses two system calls. Here they fail: each wait in turn ends early, and a system refuses
// both. Nothing may be lost by that, and no fiber be taken for stuck.
#include <ramie/machine/futex.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>

namespace ramie {
namespace {

using namespace std::chrono_literals;

/// While it lives, waits number `first` to `last` (from 0) fail with `code`, or, if `wakes_too`, all calls from wait
/// `first` on. One at a time.
class failing_waits {
 public:
  failing_waits(std::uint64_t first, std::uint64_t last, int code, bool wakes_too = false) {
    made_ = 0;
    first_ = first;
    last_ = last;
    code_ = code;
    wakes_too_ = wakes_too;
    detail::replace_futex_calls(&table);
  }
  ~failing_waits() { detail::replace_futex_calls(nullptr); }
  failing_waits(const failing_waits&) = delete;
  failing_waits& operator=(const failing_waits&) = delete;

  [[nodiscard]] static std::uint64_t made() noexcept { return made_; }

 private:
  static long wait(const void* word, std::uint32_t expected, const timespec* timeout) noexcept {
    const std::uint64_t number = made_++;
    if (number < first_ || number > last_) return detail::kernel_futex_calls.wait(word, expected, timeout);
    if (code_ == EINTR) {  // a signal comes after a while
      const timespec while_ns{0, 20'000};
      detail::kernel_futex_calls.wait(word, expected, &while_ns);
    }
    errno = code_;
    return -1;
  }
  static long wake(const void* word, int how_many) noexcept {
    if (!wakes_too_ || made_ <= first_) return detail::kernel_futex_calls.wake(word, how_many);
    // A thread that already sleeps is woken: it went to sleep in a system that had the call.
    detail::kernel_futex_calls.wake(word, how_many);
    errno = code_;
    return -1;
  }

  static inline const detail::futex_calls table{wait, wake};
  static inline std::atomic<std::uint64_t> made_{0}, first_{0}, last_{0};
  static inline std::atomic<int> code_{0};
  static inline std::atomic<bool> wakes_too_{false};
};

/// Sleeps and wakes in every way: workers, the monitor, plain threads, with and without a deadline, timers, helpers of
/// blocking calls, shutdown with work in flight. Expects all results to be right.
void sleep_and_wake() {
  runtime rt{{.workers = 2, .name = "futex", .spare_workers = 1}};
  channel<int> there, back;
  auto echo = rt.spawn([&] {
    while (auto v = there.recv()) {
      if (*v % 4 == 0) this_fiber::sleep_for(50us);
      static_cast<void>(back.send(*v + 1));
    }
  });
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(there.send(i), channel_status::ok);
    EXPECT_EQ(back.recv(), i + 1);
  }
  EXPECT_FALSE(back.recv_for(200us));
  there.close();
  echo.join();
  mutex lock;
  int counted = 0;
  const auto count = [&] {
    for (int i = 0; i < 20; ++i) {
      const std::lock_guard held{lock};
      ++counted;
      if (i % 10 == 0) this_fiber::yield();
    }
  };
  std::thread outside{count};
  rt.run([&] {
    scope s;
    s.spawn(count);
    s.spawn(count);
    s.spawn([] { EXPECT_EQ(blocking([] { return 3; }), 3); });
    s.join();
    EXPECT_THROW(with_timeout(100us, [] { this_fiber::sleep_for(1h); }), timeout_error);
  });
  outside.join();
  EXPECT_EQ(counted, 60);
  auto left = rt.spawn([] { this_fiber::sleep_for(1h); });
  rt.shutdown();
  EXPECT_THROW(left.join(), cancelled);
}

class failing_futexes : public ::testing::TestWithParam<int> {};

TEST_P(failing_futexes, end_any_one_wait_without_harm) {
  const std::uint64_t most = RAMIE_TSAN || RAMIE_ASAN ? 40 : 150;
  std::uint64_t n = 0;
  for (; n < most; ++n) {
    const failing_waits failing{n, n, GetParam()};
    sleep_and_wake();
    if (failing_waits::made() <= n || HasFailure()) break;
  }
  EXPECT_GT(n, 5u);
}

TEST_P(failing_futexes, end_every_wait_without_harm) {
  const failing_waits failing{0, UINT64_MAX, GetParam()};
  for (int i = 0; i < 3; ++i) sleep_and_wake();
  EXPECT_GT(failing_waits::made(), 5u);
}

INSTANTIATE_TEST_SUITE_P(codes, failing_futexes, ::testing::Values(EINTR, EAGAIN, ETIMEDOUT));

TEST(refused_futexes, from_any_moment_on_stop_nothing) {
  for (const std::uint64_t n : {0, 1, 2, 3, 5, 8, 13, 21, 34})
    for (const int code : {ENOSYS, EPERM}) {
      const failing_waits failing{n, UINT64_MAX, code, true};
      sleep_and_wake();
    }
}

TEST(refused_futexes, take_no_processor) {
  const failing_waits failing{0, UINT64_MAX, ENOSYS, true};
  channel<int> never;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(never.recv_for(30ms));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 30ms);
  // The last sleeps may be short, for the time left.
  EXPECT_LE(failing_waits::made(), static_cast<std::uint64_t>(took / 1ms) + 5);
}

/// No sleep ends by itself.
const detail::futex_calls timeless{
    [](const void* word, std::uint32_t expected, const timespec*) noexcept {
      return detail::kernel_futex_calls.wait(word, expected, nullptr);
    },
    [](const void* word, int how_many) noexcept { return detail::kernel_futex_calls.wake(word, how_many); }};

// Otherwise a stop would wait for the monitor's next look, ten milliseconds later; here it would hang.
TEST(stopping, waits_for_no_sleep_to_end) {
  detail::replace_futex_calls(&timeless);
  for (int i = 0; i < 20; ++i) {
    runtime rt{{.workers = 2}};
    EXPECT_EQ(rt.run([i] { return i; }), i);
    if (i % 4 == 0) std::this_thread::sleep_for(2ms);  // the monitor as well
  }
  detail::replace_futex_calls(nullptr);
}

}  // namespace
}  // namespace ramie
