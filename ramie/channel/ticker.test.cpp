#include <ramie/channel/ticker.hpp>

#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>
#include <ramie/fiber/cancellation.hpp>

#include <memory>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;
using clock = ticker::clock;

static_assert(!std::is_copy_constructible_v<ticker> && !std::is_move_constructible_v<ticker>);
static_assert(!std::is_convertible_v<std::chrono::milliseconds, ticker>);

class tickers : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, tickers,
                         ::testing::Values(world{1}, world{2}, world{8}, world{1, true}, world{2, true},
                                           world{8, true}),
                         name_of);

TEST_P(tickers, tick_when_due_and_do_not_drift) {
  run([](crew&) {
    constexpr auto period = 200us;
    const auto before = clock::now();
    ticker t{period};
    EXPECT_EQ(t.channel().capacity(), 1u);
    const clock::time_point first = t.channel().recv().value();
    EXPECT_GE(first, before + period);
    clock::time_point last = first;
    for (int i = 0; i < 20; ++i) {
      if (i == 10) this_fiber::sleep_for(1ms);  // late: some are dropped, the rest keep in step
      const clock::time_point due = t.channel().recv().value();
      EXPECT_GT(due, last);
      EXPECT_LE(due, clock::now());
      EXPECT_EQ((due - first) % period, 0ns);
      last = due;
    }
  });
}

TEST_P(tickers, drop_ticks_that_nobody_takes) {
  run([](crew&) {
    ticker t{50us};
    await([&] { return t.channel().size() == 1; });
    const clock::time_point start = clock::now();
    // Long enough for several more, however busy the machine: a tick of another ticker shows it.
    ticker other{100us};
    for (int i = 0; i < 5; ++i) other.channel().recv();
    EXPECT_EQ(t.channel().size(), 1u);
    EXPECT_LE(t.channel().recv().value(), start) << "the oldest was kept";
  });
}

TEST_P(tickers, are_stopped_once_and_for_all) {
  run([](crew& all) {
    ticker t{1h};
    std::atomic<bool> told{false};
    all.start([&] { told = t.channel().recv() == std::nullopt; });
    await_receivers(t.channel(), 1);
    t.stop();
    await([&] { return told.load(); });
    t.stop();
    EXPECT_TRUE(t.channel().is_closed());
    all.join();

    ticker fast{20us};
    await([&] { return fast.channel().size() == 1; });
    fast.stop();
    EXPECT_TRUE(fast.channel().recv().has_value()) << "one was buffered";
    EXPECT_EQ(fast.channel().recv(), std::nullopt);
  });
}

TEST_P(tickers, serve_ranges_and_selects) {
  run([](crew&) {
    ticker t{50us};
    int n = 0;
    for ([[maybe_unused]] const clock::time_point due : t.channel())
      if (++n == 3) t.stop();
    EXPECT_GE(n, 3);
    EXPECT_LE(n, 4) << "one may have been buffered";

    ticker a{50us};
    ticker b{70us};
    std::vector<int> got(2, 0);
    while (got[0] == 0 || got[1] == 0)
      ++got[select(on_recv(a.channel(), [](auto due) { EXPECT_TRUE(due.has_value()); }),
                   on_recv(b.channel(), [](auto due) { EXPECT_TRUE(due.has_value()); }))];
  });
}

TEST_P(tickers, may_be_made_and_dropped_at_any_time) {
  run([](crew&) {
    for (int i = 0; i < scaled(GetParam().migrate_always ? 30 : 200); ++i) {
      ticker t{std::chrono::microseconds{1 + i % 30}};
      if (i % 3 == 0) t.channel().recv();
      if (i % 3 == 1) this_fiber::yield();
    }
    std::vector<std::unique_ptr<ticker>> many;
    for (int i = 0; i < 50; ++i) many.push_back(std::make_unique<ticker>(100us));
    for (const auto& t : many) EXPECT_TRUE(t->channel().recv().has_value());
  });
}

TEST_P(tickers, go_with_a_fiber_that_is_stopped) {
  run([](crew&) {
    std::atomic<int> ticks{0};
    auto h = spawn([&] {
      ticker t{200us};
      for ([[maybe_unused]] const auto due : t.channel()) ++ticks;
      ADD_FAILURE() << "it is the fiber that was stopped";
    });
    await([&] { return ticks > 2; });
    h.request_stop();
    EXPECT_THROW(h.join(), cancelled);
    EXPECT_THROW(with_timeout(1ms,
                              [&] {
                                ticker t{1h};
                                t.channel().recv();
                              }),
                 timeout_error);
  });
}

TEST_P(tickers, tell_threads_the_time_until_their_runtime_ends) {
  auto rt = std::make_unique<runtime>(GetParam().options());
  std::atomic<channel<clock::time_point>*> ticks{nullptr};
  std::atomic<bool> thread_is_done{false};
  std::atomic<int> seen{0};
  rt->spawn([&] {
      ticker t{100us};
      ticks = &t.channel();
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        // The runtime ends; the channel is closed, in either order.
      }
      shield([&] { await([&] { return thread_is_done.load(); }); });
    }).detach();
  std::thread listener{[&] {
    await([&] { return ticks != nullptr; });
    for ([[maybe_unused]] const auto due : *ticks.load()) ++seen;
    thread_is_done = true;
  }};
  await([&] { return seen >= 3; });
  rt.reset();
  listener.join();
}

TEST(ticker, refuses_periods_that_do_not_pass) {
  run(runtime_options{.workers = 1}, [] {
    EXPECT_EQ(message_of<invalid_argument>([] { ticker t{0ms}; }),
              "ramie: ticker: period is 0 ns; it must be more than 0 ns");
    EXPECT_EQ(message_of<invalid_argument>([] { ticker t{-5ns}; }),
              "ramie: ticker: period is -5 ns; it must be more than 0 ns");
    EXPECT_THROW(ticker{std::chrono::duration<double>{-1.0}}, invalid_argument);
    ticker never{std::chrono::hours::max()};
    EXPECT_EQ(never.channel().recv_for(1us), std::nullopt);
    ticker seldom{std::chrono::duration<double>{1e6}};
    EXPECT_EQ(seldom.channel().try_recv(), std::nullopt);
    ticker fractional{std::chrono::duration<double, std::micro>{30.5}};
    EXPECT_TRUE(fractional.channel().recv().has_value());
  });
}

TEST(ticker, is_for_fibers) { EXPECT_THROW(ticker{1ms}, usage_error); }

}  // namespace
}  // namespace ramie
