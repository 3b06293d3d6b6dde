#include <ramie/sync/event.hpp>

#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>

namespace ramie {
namespace {

using namespace sync_tests;

class events : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, events, settings(), ::testing::PrintToStringParamName());

TEST_P(events, let_all_go_on_while_they_are_set) {
  runtime rt{options()};
  for (int round = 0; round < rounds(200); ++round) {
    event e;
    int written = 0;
    crowd(rt, 5, 1, [&](int who) {
      if (who == 0) {
        written = 1;
        e.set();
      } else {
        e.wait();
        EXPECT_EQ(written, 1);
      }
    });
    EXPECT_TRUE(e.is_set());
    EXPECT_TRUE(e.try_wait());
    e.wait();
    e.reset();
    EXPECT_FALSE(e.is_set());
    EXPECT_FALSE(e.try_wait());
  }
}

TEST_P(events, that_reset_themselves_let_one_go_on) {
  runtime rt{options()};
  event e{event_reset::automatic};
  event gone{event_reset::automatic};
  std::atomic<int> passed{0};
  const int turns = rounds(500);
  crowd(rt, 4, 1, [&](int who) {
    if (who == 0) {
      for (int i = 1; i <= 4 * turns; ++i) {
        e.set();
        gone.wait();
        EXPECT_EQ(passed, i);
      }
    } else {
      for (int i = 0; i < turns; ++i) {
        e.wait();
        ++passed;
        gone.set();
      }
    }
  });
  EXPECT_FALSE(e.is_set());
}

TEST_P(events, that_reset_themselves_remember_one_setting) {
  const auto use = [] {
    event e{event_reset::automatic, true};
    e.set();
    EXPECT_TRUE(e.is_set());
    EXPECT_TRUE(e.try_wait());
    EXPECT_FALSE(e.try_wait());
    e.set();
    e.wait();
    EXPECT_FALSE(e.is_set());
    e.set();
    e.reset();
    EXPECT_FALSE(e.wait_for(1ms));
  };
  use();
  in_runtime(use);
}

TEST_P(events, wait_no_longer_than_told) {
  const auto use = [] {
    for (const event_reset how : {event_reset::manual, event_reset::automatic}) {
      event e{how};
      EXPECT_FALSE(e.wait_for(1ms));
      EXPECT_FALSE(e.wait_until(std::chrono::system_clock::now() + 1ms));
      std::thread other{[&] { e.set(); }};
      EXPECT_TRUE(e.wait_for(1h));
      other.join();
    }
  };
  use();
  in_runtime(use);
}

TEST_P(events, are_cancelled_and_lose_no_setting) {
  in_runtime([] {
    event m;
    expect_cancelled([&] { m.wait(); });
    event e{event_reset::automatic};
    expect_cancelled([&] { e.wait(); });
    for (int round = 0; round < rounds(500); ++round) {
      bool got = false;
      auto h = spawn([&] {
        e.wait();
        got = true;
      });
      for (int i = 0; i < round % 4; ++i) this_fiber::yield();
      std::thread setter{[&] { e.set(); }};
      h.request_stop();
      setter.join();
      try {
        h.join();
      } catch (const cancelled&) {
      }
      ASSERT_NE(got, e.try_wait());
    }
  });
}

TEST_P(events, may_be_destroyed_by_a_waiter) {
  runtime rt{options()};
  for (int round = 0; round < rounds(1'000); ++round) {
    auto e = std::make_unique<event>(round % 2 == 0 ? event_reset::manual : event_reset::automatic);
    event* raw = e.get();
    auto h = rt.spawn([owned = std::move(e), round]() mutable {
      if (round % 3 == 0) await([&] { return owned->try_wait(); });
      else owned->wait();
      owned.reset();
    });
    raw->set();
    h.join();
  }
}

}  // namespace
}  // namespace ramie
