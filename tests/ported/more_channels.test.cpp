// Programs on owning ends, channels without a bound, timers, and selects on more than channels: after
// crossbeam-channel's list.rs, after.rs, never.rs, ready.rs and select_macro.rs, Boost.Fiber's
// test_buffered_channel_*.cpp and test_unbuffered_channel_*.cpp, Go's time/sleep_test.go and time/tick_test.go.
#include "ported.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace ramie::ported {
namespace {

using clock = std::chrono::steady_clock;

class ends_of_channels : public program {};
INSTANTIATE_TEST_SUITE_P(on, ends_of_channels, on_1_2_and_8_workers(), workers_of);

// crossbeam, list.rs, smoke and len_empty_full: never full.
TEST_P(ends_of_channels, without_a_bound_are_never_full) {
  run([] {
    auto [s, r] = make_channel<int>(unbounded);
    EXPECT_TRUE(r.empty());
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(s.try_send(i), channel_status::ok);
    EXPECT_EQ(r.size(), 1000u);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(r.recv(), i);
    EXPECT_EQ(r.try_recv(), std::nullopt);
  });
}

// crossbeam, list.rs, mpmc: each element arrives once.
TEST_P(ends_of_channels, many_to_many) {
  run([] {
    constexpr int n = 500, parties = 4;
    auto [s, r] = make_channel<int>(unbounded);
    std::vector<std::atomic<int>> seen(n);
    crew all;
    for (int p = 0; p < parties; ++p) {
      all.go([s = s] {
        for (int i = 0; i < n; ++i) EXPECT_EQ(s.send(i), channel_status::ok);
      });
      all.go([&seen, r = r] {
        for (const int v : r) ++seen[static_cast<std::size_t>(v)];
      });
    }
    s.reset();
    all.join();
    for (const auto& times : seen) EXPECT_EQ(times, parties);
  });
}

// crossbeam, list.rs, disconnect_wakes_receiver: the last sender goes while a receiver waits.
TEST_P(ends_of_channels, the_last_sender_wakes_receivers) {
  run([] {
    auto [s, r] = make_channel<int>();
    crew all;
    for (int i = 0; i < 3; ++i) all.go([r = r] { EXPECT_EQ(r.recv(), std::nullopt); });
    until([&] { return r.statistics().waiting_receivers == 3; });
    auto copy = s;
    s.reset();
    EXPECT_FALSE(r.is_closed());
    copy = {};
    EXPECT_TRUE(r.is_closed());
  });
}

// crossbeam, list.rs, drops: what nobody received is destroyed when the receiver goes, not later.
TEST_P(ends_of_channels, elements_go_with_the_last_receiver) {
  run([] {
    auto element = std::make_shared<int>(0);
    auto [s, r] = make_channel<std::shared_ptr<int>>(unbounded);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(s.send(element), channel_status::ok);
    EXPECT_EQ(element.use_count(), 21);
    r.recv();
    r.reset();
    EXPECT_EQ(element.use_count(), 1);
    EXPECT_EQ(s.send(element), channel_status::closed);
    EXPECT_EQ(element.use_count(), 1);
  });
}

// crossbeam, array.rs, channel_through_channel: ends are elements.
TEST_P(ends_of_channels, ends_go_through_channels) {
  run([] {
    constexpr int depth = 20;
    struct link {
      std::unique_ptr<receiver<link>> next;
    };
    auto [s, r] = make_channel<link>(1);
    crew all;
    all.go([s = std::move(s)]() mutable {
      for (int i = 0; i < depth; ++i) {
        auto made = make_channel<link>(1);
        EXPECT_EQ(s.send(link{std::make_unique<receiver<link>>(std::move(made.receiver))}), channel_status::ok);
        s = std::move(made.sender);
      }
    });
    int links = 0;
    receiver<link> from = std::move(r);
    while (auto got = from.recv()) {
      receiver<link> next = std::move(*got->next);
      from = std::move(next);
      ++links;
    }
    EXPECT_EQ(links, depth);
  });
}

// crossbeam, after.rs, fire and capacity: one message, not too early.
TEST_P(ends_of_channels, after_fires_once) {
  run([] {
    const auto start = clock::now();
    EXPECT_EQ(after(1h).try_recv(), std::nullopt);
    auto r = after(300us);
    EXPECT_EQ(r.capacity(), 1u);
    EXPECT_GE(*r.recv(), start + 300us);
    EXPECT_GE(clock::now(), start + 300us);
    EXPECT_EQ(r.try_recv(), std::nullopt);
  });
}

// crossbeam, after.rs, recv_race: of many who wait for one timer, one gets the message.
TEST_P(ends_of_channels, after_serves_one_of_many) {
  run([] {
    std::atomic<int> served{0};
    const auto r = after(100us);
    crew all;
    for (int i = 0; i < 5; ++i)
      all.go([&served, r] {
        if (r.recv()) ++served;
      });
    all.join();
    EXPECT_EQ(served, 1);
  });
}

// crossbeam, after.rs, select: timers of different lengths, the shortest first.
TEST_P(ends_of_channels, the_shortest_timer_is_selected) {
  run([] {
    const auto late = after(1h), soon = after(100us), later = after(2h);
    EXPECT_EQ(select(on_recv(late, never), on_recv(soon, none), on_recv(later, never)), 1u);
  });
}

// crossbeam, never.rs: a case that is switched off is never ready.
TEST_P(ends_of_channels, what_is_switched_off_is_never_ready) {
  run([] {
    channel<int> c{1};
    static_cast<void>(c.send(1));
    event set{event_reset::manual, true};
    EXPECT_EQ(select(when(false, on_recv(c, never)), when(false, on_ready(set, never)), otherwise()), 2u);
    EXPECT_EQ(select(when(true, on_recv(c, none)), when(false, on_ready(set, never))), 0u);
  });
}

// crossbeam, select_macro.rs, the biased form: the first ready case, always.
TEST_P(ends_of_channels, the_first_ready_case_is_taken_in_order) {
  run([] {
    channel<int> a{50}, b{50}, c{50};
    for (int i = 0; i < 50; ++i)
      for (channel<int>* each : {&a, &b, &c}) static_cast<void>(each->send(i));
    std::string order;
    for (int i = 0; i < 150; ++i) {
      const char names[] = {'a', 'b', 'c'};
      order += names[select_in_order(on_recv(a, none), on_recv(b, none), on_recv(c, none))];
    }
    EXPECT_EQ(order, std::string(50, 'a') + std::string(50, 'b') + std::string(50, 'c'));
  });
}

// crossbeam, select.rs, smoke2, as values: the outcome of whichever comes.
TEST_P(ends_of_channels, outcomes_come_as_values) {
  run([] {
    channel<int> numbers;
    channel<std::string> words;
    crew all;
    all.go([&] {
      static_cast<void>(numbers.send(1));
      static_cast<void>(words.send("two"));
      numbers.close();
    });
    std::string got;
    for (bool open = true; open;) {
      auto value = select_value(on_recv(numbers), on_recv(words));
      if (value.index() == 1) got += *std::get<1>(value);
      else if (const auto n = std::get<0>(value)) got += std::to_string(*n);
      else open = false;
    }
    EXPECT_EQ(got, "1two");
  });
}

// Boost.Fiber, test_buffered_channel_post.cpp, test_moveonly and test_rangefor.
TEST_P(ends_of_channels, carry_what_is_only_moved) {
  run([] {
    auto [s, r] = make_channel<std::unique_ptr<int>>(4);
    crew all;
    all.go([s = std::move(s)] {
      for (int i = 1; i <= 5; ++i) EXPECT_EQ(s.send(std::make_unique<int>(i)), channel_status::ok);
    });
    int sum = 0;
    for (const auto& p : r) sum += *p;
    EXPECT_EQ(sum, 15);
  });
}

// Boost.Fiber, test_unbuffered_channel_post.cpp, test_push_wait_for and test_pop_wait_until: late, closed, done.
TEST_P(ends_of_channels, tell_late_from_closed) {
  run([] {
    auto [s, r] = make_channel<int>();
    std::optional<int> got;
    EXPECT_EQ(s.send_for(1, 100us), channel_status::timeout);
    EXPECT_EQ(r.recv_until(got, std::chrono::system_clock::now() + 100us), channel_status::timeout);
    crew all;
    all.go([s = std::move(s)] { EXPECT_EQ(s.send_for(2, 1h), channel_status::ok); });
    EXPECT_EQ(r.recv_for(got, 1h), channel_status::ok);
    EXPECT_EQ(got, 2);
    EXPECT_EQ(r.recv_for(got, 1h), channel_status::closed);
  });
}

// Go, time/sleep_test.go, TestTimerStopStress and TestReset: a timer that is set again tells the new time alone.
TEST_P(ends_of_channels, timers_are_set_again) {
  run([] {
    timer t{1h};
    for (int i = 0; i < 20; ++i) {
      const auto start = clock::now();
      EXPECT_TRUE(t.reset(50us));
      if (i % 2 != 0) continue;
      EXPECT_GE(*t.channel().recv(), start + 50us);
    }
    t.stop();
    EXPECT_FALSE(t.reset(1us));
  });
}

// Go, time/tick_test.go, TestTickerReset: another period.
TEST_P(ends_of_channels, tickers_are_set_to_another_period) {
  run([] {
    ticker t{100us};
    const auto first = *t.channel().recv();
    EXPECT_GE(*t.channel().recv(), first + 100us);
    const auto start = clock::now();
    EXPECT_TRUE(t.reset(300us));
    const auto again = *t.channel().recv();
    EXPECT_GE(again, start + 300us);
    EXPECT_EQ((*t.channel().recv() - again) % 300us, 0ns);
  });
}

// Go, x/sync/semaphore, TestWeightedDoesntBlockIfTooBig and its use with contexts: a permit or the end, whichever
// comes.
TEST_P(ends_of_channels, a_permit_or_the_end) {
  run([] {
    counting_semaphore<> permits{1};
    event quit;
    std::atomic<int> worked{0};
    crew all;
    for (int i = 0; i < 8; ++i)
      all.go([&] {
        for (bool going = true; going;)
          select(on_ready(quit, [&] { going = false; }), on_acquire(permits, [&] {
                   ++worked;
                   this_fiber::yield();
                   permits.release();
                 }));
      });
    until([&] { return worked > 50; });
    quit.set();
    all.join();
    EXPECT_TRUE(permits.try_acquire());
    EXPECT_FALSE(permits.try_acquire());
  });
}

// Go, x/sync/errgroup, TestSetLimit: so many at once.
TEST_P(ends_of_channels, groups_have_a_limit) {
  run([] {
    std::atomic<int> inside{0}, done{0};
    limited_scope s{3};
    for (int i = 0; i < 30; ++i)
      s.spawn([&] {
        EXPECT_LE(++inside, 3);
        this_fiber::sleep_for(10us);
        --inside;
        ++done;
      });
    s.join();
    EXPECT_EQ(done, 30);
  });
}

}  // namespace
}  // namespace ramie::ported
