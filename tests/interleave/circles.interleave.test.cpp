// Finding circles of waits (inspect/circles.cpp): one that is there is found, and one that never was is not, though
// its waits were all seen.
#include "programs.hpp"

#include <ramie/inspect/circles.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

namespace ramie::interleave {
namespace {

std::size_t circles_now() { return detail::count_circles(std::numeric_limits<std::int64_t>::max()); }

void look_for_circles(int times) {
  for (int i = 0; i < times; ++i) check(circles_now() == 0, "a circle was found where there is none");
}

constexpr exploration short_runs{.seeds = 2000, .steps_most = 40'000};
constexpr exploration from(std::uint64_t first_seed) {
  return {.seeds = 200'000, .first_seed = first_seed, .steps_most = 40'000};
}
constexpr exploration until_found = from(1);

// ---- none ----------------------------------------------------------------------------------------------------------

/// Each of two fibers waits for the other now and then.
void take_turns() {
  runtime rt{workers(2)};
  mutex m;
  const auto lock_often = [&] {
    for (int i = 0; i < 2; ++i) {
      const std::lock_guard hold{m};
      this_fiber::yield();
    }
  };
  auto a = rt.spawn(lock_often);
  auto b = rt.spawn(lock_often);
  look_for_circles(3);
  a.join();
  b.join();
}
TEST(circles, are_not_found_in_waits_that_follow_each_other) { expect_sound("take turns", short_runs, take_turns); }

/// `first` waits for `m` all the time, but its holder changes; it waits for what `first` holds only when it has let go.
void pass_on() {
  runtime rt{workers(2)};
  mutex m, n;
  event locked, in_line;
  auto holder = rt.spawn([&] {
    m.lock();
    locked.set();
    in_line.wait();
    m.unlock();
    const std::lock_guard want{n};
  });
  auto next = rt.spawn([&] {
    locked.wait();
    const std::lock_guard hold{m};
    for (int i = 0; i < 3; ++i) this_fiber::yield();
  });
  auto first = rt.spawn([&] {
    locked.wait();
    const std::lock_guard hold{n};
    in_line.set();
    const std::lock_guard want{m};
  });
  look_for_circles(4);
  holder.join();
  next.join();
  first.join();
}
TEST(circles, are_not_found_when_the_holder_has_changed) {
  expect_sound("pass on", short_runs, pass_on);
  // One schedule of some ten thousand shows it; these begin shortly before one that did.
  expect_found(plant::circles_unchecked, "pass on, unchecked", from(14'000), pass_on);
  expect_found(plant::circles_of_old_edges, "pass on, edges not seen again", from(16'000), pass_on);
}

/// Children of a scope, and a branch, that wait for what their owner has held before.
void join_after_unlocking() {
  runtime rt{workers(2)};
  mutex m;
  auto owner = rt.spawn([&] {
    scope s;
    m.lock();
    s.spawn(fiber_options{}, [&] { const std::lock_guard want{m}; });
    this_fiber::yield();
    m.unlock();
    fork_join([] { this_fiber::yield(); }, [&] { const std::lock_guard want{m}; });
    s.join();
  });
  look_for_circles(3);
  owner.join();
}
TEST(circles, are_not_found_in_joins_after_the_lock_was_released) {
  expect_sound("join after unlocking", short_runs, join_after_unlocking);
}

// ---- one -----------------------------------------------------------------------------------------------------------

/// Two fibers, of which the second joins the first; `joins(other)` is how the first joins the second. The end of the
/// runtime cancels them.
template <class Joins>
auto with_a_circle(Joins joins) {
  return [joins] {
    join_handle<void> a, b;
    runtime rt{workers(2)};
    event both_made;
    a = rt.spawn([&] {
      joins([&] {
        both_made.wait();
        b.join();
      });
    });
    b = rt.spawn([&] { a.join(); });
    both_made.set();
    while (circles_now() == 0) detail::os_yield();
    check(circles_now() == 1, "the circle is gone, or found twice");
  };
}

TEST(circles, are_found_of_joins) {
  expect_sound("join each other", short_runs, with_a_circle([](auto join_other) { join_other(); }));
}

/// By one of two children. The owner's own wait is not cancelled; those of the others are.
TEST(circles, are_found_of_scopes) {
  expect_sound("join through a scope", short_runs, with_a_circle([](auto join_other) {
                 event never;
                 scope s;
                 s.spawn(fiber_options{}, [&] { never.wait(); });
                 s.spawn(fiber_options{}, join_other);
                 s.join();
               }));
}

/// The branch runs on another stack, since the first one waits meanwhile.
TEST(circles, are_found_of_branches) {
  expect_sound("join through a branch", short_runs, with_a_circle([](auto join_other) {
                 event runs;
                 fork_join([&] { runs.wait(); },
                           [&] {
                             runs.set();
                             join_other();
                           });
               }));
}

}  // namespace
}  // namespace ramie::interleave
