#include <ramie/net/signals.hpp>

#include <ramie/net/testing.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

TEST(net_signals, are_waited_for_by_all_who_take_them) {
  with_workers([] {
    signals one{SIGUSR1, SIGUSR2}, two{SIGUSR2};
    std::atomic<bool> has_one{false};
    auto first = spawn([&] {
      const int a = one.wait();
      has_one = true;
      return std::pair{a, one.wait()};
    });
    auto second = spawn([&] { return two.wait(); });
    ::kill(::getpid(), SIGUSR1);
    while (!has_one) this_fiber::sleep_for(100us);  // signals to a process go to any of its threads, in any order
    ::kill(::getpid(), SIGUSR2);
    EXPECT_EQ(first.join(), (std::pair{SIGUSR1, SIGUSR2}));
    EXPECT_EQ(second.join(), SIGUSR2);
  });
}

TEST(net_signals, that_come_while_nobody_waits_are_kept) {
  with_workers([] {
    signals s{SIGUSR1};
    ::kill(::getpid(), SIGUSR1);
    this_fiber::sleep_for(1ms);
    EXPECT_EQ(s.wait(), SIGUSR1);
    EXPECT_THROW(with_timeout(1ms, [&] { return s.wait(); }), timeout_error);
  });
}

TEST(net_signals, do_again_what_they_did_before_when_nobody_takes_them) {
  static std::atomic<int> seen;
  seen = 0;
  struct sigaction own{};
  own.sa_handler = [](int) { ++seen; };
  struct sigaction before{};
  ::sigaction(SIGUSR1, &own, &before);
  {
    signals s{SIGUSR1};
    signals again{SIGUSR1};
    ::raise(SIGUSR1);
    EXPECT_EQ(s.wait(), SIGUSR1);
    EXPECT_EQ(seen, 0);
  }
  ::raise(SIGUSR1);
  EXPECT_EQ(seen, 1);
  ::sigaction(SIGUSR1, &before, nullptr);
}

/// They come in one event, which wakes one waiter.
TEST(net_signals, two_that_come_together_end_two_waits) {
  with_workers([] {
    for (int i = 0; i < 20; ++i) {
      signals s{SIGUSR1, SIGUSR2};
      auto first = spawn([&s] { return s.wait(); });
      auto second = spawn([&s] { return s.wait(); });
      this_fiber::sleep_for(1ms);
      ::raise(SIGUSR1);
      ::raise(SIGUSR2);
      with_timeout(60s, [&] { EXPECT_EQ(first.join() + second.join(), SIGUSR1 + SIGUSR2); });  // or it waits for ever
    }
  });
}

/// The fiber that raises it has woken while the only worker was held up: it runs on a spare thread, which the monitor
/// has started.
TEST(net_signals, may_be_raised_on_a_spare_thread) {
  runtime rt{{.workers = 1, .name = "net", .report_deadlocks = false}};
  rt.run([] {
    signals s{SIGUSR1};
    std::atomic<bool> over{false};
    auto hog = spawn([&] {
      while (!over) {
      }
    });
    this_fiber::sleep_for(1ms);
    ::raise(SIGUSR1);
    over = true;
    EXPECT_EQ(with_timeout(60s, [&] { return s.wait(); }), SIGUSR1);  // or it waits for ever
    hog.join();
  });
}

/// Some supervisors start programs so.
TEST(net_signals, that_are_blocked_everywhere_arrive) {
  sigset_t one, before;
  ::sigemptyset(&one);
  ::sigaddset(&one, SIGUSR2);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &one, &before), 0);
  with_workers([] {
    for (int i = 0; i < 3; ++i) {
      signals s{SIGUSR2};
      ::kill(::getpid(), SIGUSR2);
      EXPECT_EQ(with_timeout(60s, [&] { return s.wait(); }), SIGUSR2);
    }
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(net_signals, waits_end_by_close) {
  with_workers([] {
    signals s{SIGUSR1};
    auto waiter = spawn([&] { return code_of([&] { s.wait(); }); });
    this_fiber::sleep_for(1ms);
    s.close();
    EXPECT_EQ(waiter.join(), io_errc::closed);
  });
}

TEST(net_signals, that_cannot_be_taken_are_refused) {
  EXPECT_THROW(signals{SIGKILL}, invalid_argument);
  EXPECT_THROW(signals{SIGSEGV}, invalid_argument);
  EXPECT_THROW(signals{0}, invalid_argument);
  EXPECT_THROW(signals({65}), invalid_argument);
}

}  // namespace
}  // namespace ramie::net
