// Channels: order, capacity, hand-over, the timed and the trying forms, ranges, statistics.
#include <ramie/channel/channel.hpp>

#include <ramie/channel/testing.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;
using steady = std::chrono::steady_clock;

static_assert(!std::is_copy_constructible_v<channel<int>> && !std::is_move_constructible_v<channel<int>>);
static_assert(!std::is_copy_assignable_v<channel<int>> && !std::is_move_assignable_v<channel<int>>);
static_assert(!std::is_convertible_v<int, channel<int>>);
static_assert(std::ranges::input_range<channel<int>>);
static_assert(std::ranges::input_range<channel<std::unique_ptr<int>>>);
static_assert(std::is_same_v<channel<long>::value_type, long>);

TEST(channel, tells_its_capacity_and_size) {
  channel<int> none;
  EXPECT_EQ(none.capacity(), 0u);
  EXPECT_TRUE(none.empty());
  channel<int> also_none{0};
  EXPECT_EQ(also_none.capacity(), 0u);
  channel<std::string> c{3};
  EXPECT_EQ(c.capacity(), 3u);
  EXPECT_EQ(c.size(), 0u);
  EXPECT_EQ(c.send("a"), channel_status::ok);
  EXPECT_EQ(c.send("b"), channel_status::ok);
  EXPECT_EQ(c.size(), 2u);
  EXPECT_FALSE(c.empty());
  EXPECT_EQ(c.recv(), "a");
  EXPECT_EQ(c.size(), 1u);
  EXPECT_FALSE(c.is_closed());
}

TEST(channel, trying_tells_why_it_failed) {
  channel<int> c{1};
  std::optional<int> got = 7;
  EXPECT_EQ(c.try_recv(got), channel_status::empty);
  EXPECT_FALSE(got.has_value()) << "an old value must not look like a new one";
  EXPECT_EQ(c.try_send(1), channel_status::ok);
  EXPECT_EQ(c.try_send(2), channel_status::full);
  EXPECT_EQ(c.try_recv(got), channel_status::ok);
  EXPECT_EQ(got, 1);
  EXPECT_EQ(c.try_recv(), std::nullopt);
  EXPECT_EQ(c.try_send(3), channel_status::ok);
  c.close();
  EXPECT_EQ(c.try_send(4), channel_status::closed);
  EXPECT_EQ(c.try_recv(got), channel_status::ok);
  EXPECT_EQ(got, 3);
  EXPECT_EQ(c.try_recv(got), channel_status::closed);
  EXPECT_FALSE(got.has_value());

  channel<int> rendezvous;
  EXPECT_EQ(rendezvous.try_send(1), channel_status::full);
  EXPECT_EQ(rendezvous.try_recv(got), channel_status::empty);
}

TEST(channel, failing_sends_leave_the_value_alone) {
  channel<std::unique_ptr<int>> c{1};
  auto kept = std::make_unique<int>(5);
  ASSERT_EQ(c.send(std::make_unique<int>(1)), channel_status::ok);
  EXPECT_EQ(c.try_send(std::move(kept)), channel_status::full);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(c.send_for(std::move(kept), 1us), channel_status::timeout);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(c.send_until(std::move(kept), steady::now() - 1h), channel_status::timeout);
  ASSERT_NE(kept, nullptr);
  c.close();
  EXPECT_EQ(c.try_send(std::move(kept)), channel_status::closed);
  EXPECT_EQ(c.send(std::move(kept)), channel_status::closed);
  EXPECT_EQ(c.send_for(std::move(kept), 1h), channel_status::closed);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(*kept, 5);
}

TEST(channel, copies_what_it_may_not_move) {
  channel<std::string> c{2};
  const std::string text = "a text that is too long for the string itself";
  std::string mine = text;
  EXPECT_EQ(c.send(mine), channel_status::ok);
  EXPECT_EQ(c.try_send(mine), channel_status::ok);
  EXPECT_EQ(mine, text);
  EXPECT_EQ(c.send_for(mine, 0s), channel_status::timeout);
  EXPECT_EQ(c.recv(), text);
  EXPECT_EQ(c.send_until(mine, steady::now()), channel_status::ok);
  EXPECT_EQ(c.recv(), text);
  EXPECT_EQ(c.recv(), text);
}

TEST(channel, refuses_capacities_that_nobody_has) {
  EXPECT_EQ(
      message_of<invalid_argument>([] { channel<std::uint64_t> c{std::numeric_limits<std::size_t>::max()}; }),
      "ramie: channel: capacity is 18446744073709551615; it must be at most 4294967295 for elements of this size");
  EXPECT_THROW(channel<char>{std::size_t{1} << 32}, invalid_argument);
  struct huge {
    std::array<char, 1u << 31> bytes;
  };
  EXPECT_THROW(channel<huge>{std::size_t{1} << 32}, invalid_argument);
#if RAMIE_ASAN == 0 && RAMIE_TSAN == 0
  EXPECT_THROW(channel<huge>{std::size_t{1} << 31}, std::bad_alloc);
#endif
}

TEST(channel, drops_what_is_buffered_when_it_goes) {
  counted::reset();
  {
    channel<counted> c{5};
    for (int i = 0; i < 5; ++i) static_cast<void>(c.send(counted{i}));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(c.recv()->value, i);
    static_cast<void>(c.send(counted{5}));  // around the end of the ring
    static_cast<void>(c.send(counted{6}));
    EXPECT_EQ(counted::alive, 4);
  }
  EXPECT_EQ(counted::alive, 0);
  EXPECT_EQ(counted::copies, 0);
}

TEST(channel_death, ends_the_process_if_somebody_waits) {
  GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style());
  EXPECT_DEATH(
      {
        run(runtime_options{.workers = 1}, [] {
          auto c = std::make_unique<channel<int>>();
          auto waiter = spawn([&] { c->recv(); });
          await_receivers(*c, 1);
          c.reset();
        });
      },
      "a channel was destroyed while a fiber or thread waited");
}

class channels : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, channels, all_worlds(), name_of);

TEST_P(channels, keep_the_order_of_one_sender) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 1u, 2u, 7u, 128u}) {
      channel<int> c{capacity};
      const int n = scaled(GetParam().migrate_always ? 200 : 3000);  // each migration wakes a thread
      all.start([&] {
        for (int i = 0; i < n; ++i) EXPECT_EQ(c.send(i), channel_status::ok);
        c.close();
      });
      for (int i = 0; i < n; ++i) ASSERT_EQ(c.recv(), i) << "capacity " << capacity;
      EXPECT_EQ(c.recv(), std::nullopt);
      all.join();
    }
    all.join();
  });
}

TEST_P(channels, of_no_capacity_let_a_sender_go_when_its_value_is_taken) {
  run([](crew& all) {
    channel<int> c;
    std::atomic<int> sent{0};
    all.start([&] {
      static_cast<void>(c.send(1));
      sent = 1;
      static_cast<void>(c.send(2));
      sent = 2;
    });
    await_senders(c, 1);
    EXPECT_EQ(sent, 0);
    EXPECT_EQ(c.size(), 0u);
    EXPECT_EQ(c.recv(), 1);
    await_senders(c, 1);
    EXPECT_EQ(sent, 1);
    EXPECT_EQ(c.try_recv(), 2) << "a waiting sender serves a try";
    await([&] { return sent == 2; });
    all.join();
  });
}

TEST_P(channels, hand_over_to_who_waits) {
  run([](crew& all) {
    channel<int> c;
    std::atomic<int> got{0};
    all.start([&] { got = c.recv().value(); });
    await_receivers(c, 1);
    EXPECT_EQ(c.try_send(5), channel_status::ok) << "a waiting receiver serves a try";
    EXPECT_EQ(c.try_send(6), channel_status::full);
    await([&] { return got == 5; });
    all.join();
  });
}

TEST_P(channels, buffer_as_much_as_they_may) {
  run([](crew& all) {
    channel<int> c{3};
    std::atomic<int> sent{0};
    all.start([&] {
      for (int i = 0; i < 5; ++i) {
        static_cast<void>(c.send(i));
        ++sent;
      }
    });
    await_senders(c, 1);
    EXPECT_EQ(sent, 3);
    EXPECT_EQ(c.size(), 3u);
    EXPECT_EQ(c.recv(), 0);
    await([&] { return sent == 4; });
    await_senders(c, 1);
    EXPECT_EQ(c.size(), 3u);
    for (int i = 1; i < 5; ++i) EXPECT_EQ(c.recv(), i);
    all.join();
  });
}

TEST_P(channels, serve_senders_in_their_order) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 2u}) {
      channel<int> c{capacity};
      for (int i = 0; i < static_cast<int>(capacity); ++i) static_cast<void>(c.send(i));
      for (int i = 0; i < 10; ++i) {
        all.start([&c, i, capacity] { static_cast<void>(c.send(i + static_cast<int>(capacity))); });
        await_senders(c, static_cast<std::size_t>(i) + 1);
      }
      for (int i = 0; i < 10 + static_cast<int>(capacity); ++i) EXPECT_EQ(c.recv(), i);
      all.join();
    }
    all.join();
  });
}

TEST_P(channels, serve_receivers_in_their_order) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 4u}) {
      channel<int> c{capacity};
      std::vector<int> got(10, -1);
      for (int i = 0; i < 10; ++i) {
        all.start([&, i] { got[static_cast<std::size_t>(i)] = c.recv().value(); });
        await_receivers(c, static_cast<std::size_t>(i) + 1);
      }
      for (int i = 0; i < 10; ++i) EXPECT_EQ(c.send(i), channel_status::ok);
      all.join();
      for (int i = 0; i < 10; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
    }
    all.join();
  });
}

TEST_P(channels, give_up_when_told_to) {
  run([](crew&) {
    channel<int> c{1};
    for (const auto timeout : {steady::duration{0}, steady::duration{-1h}, steady::duration{50us}}) {
      auto before = steady::now();
      EXPECT_EQ(c.recv_for(timeout), std::nullopt);
      EXPECT_GE(steady::now() - before, timeout);
    }
    std::optional<int> got = 3;
    EXPECT_EQ(c.recv_until(got, steady::now() + 10us), channel_status::timeout);
    EXPECT_FALSE(got.has_value());
    EXPECT_EQ(c.send_for(1, -5s), channel_status::ok) << "there is room, whatever the time";
    const auto deadline = steady::now() + 50us;
    EXPECT_EQ(c.send_until(2, deadline), channel_status::timeout);
    EXPECT_GE(steady::now(), deadline);
    EXPECT_EQ(c.recv_for(-5s), 1);
    EXPECT_EQ(c.statistics().waiting_receivers + c.statistics().waiting_senders, 0u);
    EXPECT_EQ(c.recv_until(got, steady::time_point::min()), channel_status::timeout);
    c.close();
    EXPECT_EQ(c.recv_until(got, steady::time_point::min()), channel_status::closed);
  });
}

TEST_P(channels, are_in_time_if_a_counterpart_comes) {
  run([](crew& all) {
    channel<int> c;
    channel<int> back;
    all.start([&] {
      std::optional<int> got;
      EXPECT_EQ(c.recv_until(got, steady::time_point::max()), channel_status::ok);
      EXPECT_EQ(got, 1);
      EXPECT_EQ(c.recv_for(24h * 365 * 1000), 2);
      EXPECT_EQ(back.send_for(3, 1h), channel_status::ok);
      EXPECT_EQ(back.send_until(4, steady::time_point::max()), channel_status::ok);
    });
    await_receivers(c, 1);
    EXPECT_EQ(c.send_for(1, 1h), channel_status::ok);
    await_receivers(c, 1);
    EXPECT_EQ(c.send(2), channel_status::ok);
    await_senders(back, 1);
    EXPECT_EQ(back.recv_for(1h), 3);
    await_senders(back, 1);
    EXPECT_EQ(back.recv(), 4);
    all.join();
  });
}

TEST_P(channels, are_ranges) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 4u}) {
      channel<std::unique_ptr<int>> c{capacity};
      all.start([&] {
        for (int i = 0; i < 100; ++i) static_cast<void>(c.send(std::make_unique<int>(i)));
        c.close();
      });
      int next = 0;
      for (std::unique_ptr<int>& p : c) {
        ASSERT_EQ(*p, next++);
        const std::unique_ptr<int> mine = std::move(p);
        if (next == 50) break;
      }
      for (auto it = c.begin(); it != c.end(); it++) {
        ASSERT_EQ(**it, next++);
        ASSERT_EQ(*it->get(), next - 1);
      }
      EXPECT_EQ(next, 100);
      for ([[maybe_unused]] auto& p : c) ADD_FAILURE() << "closed and drained";
      all.join();
    }
    all.join();
  });
}

TEST_P(channels, tell_who_waits) {
  run([](crew& all) {
    channel<int> c{2};
    const auto figures = [&] {
      const channel_statistics s = c.statistics();
      return std::vector<std::size_t>{s.length, s.waiting_senders, s.waiting_receivers};
    };
    using list = std::vector<std::size_t>;
    EXPECT_EQ(figures(), (list{0, 0, 0}));
    for (int i = 0; i < 3; ++i) all.start([&] { c.recv(); });
    await_receivers(c, 3);
    EXPECT_EQ(figures(), (list{0, 0, 3}));
    c.close();
    all.join();
    EXPECT_EQ(figures(), (list{0, 0, 0}));

    channel<int> d{1};
    for (int i = 0; i < 3; ++i) all.start([&] { static_cast<void>(d.send(0)); });
    await_senders(d, 2);
    EXPECT_EQ(d.statistics().length, 1u);
    for (int i = 0; i < 3; ++i) d.recv();
    EXPECT_EQ(d.statistics().waiting_senders + d.size(), 0u);
    all.join();
  });
}

TEST_P(channels, join_fibers_and_threads) {
  if (on_threads()) GTEST_SKIP() << "no fibers";
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 3u}) {
      channel<int> to_thread{capacity};
      channel<int> to_fiber{capacity};
      const int n = scaled(500);
      all.start_thread([&] {
        for (const int v : to_thread) static_cast<void>(to_fiber.send(v + 1));
        to_fiber.close();
      });
      all.start([&] {
        for (int i = 0; i < n; ++i) static_cast<void>(to_thread.send(i));
        to_thread.close();
      });
      for (int i = 0; i < n; ++i) ASSERT_EQ(to_fiber.recv(), i + 1);
      EXPECT_EQ(to_fiber.recv(), std::nullopt);
      all.join();
    }
    all.join();
  });
}

TEST_P(channels, join_two_runtimes) {
  if (on_threads()) GTEST_SKIP() << "no runtime";
  runtime other{{.workers = 2}};
  for (const std::size_t capacity : {0u, 3u}) {
    channel<int> there{capacity};
    channel<int> back{capacity};
    auto echo = other.spawn([&] {
      for (const int v : there) static_cast<void>(back.send(-v));
      back.close();
    });
    run([&](crew& all) {
      const int n = scaled(500);
      all.start([&] {
        for (int i = 0; i < n; ++i) static_cast<void>(there.send(i));
        there.close();
      });
      for (int i = 0; i < n; ++i) ASSERT_EQ(back.recv(), -i);
      EXPECT_EQ(back.recv(), std::nullopt);
      all.join();
    });
    echo.join();
  }
}

}  // namespace
}  // namespace ramie
