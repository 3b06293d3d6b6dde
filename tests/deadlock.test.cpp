// Programs that wait for themselves get a report; programs that only look like it are left alone.
// Mostly waits.
#include <ramie/base/testing.hpp>
#include <ramie/machine/futex.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>

/// Not in ramie::, as users' functions are.
namespace program {

RAMIE_NOINLINE void take(ramie::mutex& m) { const std::lock_guard hold{m}; }

/// With locks of the standard library, which wait in its headers.
RAMIE_NOINLINE void hold_and_join() {
  ramie::mutex m;
  const std::scoped_lock hold{m};
  ramie::spawn(ramie::fiber_options{.name = "taker"}, [&] { take(m); }).join();
}

}  // namespace program

namespace ramie {
namespace {

using namespace std::chrono_literals;

// Threads that are not the program's own could do anything: ThreadSanitizer's, and that of an emulator.
#define SKIP_WITH_FOREIGN_THREADS()              \
  if (RAMIE_TSAN || detail::testing::emulated()) \
  GTEST_SKIP() << "a thread that is not ours keeps deadlocks from being reported"

class deadlocks : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style()); }
  runtime_options options() const {
    runtime_options o;
    o.workers = GetParam();
    o.name = "stuck";
    return o;
  }
};

TEST_P(deadlocks, name_the_fibers_what_they_wait_for_and_where) {
  SKIP_WITH_FOREIGN_THREADS();
  EXPECT_EXIT(run(options(),
                  [] {
                    channel<int> never;
                    auto other = spawn(fiber_options{.name = "other"},
                                       [&] { static_cast<void>(never.send(1)), static_cast<void>(never.send(2)); });
                    never.recv();
                    other.join();
                  }),
              ::testing::ExitedWithCode(2),
              "deadlock: every fiber of runtime \"stuck\" waits(.|\n)*"
              "fiber \"(main|other)\"[^\n]*(join|channel send), at [^\n]*deadlock.test.cpp:[0-9]+(.|\n)*"
              "fiber \"(main|other)\"[^\n]*(join|channel send), at [^\n]*deadlock.test.cpp:[0-9]+");
}

TEST_P(deadlocks, name_the_caller_of_a_lock_of_the_standard_library) {
  SKIP_WITH_FOREIGN_THREADS();
  EXPECT_EXIT(run(options(), &program::hold_and_join), ::testing::ExitedWithCode(2),
              "wake one:\n(  fiber [^\n]*\n)?  fiber \"taker\" 0x[0-9a-f]+: mutex, in program::take[^\n]*\n");
}

TEST_P(deadlocks, are_found_in_a_select_and_in_a_runtime_of_the_users) {
  SKIP_WITH_FOREIGN_THREADS();
  EXPECT_EXIT(
      {
        runtime rt{options()};
        rt.run([] {
          channel<int> a, b;
          select(on_recv(a, [](std::optional<int>) {}), on_send(b, 1, [](channel_status) {}));
        });
      },
      ::testing::ExitedWithCode(2), "fiber \"main\"[^\n]*: select");
}

TEST_P(deadlocks, are_found_after_work) {
  SKIP_WITH_FOREIGN_THREADS();
  EXPECT_EXIT(run(options(),
                  [] {
                    for (int i = 0; i < 100; ++i) spawn([] { this_fiber::yield(); }).join();
                    this_fiber::sleep_for(1ms);
                    blocking([] { std::this_thread::sleep_for(1ms); });
                    channel<int>{}.recv();
                  }),
              ::testing::ExitedWithCode(2), "channel receive");
}

TEST_P(deadlocks, are_none_while_a_timer_runs) {
  EXPECT_EXIT(
      {
        run(options(), [] {
          channel<int> a;
          auto sleeper = spawn([&] {
            this_fiber::sleep_for(200ms);
            static_cast<void>(a.send(1));
          });
          a.recv();
          sleeper.join();
        });
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(deadlocks, are_none_while_a_blocking_call_is_under_way) {
  EXPECT_EXIT(
      {
        run(options(), [] { blocking([] { std::this_thread::sleep_for(200ms); }); });
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(deadlocks, are_none_while_another_thread_could_help) {
  EXPECT_EXIT(
      {
        channel<int> a;
        std::thread helper{[&] {
          std::this_thread::sleep_for(200ms);
          static_cast<void>(a.send(1));
        }};
        run(options(), [&] { a.recv(); });
        helper.join();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

thread_local bool slow_to_run = false;

/// As on a busy machine: the thread is woken, and gets no processor for a while.
const detail::futex_calls slow_futexes{[](const void* word, std::uint32_t expected, const timespec* timeout) noexcept {
                                         const long result = detail::kernel_futex_calls.wait(word, expected, timeout);
                                         if (slow_to_run) std::this_thread::sleep_for(300ms);
                                         return result;
                                       },
                                       detail::kernel_futex_calls.wake};

TEST_P(deadlocks, are_none_while_a_thread_is_woken_and_does_not_run_yet) {
  EXPECT_EXIT(
      {
        detail::replace_futex_calls(&slow_futexes);
        slow_to_run = true;
        channel<int> there;
        channel<int> back;
        runtime rt{options()};
        auto echo = rt.spawn([&] {
          while (auto v = there.recv()) static_cast<void>(back.send(*v));
        });
        static_cast<void>(there.send(1));
        back.recv();
        there.close();
        echo.join();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(deadlocks, are_not_reported_if_that_is_not_wanted) {
  EXPECT_EXIT(
      {
        runtime_options o = options();
        o.report_deadlocks = false;
        ::alarm(1);
        run(o, [] { channel<int>{}.recv(); });
      },
      ::testing::KilledBySignal(SIGALRM), "");
}

TEST_P(deadlocks, are_none_in_an_idle_runtime) {
  EXPECT_EXIT(
      {
        runtime rt{options()};
        rt.run([] {});
        std::this_thread::sleep_for(200ms);
        std::exit(rt.run([] { return 0; }));
      },
      ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(workers, deadlocks, ::testing::Values(1, 2, 8), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace ramie
