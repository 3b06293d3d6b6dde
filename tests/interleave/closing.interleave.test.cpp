// Closing channels amid selects: with several cases on the closed channel, with two channels closed at once, and with
// channels that are destroyed as soon as their last user has returned.
#include "programs.hpp"

#include <ramie/channel/channel.hpp>
#include <ramie/channel/select.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// The outcome of selects: how often a case was served, and how often because of a close.
struct told {
  int served = 0;
  int closed = 0;
  auto received() {
    return [this](std::optional<int> v) {
      ++served;
      if (!v) ++closed;
    };
  }
  auto sent() {
    return [this](channel_status s) {
      ++served;
      if (s == channel_status::closed) ++closed;
    };
  }
};

/// A select that waits on one channel in two cases: two receives, two sends, or one of each.
void close_what_a_select_waits_for_twice() {
  const bool full = pick(2) == 0;
  channel<int> c{full ? 1u : 0u};
  const std::uint32_t kind = full ? 1 : pick(3);
  if (full) static_cast<void>(c.send(0));
  told one;
  {
    simulated_thread selector{[&] {
      if (kind == 0) select(on_recv(c, one.received()), on_recv(c, one.received()));
      if (kind == 1) select(on_send(c, 1, one.sent()), on_send(c, 2, one.sent()));
      if (kind == 2) select(on_recv(c, one.received()), on_send(c, 3, one.sent()));
    }};
    wait_a_little();
    c.close();
  }
  check(one.served == 1 && one.closed == 1, "a select was not told once that its channel is closed");
}
TEST(closing, of_what_a_select_waits_for_twice) {
  expect_sound("close, two cases", {.seeds = 20'000, .steps_most = 20'000}, close_what_a_select_waits_for_twice);
}
TEST(closing, that_holds_two_waits_is_found) {
  expect_found(plant::close_holds_two, "close holds two, one channel", {.seeds = 20'000, .steps_most = 20'000},
               close_what_a_select_waits_for_twice);
}

/// Two selects wait on two channels in different orders, and a third waiter on one alone.
void close_two_at_once() {
  channel<int> work, quit;
  std::array<told, 3> all;
  {
    simulated_thread one{[&] { select(on_recv(work, all[0].received()), on_recv(quit, all[0].received())); }};
    simulated_thread two{[&] { select(on_recv(quit, all[1].received()), on_recv(work, all[1].received())); }};
    simulated_thread three{[&] {
      if (pick(2) == 0) all[2].received()(quit.recv());
      else if (work.recv_for(3us).has_value()) check(false, "nobody sent anything");
      else all[2].received()(std::nullopt);
    }};
    simulated_thread closer{[&] {
      wait_a_little();
      quit.close();
    }};
    wait_a_little();
    work.close();
  }
  for (const told& t : all) check(t.served == 1 && t.closed == 1, "somebody was not told once that it is closed");
}
TEST(closing, of_two_channels_at_once) {
  expect_sound("close two", {.seeds = 8000, .steps_most = 40'000}, close_two_at_once);
}
TEST(closing, of_two_channels_that_hold_two_waits_is_found) {
  expect_found(plant::close_holds_two, "close holds two, two channels", {.seeds = 20'000, .steps_most = 40'000},
               close_two_at_once);
}

/// Sends, receives and selects with several cases on both channels, while both are closed. What was sent arrives.
void close_two_amid_traffic() {
  channel<int> a{pick(2)}, b{pick(2)};
  int sent = 0, received = 0, left = 0;
  {
    simulated_thread sender{[&] {
      for (bool open = true; open;)
        select(on_send(a, 1, [&](channel_status s) { s == channel_status::ok ? ++sent : (open = false); }),
               on_send(b, 2, [&](channel_status s) { s == channel_status::ok ? ++sent : (open = false); }),
               on_send(a, 3, [&](channel_status s) { s == channel_status::ok ? ++sent : (open = false); }));
    }};
    simulated_thread receiver{[&] {
      for (bool open = true; open;) {
        auto got = [&](std::optional<int> v) { v ? ++received : (open = false); };
        select(on_recv(b, got), on_recv(a, got), on_recv(b, got));
      }
    }};
    simulated_thread closer{[&] {
      wait_a_little();
      b.close();
    }};
    detail::os_sleep(1000 * pick(20));
    a.close();
  }
  while (a.recv()) ++left;
  while (b.recv()) ++left;
  check(sent == received + left, "an element was lost, or came twice");
}
TEST(closing, of_two_channels_amid_traffic) {
  expect_sound("close two amid traffic", {.seeds = 3000, .steps_most = 100'000}, close_two_amid_traffic);
}

/// The last to leave destroys the channel: a waiter that the close wakes, one that times out meanwhile, or the closer,
/// which does not return from a use that is over for the others.
void destroy_after_close() {
  struct shared {
    channel<int> c;
    detail::atomic<int> inside{3};
  };
  auto* s = new shared;
  const auto leave = [s] {
    if (s->inside.fetch_sub(1, std::memory_order_acq_rel) == 1) delete s;
  };
  simulated_thread one{[&] {
    select(on_recv(s->c, [](std::optional<int> v) { check(!v, "a value"); }), on_recv(s->c, [](std::optional<int>) {}));
    leave();
  }};
  simulated_thread two{[&] {
    if (pick(2) == 0) s->c.recv_for(2us);
    else
      select(on_recv(s->c, [](std::optional<int>) {}), on_recv(s->c, [](std::optional<int>) {}),
             on_timeout(2us, [] {}));
    leave();
  }};
  simulated_thread three{[&] {
    if (pick(2) == 0) static_cast<void>(s->c.recv());
    else select(on_recv(s->c, [](std::optional<int>) {}), on_recv(s->c, [](std::optional<int>) {}));
    leave();
  }};
  wait_a_little();
  // The last waiter may be gone, and the channel with it, before this call has returned.
  s->c.close();
}
TEST(closing, lets_the_last_waiter_destroy) {
  expect_sound("destroyed after close", {.seeds = 10'000, .steps_most = 40'000}, destroy_after_close);
}

/// At every moment one of two channels has an element: it moves to and fro between them, and a select puts back what it
/// takes before the next one. So `otherwise` must not be taken.
void poll_what_is_always_ready() {
  channel<int> a{1}, b{1}, never;  // cases that are never ready widen the gap between the others
  static_cast<void>(a.send(1));
  simulated_thread selector{[&] {
    const bool a_first = pick(2) == 0;
    const auto missed = [] { check(false, "otherwise, though one of the channels was ready at every moment"); };
    for (int i = 0; i < 8; ++i) {
      const auto back_to_a = [&](std::optional<int>) { static_cast<void>(a.try_send(1)); };
      const auto back_to_b = [&](std::optional<int>) { static_cast<void>(b.try_send(1)); };
      const auto none = [](std::optional<int>) {};
      if (a_first)
        select(on_recv(a, back_to_a), on_recv(never, none), on_recv(never, none), on_recv(never, none),
               on_recv(b, back_to_b), on_recv(never, none), on_recv(never, none), on_recv(never, none),
               otherwise(missed));
      else select(on_recv(b, back_to_b), on_recv(a, back_to_a), otherwise(missed));
    }
  }};
  for (int i = 0; i < 8; ++i) {
    static_cast<void>(b.try_send(2));
    static_cast<void>(a.try_recv());
    detail::os_yield();  // in b alone
    static_cast<void>(a.try_send(3));
    static_cast<void>(b.try_recv());
    detail::os_yield();  // in a alone
  }
}
TEST(polling, sees_all_cases_at_one_instant) {
  expect_sound("otherwise", {.seeds = 20'000, .steps_most = 20'000}, poll_what_is_always_ready);
}
TEST(polling, that_ignores_changes_between_the_glances_is_found) {
  expect_found(plant::otherwise_counts_ignored, "otherwise, changes ignored", {.seeds = 20'000, .steps_most = 20'000},
               poll_what_is_always_ready);
}
TEST(polling, that_glances_once_is_found) {
  expect_found(plant::otherwise_glances_once, "otherwise, one glance", {.seeds = 20'000, .steps_most = 20'000},
               poll_what_is_always_ready);
}

/// A full buffer with a sender in line: a receiver takes the oldest, and the sender takes its place. The buffer is
/// never empty in between.
void poll_while_a_place_is_filled() {
  channel<int> a{1}, never;
  int got = 0, other_got = 0;
  static_cast<void>(a.send(1));
  {
    simulated_thread sender{[&] { static_cast<void>(a.send(2)); }};
    while (a.statistics().waiting_senders == 0) detail::os_yield();
    simulated_thread receiver{[&] { other_got += a.recv() ? 1 : 0; }};
    select(on_recv(never, [](std::optional<int>) {}), on_recv(a, [&](std::optional<int> v) { got += v ? 1 : 0; }),
           otherwise([] { check(false, "otherwise, though an element was there at every moment"); }));
  }
  check(got + other_got == 2 && a.empty(), "an element was lost, or came twice");
}
TEST(polling, sees_a_place_that_is_filled_anew) {
  expect_sound("otherwise beside take_in", {.seeds = 20'000, .steps_most = 20'000}, poll_while_a_place_is_filled);
}

/// The same with fibers, whose waits are claimed in other ways than those of threads.
void close_two_at_once_in_a_runtime() {
  runtime rt{{.workers = 2, .stack_size = 64 * 1024, .name = "sim", .spare_workers = 0, .report_deadlocks = false}};
  rt.run([] {
    channel<int> work, quit;
    std::array<told, 3> all;
    std::vector<join_handle<void>> fibers;
    fibers.push_back(spawn([&] { select(on_recv(work, all[0].received()), on_recv(quit, all[0].received())); }));
    fibers.push_back(spawn([&] { select(on_recv(quit, all[1].received()), on_recv(work, all[1].received())); }));
    fibers.push_back(spawn([&] { select(on_recv(work, all[2].received()), on_recv(work, all[2].received())); }));
    fibers.push_back(spawn([&] { quit.close(); }));
    if (pick(2) == 0) this_fiber::yield();
    work.close();
    for (join_handle<void>& f : fibers) f.join();
    for (const told& t : all) check(t.served == 1 && t.closed == 1, "somebody was not told once that it is closed");
  });
}
TEST(closing, of_two_channels_in_a_runtime) {
  expect_sound("close two, fibers", {.seeds = 1500, .steps_most = 100'000}, close_two_at_once_in_a_runtime);
}
TEST(closing, of_two_channels_in_a_runtime_that_holds_two_waits_is_found) {
  expect_found(plant::close_holds_two, "close holds two, fibers", {.seeds = 20'000, .steps_most = 100'000},
               close_two_at_once_in_a_runtime);
}

}  // namespace
}  // namespace ramie::interleave
