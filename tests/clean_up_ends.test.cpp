// Clean-up at an ordinary end of a stopped fiber: what it may start, and what is not taken for it.
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include "clean_up_waits.hpp"
#include "on_workers.hpp"
#include "support/heard.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace ramie {
namespace {

using namespace std::chrono_literals;
using all_waits::at_end;

using ordinary_ends = on_workers;
INSTANTIATE_TEST_SUITE_P(workers, ordinary_ends, on_workers::all(), &on_workers::name);

/// Calls f in the destructor of a fiber that the end of its runtime has stopped, and that goes on.
template <class F>
void at_the_end_of_a_fiber_in(const runtime_options& o, F f) {
  runtime rt{o};
  std::atomic<bool> waits{false};
  auto h = rt.spawn([&] {
    const at_end end{f};
    waits = true;
    EXPECT_THROW(this_fiber::sleep_for(1h), cancelled);
  });
  while (!waits) std::this_thread::yield();
  rt.shutdown();
  h.join();
}

// As inside `shield`: it is stopped before it begins.
TEST_P(ordinary_ends, may_start_a_fiber_while_the_runtime_ends) {
  at_the_end_of_a_fiber_in(options(), [] { auto late = spawn([] { ADD_FAILURE() << "began"; }); });
}

/// Calls f in the destructor of a fiber that was asked to stop, and goes on.
template <class F>
void at_the_end_of_a_stopped_fiber(F f) {
  event waits;
  auto h = spawn([&] {
    const at_end end{f};
    waits.set();
    EXPECT_THROW(this_fiber::sleep_for(1h), cancelled);
  });
  waits.wait();
  h.request_stop();
  h.join();
}

// Handlers of the caller in one function with those of the library.
TEST_P(ordinary_ends, do_not_hide_a_handler_around_what_is_forked) {
  run([] {
    int heard = 0;
    at_the_end_of_a_stopped_fiber([&] {
      try {
        fork_join([] { this_fiber::sleep_for(1h); }, [] {});
      } catch (const cancelled&) {
        ++heard;
      }
    });
    EXPECT_EQ(heard, 1);
  });
}

TEST_P(ordinary_ends, do_not_hide_a_handler_around_a_wait) {
  run([] {
    int heard = 0;
    at_the_end_of_a_stopped_fiber([&] {
      const auto hears = [&](auto&& wait) {
        try {
          wait();
        } catch (const cancelled&) {
          ++heard;
        }
      };
      hears([] { this_fiber::sleep_for(1h); });
      hears([] { with_timeout(2h, [] { this_fiber::sleep_for(1h); }); });
      hears([] { in_scope([](body_scope&) { this_fiber::sleep_for(1h); }); });
      hears([] {
        scope s;
        s.spawn(fiber_options{}, [] { this_fiber::sleep_for(1h); });
        s.join();
      });
    });
    EXPECT_EQ(heard, 4);
  });
}

// Only a deadline can end the waits of a plain thread.
TEST(ordinary_ends_of_a_thread, last_beyond_a_deadline) {
  // From then on AddressSanitizer keeps locals on the stack, where regions are found by their addresses.
  const runtime rt{{.workers = 1}};
  int lasted = 0;
  with_timeout(1ms, [&] {
    const at_end end{[&] {
      this_fiber::sleep_for(5ms);
      ++lasted;
    }};
    EXPECT_THROW(this_fiber::sleep_for(1h), cancelled);
  });
  EXPECT_EQ(lasted, 1);
}

TEST_P(ordinary_ends, hear_of_failures_of_their_own_scopes) {
  run([] {
    int heard = 0;
    at_the_end_of_a_stopped_fiber([&] {
      try {
        scope s;
        s.spawn(fiber_options{}, [] { throw std::logic_error{"fails"}; });
        for (;;) {
          s.spawn(fiber_options{}, [] {});
          this_fiber::sleep_for(100us);
        }
      } catch (const std::logic_error&) {
        ++heard;
      }
    });
    EXPECT_EQ(heard, 1);
  });
}

TEST_P(ordinary_ends, are_not_told_to_swallow_cancellation) {
  EXPECT_EXIT(
      {
        detail::testing::heard noise;
        run([] {
          at_the_end_of_a_stopped_fiber([] {
            for (int i = 0; i < 12'000; ++i) this_fiber::sleep_for(1ns);
          });
        });
        std::exit(noise.count("swallows"));
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ramie
