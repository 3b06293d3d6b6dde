// What ramie tells of programs that are seldom meant, and of which it says nothing. Each runs in a process of its own.
// Mostly waits.
#include <ramie/base/testing.hpp>
#include <ramie/ramie.hpp>

#include "support/heard.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

/// Outside of ramie's namespaces, as reports tell by the name whose a function is.
namespace program {

using namespace ramie;
using namespace std::chrono_literals;
using ramie::detail::testing::heard;

/// Returns when `n` fibers wait for `what`.
void await_waiters(int n, const std::string& what) {
  for (int found = 0; found < n; this_fiber::sleep_for(1ms)) {
    const int file = ::memfd_create("dump", MFD_CLOEXEC);
    dump(file, {.frames = 0});
    struct stat about{};
    ::fstat(file, &about);
    std::string text(static_cast<std::size_t>(about.st_size), '\0');
    if (::pread(file, text.data(), text.size(), 0) < 0) std::abort();
    ::close(file);
    found = 0;
    for (std::size_t at = 0; (at = text.find(": waits for " + what, at)) != std::string::npos; ++at) ++found;
  }
}

void stop_by_handle() {
  event begun;
  auto h = spawn(fiber_options{.name = "worker"}, [&] {
    begun.set();
    channel<int>{}.recv();
  });
  begun.wait();
}

void stop_in_other_ways() {
  channel<int> never;
  const auto wait = [&] { never.recv(); };
  {
    auto asked = spawn(wait);
    asked.request_stop();
  }
  {
    auto ended = spawn([] {});
    while (!ended.has_ended()) this_fiber::yield();
  }
  try {
    auto unwound = spawn(wait);
    throw std::runtime_error{"and not a word about the fiber"};
  } catch (const std::runtime_error&) {
  }
  auto joined = spawn(wait);
  never.close();
  joined.join();
}

void leave_three() {
  static channel<int> never;
  for (int i = 0; i < 3; ++i) spawn([] { never.recv(); }).detach();
  await_waiters(3, "channel receive");
}

void swallow() {
  event begun;
  spawn(fiber_options{.name = "stubborn"}, [&] {
    begun.set();
    for (int n = 0; n < 20'000; ++n) try {
        channel<int>{}.recv();
      } catch (...) {
      }
  }).detach();
  begun.wait();
}

void block(heard& all) {
  event begun;
  spawn(fiber_options{.name = "reader"}, [&] {
    blocking([&] {
      begun.set();
      all.until("ending");
    });
  }).detach();
  begun.wait();  // one that has not begun would be withdrawn
  await_waiters(1, "blocking call");
}

void keep_running(heard& all) {
  static std::atomic<bool> told{false};  // outlives the thread
  event begun;
  spawn(fiber_options{.name = "hog"}, [&] {
    begun.set();
    while (!told) this_fiber::yield();
  }).detach();
  begun.wait();
  std::thread{[&] {
    all.until("ending");
    told = true;
  }}.detach();
}

struct deposit {};
class account : public actor<account> {
 public:
  void on(deposit) { sum_up(1'000'000'000); }

 private:
  RAMIE_NOINLINE int sum_up(int n) {
    volatile char frame[300];
    frame[0] = static_cast<char>(n);
    return n == 0 ? frame[0] : sum_up(n - 1) + frame[0];
  }
};

void overflow() {
  auto a = spawn_actor<account>(actor_options{.name = "savings"});
  a.tell(deposit{});
  a.join();
}

class relocker : public actor<relocker> {
 public:
  void on(deposit) {
    m_.lock();
    m_.lock();
  }

 private:
  ramie::mutex m_;
};

/// When the notice has been written, with a line for each.
void end_after_a_circle_of_two(heard& all) {
  blocking([&] {
    all.until("circle");
    all.until(" 0x");
    all.until(" 0x");
  });
  std::_Exit(0);
}

/// Two fibers that lock two mutexes in different orders, while others go on.
// Not inlined into a function of the library, or there is no frame of the program's to name.
RAMIE_NOINLINE void cross_over(ramie::mutex& from, ramie::mutex& to, latch& both) {
  const std::lock_guard hold{from};
  both.arrive_and_wait();
  const std::lock_guard too{to};
}

void cross(heard& all) {
  ramie::mutex mine, yours;
  latch both{2};
  auto left = spawn(fiber_options{.name = "left"}, [&] { cross_over(mine, yours, both); });
  auto right = spawn(fiber_options{.name = "right"}, [&] { cross_over(yours, mine, both); });
  auto others = spawn([] {
    for (;;) this_fiber::sleep_for(1ms);
  });
  end_after_a_circle_of_two(all);
}

void join_while_locked(heard& all) {
  ramie::mutex m;
  event locked;
  auto child = spawn(fiber_options{.name = "child"}, [&] {
    locked.wait();
    m.lock();
  });
  auto parent = spawn(fiber_options{.name = "parent"}, [&] {
    m.lock();
    locked.set();
    child.join();
  });
  end_after_a_circle_of_two(all);
}

struct question {};
class answerer : public actor<answerer> {
 public:
  explicit answerer(actor_ref<answerer>* other) : other_{other} {}
  int on(question) { return other_->ask(question{}); }

 private:
  actor_ref<answerer>* other_;
};

void ask_each_other(heard& all) {
  actor_ref<answerer> first, second;
  first = spawn_actor<answerer>(actor_options{.name = "first"}, &second);
  second = spawn_actor<answerer>(actor_options{.name = "second"}, &first);
  auto asker = spawn([&] { first.ask(question{}); });
  end_after_a_circle_of_two(all);
}

/// Two children wait for what their owner holds.
void join_scope_while_locked(heard& all) {
  ramie::mutex m;
  auto owner = spawn(fiber_options{.name = "owner"}, [&] {
    const std::lock_guard hold{m};
    scope s;
    for (int i = 0; i < 2; ++i) s.spawn(fiber_options{.name = "child"}, [&] { const std::lock_guard also{m}; });
    s.join();
  });
  end_after_a_circle_of_two(all);
}

void join_branch_while_locked(heard& all) {
  ramie::mutex m;
  auto owner = spawn(fiber_options{.name = "owner"}, [&] {
    const std::lock_guard hold{m};
    event runs;  // so it is another stack that runs the branch
    fork_join([&] { runs.wait(); },
              [&] {
                runs.set();
                const std::lock_guard also{m};
              });
  });
  end_after_a_circle_of_two(all);
}

/// Older waits that are in no circle: the holder of the mutex waits for a channel.
void wait_in_a_row(heard& all) {
  ramie::mutex m;
  channel<int> never;
  auto holder = spawn(fiber_options{.name = "holder"}, [&] {
    const std::lock_guard hold{m};
    never.recv();
  });
  await_waiters(1, "channel receive");
  auto waiter = spawn(fiber_options{.name = "waiter"}, [&] { const std::lock_guard hold{m}; });
  auto joiner = spawn(fiber_options{.name = "joiner"}, [&] { waiter.join(); });
  await_waiters(1, "mutex");
  await_waiters(1, "join");
  cross(all);
}

}  // namespace program

namespace ramie {
namespace {

using detail::testing::heard;

class notices : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style()); }
  runtime_options options() const { return {.workers = GetParam(), .name = "shop"}; }
};
INSTANTIATE_TEST_SUITE_P(on, notices, ::testing::Values(1, 2, 8), ::testing::PrintToStringParamName());

const auto succeeds = ::testing::ExitedWithCode(0);
constexpr const char* nothing = "^$";

TEST_P(notices, tell_of_a_handle_that_stops_its_fiber_and_where) {
  EXPECT_EXIT(
      {
        run(options(), [] { program::stop_by_handle(); });
        std::exit(0);
      },
      succeeds, "notice: fiber \"worker\" was stopped because its join_handle was destroyed.*: join or detach it");
}

TEST_P(notices, come_once_for_each_place) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [] {
          for (int i = 0; i < 10; ++i) program::stop_by_handle();
        });
        std::exit(all.count("notice:"));
      },
      ::testing::ExitedWithCode(1), "in program::stop_by_handle");
}

TEST_P(notices, are_not_for_fibers_whose_end_was_meant) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [] { program::stop_in_other_ways(); });
        std::exit(all.count("was stopped"));
      },
      succeeds, "");
}

TEST_P(notices, tell_of_detached_fibers_that_are_left) {
  EXPECT_EXIT(
      {
        run(options(), [] { program::leave_three(); });
        std::exit(0);
      },
      succeeds,
      "runtime \"shop\" ends while [23] detached fibers wait for channel receive, at [^ ]*notices.test.cpp:[0-9]+");
}

TEST_P(notices, are_not_for_a_runtime_that_is_shut_down_by_name) {
  EXPECT_EXIT(
      {
        heard all;
        {
          runtime rt{options()};
          rt.run([] { program::leave_three(); });
          rt.shutdown();
        }
        std::exit(all.count("ends while"));
      },
      succeeds, "");
}

TEST_P(notices, tell_of_fibers_that_swallow_cancellation) {
  EXPECT_EXIT(
      {
        run(options(), [] { program::swallow(); });
        std::exit(0);
      },
      succeeds,
      "fiber \"stubborn\" has begun 10000 waits since it was asked to stop, the last for channel receive, at "
      "[^ ]*notices.test.cpp:[0-9]+ in [^\n]*: something there swallows ramie::cancelled");
}

TEST_P(notices, tell_of_a_blocking_call_that_the_end_waits_for) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [&] { program::block(all); });
        std::exit(0);
      },
      succeeds,
      "runtime \"shop\" has been ending for a second, and waits for fiber \"reader\" 0x[0-9a-f]+, which (runs|waits "
      "for "
      "blocking call, at [^ ]*notices.test.cpp:[0-9]+ [^\n]*: a call under way cannot be cancelled)");
}

TEST_P(notices, tell_of_a_fiber_that_runs_on_at_the_end) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [&] { program::keep_running(all); });
        std::exit(0);
      },
      succeeds, "has been ending for a second, and waits for fiber \"hog\"[^\n]*, which runs: it does not wait");
}

TEST_P(notices, name_the_actor_that_overflows_its_stack_and_the_calls) {
  EXPECT_EXIT(
      run(options(), [] { program::overflow(); }), [](int status) { return status != 0; },
      "stack overflow in actor program::account \"savings\": it used up its .* KiB stack[^\n]*\n"
      "    #0  [^\n]*sum_up[^\n]*\n    #1  [^\n]*sum_up");
}

TEST_P(notices, do_not_hide_the_error_of_who_locks_twice) {
  EXPECT_EXIT(
      {
        try {
          run(options(), [] {
            mutex m;
            m.lock();
            m.lock();
          });
        } catch (const usage_error& e) {
          std::fputs(e.what(), stderr);
        }
        std::exit(0);
      },
      succeeds, "locks a mutex that it already holds");
  EXPECT_EXIT(
      {
        run(options(), [] {
          auto a = spawn_actor<program::relocker>();
          try {
            a.tell(program::deposit{});
            a.join();
          } catch (const actor_down&) {
          }
        });
        std::exit(0);
      },
      succeeds, "");
}

TEST_P(notices, tell_of_fibers_that_lock_each_other_out) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [&] { program::cross(all); });
      },
      succeeds,
      "notice: in runtime \"shop\", 2 fibers or actors wait for each other in a circle:\n"
      "  fiber \"(left|right)\" 0x[0-9a-f]+: mutex, which the next holds, in program::cross[^\n]*\n"
      "  fiber \"(left|right)\" 0x[0-9a-f]+: mutex, which the next holds, in program::cross");
}

TEST_P(notices, tell_of_a_join_by_the_holder_of_what_the_other_wants) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [&] { program::join_while_locked(all); });
      },
      succeeds, "fiber \"(child|parent)\"[^\n]*: (join of the next|mutex, which the next holds)");
}

TEST_P(notices, tell_of_a_scope_joined_by_the_holder_of_what_its_children_want) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [&] { program::join_scope_while_locked(all); });
      },
      succeeds, "fiber \"owner\" 0x[0-9a-f]+: scope, of which the next is a child");
}

TEST_P(notices, tell_of_a_fork_joined_by_the_holder_of_what_its_branch_wants) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [&] { program::join_branch_while_locked(all); });
      },
      succeeds, "fiber \"owner\" 0x[0-9a-f]+: fork_join, of which the next is a branch");
}

TEST_P(notices, tell_of_actors_that_ask_each_other) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [&] { program::ask_each_other(all); });
      },
      succeeds,
      "wait for each other in a circle:\n"
      "  actor program::answerer \"(first|second)\" 0x[0-9a-f]+: ask of the next, at [^ ]*notices.test.cpp:[0-9]+ ");
}

TEST_P(notices, are_not_for_fibers_that_wait_in_a_row) {
  EXPECT_EXIT(
      {
        heard all;
        run(options(), [&] { program::wait_in_a_row(all); });
      },
      succeeds,
      "^ramie: notice: [^\n]* 2 fibers [^\n]*\n  fiber \"(left|right)\"[^\n]*\n  fiber \"(left|right)\"[^\n]*\n$");
}

TEST_P(notices, can_be_switched_off) {
  EXPECT_EXIT(
      {
        runtime_options quiet = options();
        quiet.notices = false;
        run(quiet, [] {
          program::stop_by_handle();
          program::leave_three();
        });
        std::exit(0);
      },
      succeeds, nothing);
  EXPECT_EXIT(
      {
        ::setenv("RAMIE_NOTICES", "0", 1);
        run(options(), [] { program::stop_by_handle(); });
        std::exit(0);
      },
      succeeds, nothing);
  EXPECT_EXIT(
      {
        ::setenv("RAMIE_NOTICES", "maybe", 1);
        try {
          runtime rt{options()};
        } catch (const invalid_argument& e) {
          std::fputs(e.what(), stderr);
        }
        std::exit(0);
      },
      succeeds, "RAMIE_NOTICES is \"maybe\"; it must be 0 or 1");
}

}  // namespace
}  // namespace ramie
