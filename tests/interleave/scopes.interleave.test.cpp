// Children that a scope gets late (after a wait of its owner, from another child), and what has to reach them at that
// very moment: a stop, a deadline, a failure, the end of the runtime.
#include "programs.hpp"

#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// An accept loop: waits, and adds a child for each time it was woken; so does a child.
void accept_two(channel<int>& never, channel<int>& connections) {
  scope s;
  for (int i = 0; i < 2; ++i) {
    connections.recv();
    s.spawn([&] {
      if (pick(2) == 0) this_fiber::yield();
      s.spawn([&] { never.recv(); });
      never.recv();
    });
  }
  s.join();
}

void stop_an_accept_loop() {
  runtime rt{workers(2)};
  channel<int> never, connections{2};
  auto loop = rt.spawn([&] { accept_two(never, connections); });
  for (int i = 0; i < 2; ++i) connections.send(i);
  wait_a_little();
  loop.request_stop();
  bool stopped = false;
  try {
    loop.join();
  } catch (const child_cancelled&) {
    stopped = true;
  }
  check(stopped, "the loop ended otherwise");
}
TEST(late_children, are_stopped_with_their_owner) {
  expect_sound("an accept loop is stopped", {.seeds = 3000}, stop_an_accept_loop);
}
TEST(late_children, of_nobody_are_found) {
  expect_found(plant::scope_child_of_nobody, "a late child has no parent", {.seeds = 20'000}, stop_an_accept_loop);
}
TEST(late_children, that_begin_unmarked_are_found) {
  expect_found(plant::scope_child_unmarked, "a late child begins unmarked", {.seeds = 20'000}, stop_an_accept_loop);
}

void time_out_an_accept_loop() {
  channel<int> never, connections{2};
  bool late = false;
  for (int i = 0; i < 2; ++i) connections.send(i);
  try {
    with_timeout(5us, [&] { accept_two(never, connections); });
  } catch (const timeout_error&) {
    late = true;
  }
  check(late, "the deadline did not reach all");
}
TEST(late_children, end_with_a_deadline) {
  expect_sound("an accept loop runs out of time", {.seeds = 2000}, in_runtime(time_out_an_accept_loop));
}

void cancel_while_children_come() {
  channel<int> never;
  scope s;
  this_fiber::yield();
  for (int i = 0; i < 2; ++i)
    s.spawn([&] {
      s.spawn([&] { never.recv(); });
      never.recv();
    });
  auto other = spawn([&] { s.cancel(); });
  other.join();
  s.join();
  int ran = 0;
  s.spawn([&] { ++ran; });
  s.join();
  check(ran == 1, "the cancellation outlived its join");
}
TEST(late_children, end_when_their_scope_is_cancelled) {
  expect_sound("a scope is cancelled while children come", {.seeds = 3000}, in_runtime(cancel_while_children_come));
}

void end_amid_spawns() {
  channel<int> never;  // outlives the detached fibers
  runtime rt{workers(2)};
  rt.spawn([] {
      for (int i = 0; i < 5; ++i) {
        spawn([] {}).detach();
        this_fiber::yield();
      }
    }).detach();
  rt.spawn([&] {
      scope s;
      for (int i = 0; i < 5; ++i) {
        s.spawn([&] { never.recv(); });
        this_fiber::yield();
        this_fiber::throw_if_stopped();
      }
    }).detach();
  wait_a_little();
}
TEST(late_children, end_with_the_runtime) {
  expect_sound("a runtime ends amid spawns", {.seeds = 1500}, end_amid_spawns);
}

}  // namespace
}  // namespace ramie::interleave
