#include <ramie/channel/timer.hpp>

#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>
#include <ramie/channel/ticker.hpp>

#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;
using clock = std::chrono::steady_clock;

class timers : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, timers,
                         ::testing::Values(world{1}, world{2}, world{8}, world{1, true}, world{2, true},
                                           world{8, true}),
                         name_of);

TEST_P(timers, are_due_once) {
  run([](crew&) {
    const auto before = clock::now();
    timer t{300us};
    const clock::time_point due = t.channel().recv().value();
    EXPECT_GE(due, before + 300us);
    EXPECT_LE(due, clock::now());
    EXPECT_EQ(t.channel().recv_for(200us), std::nullopt);
    EXPECT_TRUE(t.reset(0s)) << "one that was due can be set again";
    EXPECT_GE(t.channel().recv().value(), due);
  });
}

TEST_P(timers, that_are_reset_tell_the_new_time_only) {
  run([](crew&) {
    for (int i = 0; i < 50; ++i) {
      timer t{std::chrono::microseconds{i}};
      if (i % 2 == 0) this_fiber::yield();
      if (i % 3 == 0) await([&] { return t.channel().size() == 1; });
      const auto before = clock::now();
      EXPECT_TRUE(t.reset(100us));
      EXPECT_GE(t.channel().recv().value(), before + 100us) << "a tick of before the reset";
    }
    timer never{1h};
    EXPECT_TRUE(never.reset(1us));
    EXPECT_TRUE(never.channel().recv().has_value());
  });
}

TEST_P(timers, that_are_stopped_close_their_channel) {
  run([](crew& all) {
    timer t{1h};
    all.start([&] { EXPECT_EQ(t.channel().recv(), std::nullopt); });
    await_receivers(t.channel(), 1);
    t.stop();
    t.stop();
    EXPECT_FALSE(t.reset(1us));
    EXPECT_EQ(t.channel().recv(), std::nullopt);
    all.join();
  });
}

TEST_P(timers, of_a_ticker_go_on_with_another_period) {
  run([](crew&) {
    ticker t{1h};
    const auto before = clock::now();
    EXPECT_TRUE(t.reset(100us));
    const clock::time_point first = t.channel().recv().value();
    EXPECT_GE(first, before + 100us);
    for (int i = 0; i < 5; ++i) EXPECT_EQ((t.channel().recv().value() - first) % 100us, 0ns);
    await([&] { return t.channel().size() == 1; });
    EXPECT_TRUE(t.reset(1h));
    EXPECT_EQ(t.channel().try_recv(), std::nullopt) << "a tick of the former period";
    EXPECT_THROW(t.reset(0s), invalid_argument);
    t.stop();
    EXPECT_FALSE(t.reset(1us));
  });
}

TEST_P(timers, by_after_come_once_and_close) {
  run([](crew&) {
    const auto before = clock::now();
    const auto soon = after(200us);
    const auto later = at(std::chrono::system_clock::now() + 1h);
    EXPECT_EQ(select(on_recv(later, [](auto) { ADD_FAILURE(); }),
                     on_recv(soon, [&](std::optional<clock::time_point> due) { EXPECT_GE(due, before + 200us); })),
              1u);
    EXPECT_EQ(soon.recv(), std::nullopt) << "there is no second time";
    EXPECT_TRUE(after(-1h).recv().has_value());
    EXPECT_TRUE(at(clock::now()).recv().has_value());
  });
}

TEST(timer, by_after_leaves_no_fiber_behind_when_nobody_listens) {
  runtime rt{{.workers = 2}};
  rt.run([&] {
    for (int i = 0; i < 100; ++i) static_cast<void>(after(1h));
    auto kept = after(1h);
    auto copy = kept;
    kept.reset();
    EXPECT_EQ(copy.recv_for(100us), std::nullopt);
    EXPECT_FALSE(copy.is_closed());
  });
  await([&] { return rt.statistics().live == 0; });
}

TEST(timer, is_for_fibers) {
  EXPECT_THROW(timer{1ms}, usage_error);
  EXPECT_THROW(static_cast<void>(after(1ms)), usage_error);
}

TEST(timer, closes_with_its_runtime) {
  receiver<clock::time_point> late;
  {
    runtime rt{{.workers = 2}};
    rt.run([&] { late = after(1h); });
  }
  EXPECT_EQ(late.recv(), std::nullopt);
}

}  // namespace
}  // namespace ramie
