// Children that a scope gets late (after a wait of its owner, from another child), and what has to reach them at that
// very moment: a stop, a deadline, a failure, the end of the runtime.
#include "programs.hpp"

#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
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
  for (int i = 0; i < 2; ++i) static_cast<void>(connections.send(i));
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
  for (int i = 0; i < 2; ++i) static_cast<void>(connections.send(i));
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

/// Children with children of their own. Some end by themselves, just when all are told to.
void begin_a_tree(scope& s, channel<int>& never) {
  for (int i = 0; i < 2; ++i)
    s.spawn(fiber_options{}, [&never] {
      scope below;
      below.spawn(fiber_options{}, [] {});
      below.spawn(fiber_options{}, [&never] { never.recv(); });
      if (pick(2) == 0) this_fiber::yield();
      below.join();
    });
}
void stop_a_tree(bool from_within) {
  runtime rt{workers(2)};
  channel<int> never;
  auto top = rt.spawn([&] {
    scope s;
    begin_a_tree(s, never);
    if (from_within) s.spawn(fiber_options{}, [&s] { s.cancel(); });
    s.join();
  });
  if (pick(2) == 0) wait_a_little();
  top.request_stop();
  try {
    top.join();
  } catch (const cancelled&) {
  }
}
void stop_a_tree_once() { stop_a_tree(false); }
void cancel_a_tree() {
  channel<int> never;
  scope s;
  begin_a_tree(s, never);
  this_fiber::yield();
  s.cancel();
  s.join();
}
TEST(trees, are_stopped_whole) {
  expect_sound("a tree is stopped", {.seeds = 2000, .time_flies = false}, stop_a_tree_once);
  expect_sound("a tree is cancelled", {.seeds = 2000, .time_flies = false}, in_runtime(cancel_a_tree));
}
TEST(trees, whose_strands_end_beside_a_walk_are_found) {
  expect_found(plant::pinned_strand_unlinked, "a tree is stopped, links not pinned",
               {.seeds = 50'000, .time_flies = false}, stop_a_tree_once);
}
TEST(trees, that_are_walked_without_a_fence_are_found) {
  expect_found(plant::cancelled_unfenced, "a tree is cancelled, no fence", {.seeds = 50'000, .time_flies = false},
               in_runtime(cancel_a_tree));
}
TEST(trees, whose_strands_are_not_linked_are_found) {
  expect_found(plant::strand_unlinked, "a tree is cancelled, strands not linked",
               {.seeds = 20'000, .time_flies = false}, in_runtime(cancel_a_tree));
}

/// Two stops at once, one of them by a strand of the tree.
void stop_a_tree_twice() { stop_a_tree(true); }
TEST(trees, are_stopped_by_two_at_once) {
  expect_sound("a tree is stopped from above and from within", {.seeds = 3000, .time_flies = false}, stop_a_tree_twice);
}

/// The owner waits for something else when a child fails.
void fail_beside_a_body() {
  channel<int> never;
  bool ended = false;
  try {
    in_scope([&](scope& s) {
      s.spawn(fiber_options{}, [] {
        if (pick(2) == 0) this_fiber::yield();
        throw 1;
      });
      if (pick(2) == 0) this_fiber::yield();
      never.recv();
    });
  } catch (int) {
    ended = true;
  }
  check(ended, "the child's failure did not come out");
}
TEST(bodies, end_when_a_child_fails) {
  expect_sound("a child fails beside its body", {.seeds = 3000, .time_flies = false}, in_runtime(fail_beside_a_body));
}
TEST(bodies, that_are_not_looked_at_after_a_fence_are_found) {
  expect_found(plant::cancelled_unfenced, "a child fails beside its body, no fence",
               {.seeds = 50'000, .time_flies = false}, in_runtime(fail_beside_a_body));
}

/// Someone else cancels it, before, while or after it is joined; it is used again, beside a scope that stays stopped.
void cancel_beside_a_join() {
  channel<int> never;
  event begun, over;
  auto other = spawn([&] {
    scope t;
    t.spawn(fiber_options{}, [&] {
      begun.set();
      try {
        never.recv();
      } catch (const cancelled&) {
      }
      shield([&] { over.wait(); });
      never.recv();
    });
    begun.wait();
    t.cancel();
    t.join();
  });
  scope s;
  auto dog = spawn([&] { s.cancel(); });
  for (int i = 0; i < 2; ++i) {
    s.spawn(fiber_options{}, [] { this_fiber::yield(); });
    s.join();
  }
  dog.join();
  s.join();
  int ran = 0;
  s.spawn(fiber_options{}, [&] {
    event e;
    spawn([&] { e.set(); }).detach();
    e.wait();
    ++ran;
  });
  s.join();
  check(ran == 1, "the cancellation outlived its join");
  over.set();
  other.join();
}
TEST(stopped_scopes, may_be_cancelled_beside_a_join) {
  expect_sound("a scope is cancelled beside its join", {.seeds = 4000, .time_flies = false},
               in_runtime(cancel_beside_a_join));
}

TEST(stopped_scopes, that_begin_again_late_are_found) {
  expect_found(plant::scope_begins_again_late, "a scope is cancelled while it begins again",
               {.seeds = 20'000, .time_flies = false}, in_runtime(cancel_beside_a_join));
}

void cancel_again() {
  channel<int> never;
  scope s;
  for (int i = 0; i < 2; ++i) {
    s.spawn(fiber_options{}, [&] { never.recv(); });
    s.cancel();
    s.join();
    int ran = 0;
    s.spawn(fiber_options{}, [&] {
      this_fiber::yield();
      event e;
      spawn([&] { e.set(); }).detach();
      e.wait();
      ++ran;
    });
    s.join();
    check(ran == 1, "the cancellation outlived its join");
  }
}
TEST(stopped_scopes, may_be_used_again) {
  expect_sound("a scope is cancelled again", {.seeds = 2000, .time_flies = false}, in_runtime(cancel_again));
}
/// A child of a scope that was cancelled waits once more, when another of the same owner has ended.
void cancel_one_after_another() {
  channel<int> never;
  event begun;
  scope s;
  s.spawn(fiber_options{}, [&] {
    begun.set();
    for (int i = 0; i < 2; ++i) {
      try {
        never.recv();
      } catch (const cancelled&) {
      }
    }
  });
  begun.wait();
  s.cancel();
  {
    scope inner;
    inner.spawn(fiber_options{}, [] {});
    inner.cancel();
    inner.join();
  }
  s.join();
}
TEST(stopped_scopes, that_end_leave_others_known) {
  expect_sound("one of two stopped scopes ends", {.seeds = 2000, .time_flies = false},
               in_runtime(cancel_one_after_another));
}
TEST(stopped_scopes, that_end_with_others_are_found) {
  expect_found(plant::stopped_scope_forgotten, "one of two stopped scopes ends, both are forgotten",
               {.seeds = 20'000, .time_flies = false}, in_runtime(cancel_one_after_another));
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

void cancel_a_call() {
  channel<int> never, some{1};
  auto limit = std::make_unique<cancel_scope>();
  auto other = spawn([&] { limit->cancel(); });
  const bool whole = limit->run([&] {
    if (pick(2) == 0) this_fiber::yield();
    scope s;
    s.spawn(fiber_options{}, [&] { static_cast<void>(some.send(1)); });
    if (pick(2) == 0) never.recv();
    else s.spawn(fiber_options{}, [&] { never.recv(); });
    s.join();
  });
  check(!whole, "a call ended by itself that waits for nothing");
  check(!this_fiber::stop_requested(), "its caller is stopped");
  other.join();
}
void end_beside_a_cancel() {
  cancel_scope limit;
  auto other = spawn([&] { limit.cancel(); });
  limit.run([] { this_fiber::yield(); });
  other.join();
}
TEST(cancel_scopes, are_cancelled) {
  expect_sound("a call is cancelled", {.seeds = 3000, .time_flies = false}, in_runtime(cancel_a_call));
}
TEST(cancel_scopes, that_are_left_amid_a_cancel_are_found) {
  expect_found(plant::call_left_early, "a call ends amid a cancel", {.seeds = 50'000, .time_flies = false},
               in_runtime(end_beside_a_cancel));
}

/// A wait that began with a deadline gets a later one, and an earlier one.
void move_a_deadline() {
  channel<int> some, never;
  cancel_scope limit{5us};
  bool in_time = false;
  auto other = spawn([&] {
    if (pick(2) == 0) this_fiber::yield();
    in_time = limit.expires_after(1h);
    if (in_time) this_fiber::sleep_for(10us);
    static_cast<void>(some.try_send(1));
    some.close();
  });
  const bool whole = limit.run([&] { some.recv(); });
  other.join();
  check(whole || !in_time, "a deadline that was moved has ended a wait");
  cancel_scope earlier{1h};
  auto moving = spawn([&] { earlier.expires_after(5us); });
  check(!earlier.run([&] {
    scope s;
    s.spawn(fiber_options{}, [&] { never.recv(); });
    never.recv();
  }),
        "an earlier deadline has not ended a wait");
  moving.join();
}
TEST(cancel_scopes, have_deadlines_that_move) {
  expect_sound("deadlines are moved", {.seeds = 2000}, in_runtime(move_a_deadline));
}
TEST(cancel_scopes, whose_deadlines_move_late_are_found) {
  expect_found(plant::deadline_moved_late, "a deadline is moved that has passed", {.seeds = 20'000},
               in_runtime(move_a_deadline));
}

}  // namespace
}  // namespace ramie::interleave
