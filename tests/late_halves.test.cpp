// Halves and children that begin elsewhere while a destructor of their parent's waits, during unwinding, and go on when
// that is over: they may have been forked in the clean-up, so they are not stopped; once they are joined it is clear
// that they were not, and they are.
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include "on_workers.hpp"

#include <atomic>
#include <chrono>
#include <utility>

namespace ramie {
namespace {

using namespace std::chrono_literals;

using late_halves = on_workers;
INSTANTIATE_TEST_SUITE_P(workers, late_halves, on_workers::all(), &on_workers::name);

struct own_end {};

/// Waits for it when it is destroyed.
struct waits_for {
  event& e;
  ~waits_for() { e.wait(); }
};

/// Begins while its sibling unwinds, and waits for ever, by itself or in a half of its own.
struct left_behind {
  bool deep;
  std::atomic<int> cut_off{0};
  event begun{};

  void operator()() {
    if (deep) fork_join([] {}, [this] { wait_for_ever(); });
    else wait_for_ever();
  }
  void wait_for_ever() {
    begun.set();
    try {
      this_fiber::sleep_for(1h);
    } catch (const cancelled&) {
      ++cut_off;
      throw;
    }
  }
};

void fork_with(left_behind& right) {
  fork_join(
      [&right] {
        const waits_for at_end{right.begun};
        throw own_end{};
      },
      right);
}

TEST_P(late_halves, are_stopped_with_their_fiber) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      left_behind half{i % 2 == 1};
      auto h = spawn([&] { fork_with(half); });
      if (i % 3 == 0) half.begun.wait();
      if (i % 3 == 1) this_fiber::sleep_for(std::chrono::microseconds{100 * i});
      h.request_stop();
      EXPECT_ANY_THROW(h.join());
      EXPECT_EQ(half.cut_off, half.begun.is_set() ? 1 : 0);
    }
  });
}

TEST_P(late_halves, heed_the_deadlines_around_them) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      left_behind half{i % 2 == 1};
      EXPECT_THROW(with_timeout(std::chrono::microseconds{200 * i}, [&] { fork_with(half); }), own_end);
      EXPECT_EQ(half.cut_off, half.begun.is_set() ? 1 : 0);
    }
  });
}

/// The deadline is around the scope, and not around its join.
TEST_P(late_halves, heed_deadlines_that_a_join_does_not_see) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      left_behind child{i % 2 == 1};
      EXPECT_THROW(with_timeout(5ms,
                                [&] {
                                  scope s;
                                  s.spawn([&] { child(); });
                                  try {
                                    const waits_for at_end{child.begun};
                                    throw own_end{};
                                  } catch (const own_end&) {
                                  }
                                  if (i % 4 < 2) shield([&] { s.join(); });
                                  else with_timeout(1ms, [&] { s.join(); });
                                }),
                   timeout_error);
      EXPECT_EQ(child.cut_off, 1);
    }
  });
}

TEST_P(late_halves, end_by_themselves_before_a_deadline) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      event begun;
      int ended = 0;
      with_timeout(1h, [&] {
        EXPECT_THROW(fork_join(
                         [&] {
                           const waits_for at_end{begun};
                           throw own_end{};
                         },
                         [&] {
                           begun.set();
                           for (int j = 0; j < i; ++j) this_fiber::sleep_for(50us);
                           ++ended;
                         }),
                     own_end);
      });
      EXPECT_EQ(ended, 1);
    }
  });
}

TEST_P(late_halves, end_with_the_scope_whose_children_they_are) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      left_behind child{i % 2 == 1};
      const auto left_by_an_exception = [&] {
        scope s;
        s.spawn([&] { child(); });
        const waits_for at_end{child.begun};
        throw own_end{};
      };
      EXPECT_THROW(left_by_an_exception(), own_end);
      EXPECT_EQ(child.cut_off, 1);
    }
  });
}

}  // namespace
}  // namespace ramie
