// Selects on more than channels (channel/waitable.hpp, V1 to V5; sync/wait_queue.hpp, H5), and the ends of channels
// that close with their last copy (channel/ends.hpp).
#include "programs.hpp"

#include <ramie/channel/ends.hpp>
#include <ramie/channel/on_ready.hpp>
#include <ramie/channel/select.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// Selects wait for two events in different orders, and others for one of them alone; both are set at once.
void set_two_at_once() {
  event work, quit;
  std::array<int, 3> served{};
  {
    simulated_thread one{[&] { select(on_ready(work, [&] { ++served[0]; }), on_ready(quit, [&] { ++served[0]; })); }};
    simulated_thread two{[&] { select(on_ready(quit, [&] { ++served[1]; }), on_ready(work, [&] { ++served[1]; })); }};
    simulated_thread three{[&] {
      if (pick(2) == 0) work.wait();
      else quit.wait();
      ++served[2];
    }};
    simulated_thread setter{[&] {
      wait_a_little();
      quit.set();
    }};
    wait_a_little();
    work.set();
  }
  for (const int n : served) check(n == 1, "a waiter was not served once");
}
TEST(waiting, for_two_events_that_are_set_at_once) {
  expect_sound("two events", {.seeds = 40'000, .steps_most = 40'000}, set_two_at_once);
}
TEST(waiting, that_is_held_beside_another_is_found) {
  expect_found(plant::select_held_beside_others, "held beside others", {.seeds = 20'000, .steps_most = 40'000},
               set_two_at_once);
}

/// What a select finds unset under the lock is set afterwards, or was before: nothing is missed.
void come_while_it_looks() {
  event set;
  latch open{1};
  counting_semaphore<> permits{0};
  channel<int> never;
  const std::uint32_t kind = pick(3);
  int fired = 0;
  {
    simulated_thread selector{[&] {
      const std::size_t at = select(on_ready(set, [&] { ++fired; }), on_ready(open, [&] { ++fired; }),
                                    on_acquire(permits, [&] { ++fired; }), on_recv(never, [](std::optional<int>) {}));
      check(at == kind, "the wrong case");
    }};
    wait_a_little();
    if (kind == 0) set.set();
    if (kind == 1) open.count_down();
    if (kind == 2) permits.release();
  }
  check(fired == 1, "not served once");
}
TEST(waiting, misses_nothing) {
  expect_sound("second look", {.seeds = 40'000, .steps_most = 20'000}, come_while_it_looks);
}
TEST(waiting, without_a_second_look_is_found) {
  expect_found(plant::select_without_second_look, "no second look", {.seeds = 20'000, .steps_most = 20'000},
               come_while_it_looks);
}

/// Permits, elements and timeouts compete for the selects: no permit is lost, and none comes from nowhere.
void compete_for_permits() {
  counting_semaphore<> permits{pick(2)};
  const bool one_before = permits.try_acquire();
  if (one_before) permits.release();
  const int given = 2;
  channel<int> c{pick(2)};
  std::array<int, 2> acquired{};
  int received = 0, sent = 0;
  {
    std::array<std::optional<simulated_thread>, 2> selectors;
    for (std::size_t i = 0; i < 2; ++i)
      selectors[i].emplace([&, i] {
        for (int n = 0; n < 2; ++n)
          select(on_acquire(permits, [&] { ++acquired[i]; }),
                 on_recv(c, [&, i](std::optional<int>) { received += i == 0 ? 1 : 0; }), on_timeout(5us, [] {}));
      });
    simulated_thread releaser{[&] {
      for (int n = 0; n < given; ++n) {
        wait_a_little();
        permits.release();
      }
    }};
    wait_a_little();
    if (c.try_send(1) == channel_status::ok) ++sent;
  }
  int left = 0;
  while (permits.try_acquire()) ++left;
  check(left + acquired[0] + acquired[1] == given + (one_before ? 1 : 0), "a permit was lost, or came from nowhere");
  check(received <= sent, "an element came from nowhere");
}
TEST(waiting, for_permits_loses_none) {
  expect_sound("permits", {.seeds = 30'000, .steps_most = 60'000}, compete_for_permits);
}

/// A latch is destroyed by the select that it served, while the other party is still in count_down.
void destroy_what_served() {
  struct shared {
    latch open{1};
    detail::atomic<int> inside{2};
  };
  auto* s = new shared;
  channel<int> never;
  const auto leave = [s] {
    if (s->inside.fetch_sub(1, std::memory_order_acq_rel) == 1) delete s;
  };
  simulated_thread one{[&] {
    select(on_recv(never, [](std::optional<int>) {}), on_ready(s->open));
    leave();
  }};
  simulated_thread two{[&] {
    if (pick(2) == 0) select(on_ready(s->open), on_recv(never, [](std::optional<int>) {}), on_ready(s->open));
    else s->open.wait();
    leave();
  }};
  wait_a_little();
  s->open.count_down();
}
TEST(waiting, may_destroy_what_it_waited_for) {
  expect_sound("destroyed latch", {.seeds = 40'000, .steps_most = 40'000}, destroy_what_served);
}

/// Fibers end while a select waits for them, for a channel, and for the time.
void end_while_selected() {
  runtime rt{{.workers = 1 + static_cast<int>(pick(2))}};
  rt.run([] {
    channel<int> c;
    std::optional<int> got;
    auto a = spawn([&] { wait_a_little(); });
    auto b = spawn([&] { static_cast<void>(c.send(1)); });
    bool ended = false;
    for (int n = 0; n < 2; ++n) select(when(!ended, on_ready(a, [&] { ended = true; })), when(!got, on_recv(c, got)));
    check(ended && got == 1, "an end or an element was missed");
    select(on_ready(b));
    check(b.has_ended(), "it has not ended");
    a.join();
    b.join();
  });
}
TEST(waiting, for_ends_misses_none) {
  expect_sound("ends", {.seeds = 1500, .steps_most = 200'000}, end_while_selected);
}

/// The last receiver goes amid sends, whose elements are senders of answers: the waiter for one learns of it.
void drop_the_last_receiver() {
  auto [to, from] = make_channel<sender<int>>(pick(3));
  {
    simulated_thread asker{[to = to] {
      auto [answer, result] = make_channel<int>();
      static_cast<void>(to.send(std::move(answer)));
      answer.reset();
      static_cast<void>(result.recv());  // an answer, or nothing: not for ever
    }};
    simulated_thread server{[from = from] {
      if (auto request = from.try_recv()) static_cast<void>(request->try_send(1));
    }};
    wait_a_little();
    from.reset();
    to.reset();
  }
}
TEST(channel_ends, drop_what_nobody_will_receive) {
  expect_sound("last receiver", {.seeds = 5000, .steps_most = 60'000}, drop_the_last_receiver);
}

}  // namespace
}  // namespace ramie::interleave
