// After the tests of crossbeam-channel: array.rs, zero.rs, select.rs, select_macro.rs, tick.rs, iter.rs,
// same_channel.rs.
#include "ported.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <optional>

namespace ramie::ported {
namespace {

using clock = std::chrono::steady_clock;

class crossbeam : public program {};
INSTANTIATE_TEST_SUITE_P(on, crossbeam, on_1_2_and_8_workers(), workers_of);

// array.rs, smoke
TEST_P(crossbeam, smoke) {
  run([] {
    channel<int> c{1};
    static_cast<void>(c.send(7));
    EXPECT_EQ(c.try_recv(), 7);
    static_cast<void>(c.send(8));
    EXPECT_EQ(c.recv(), 8);
    EXPECT_EQ(c.try_recv(), std::nullopt);
    EXPECT_EQ(c.recv_for(1ms), std::nullopt);
  });
}

// array.rs, len_empty_full
TEST_P(crossbeam, length_empty_full) {
  run([] {
    channel<int> c{2};
    EXPECT_TRUE(c.empty());
    static_cast<void>(c.send(1));
    EXPECT_EQ(c.size(), 1u);
    static_cast<void>(c.send(2));
    EXPECT_EQ(c.size(), c.capacity());
    c.recv();
    EXPECT_EQ(c.size(), 1u);
  });
}

// array.rs, try_recv
TEST_P(crossbeam, try_recv_tells_empty_from_closed) {
  run([] {
    channel<int> c{100};
    std::optional<int> got;
    EXPECT_EQ(c.try_recv(got), channel_status::empty);
    static_cast<void>(c.send(7));
    c.close();
    EXPECT_EQ(c.try_recv(got), channel_status::ok);
    EXPECT_EQ(got, 7);
    EXPECT_EQ(c.try_recv(got), channel_status::closed);
  });
}

// array.rs, recv_timeout: a timeout is distinguished from a close.
TEST_P(crossbeam, receiving_in_time_tells_timeout_from_closed) {
  run([] {
    channel<int> c{1};
    std::optional<int> got;
    EXPECT_EQ(c.recv_until(got, clock::now() + 1ms), channel_status::timeout);
    crew all;
    all.go([&] { static_cast<void>(c.send(7)); });
    EXPECT_EQ(c.recv_until(got, clock::now() + 1h), channel_status::ok);
    EXPECT_EQ(got, 7);
    all.go([&] { c.close(); });
    EXPECT_EQ(c.recv_until(got, clock::now() + 1h), channel_status::closed);
  });
}

// array.rs, try_send
TEST_P(crossbeam, try_send_tells_full_from_closed) {
  run([] {
    channel<int> c{1};
    EXPECT_EQ(c.try_send(1), channel_status::ok);
    EXPECT_EQ(c.try_send(2), channel_status::full);
    c.recv();
    EXPECT_EQ(c.try_send(3), channel_status::ok);
    c.close();
    EXPECT_EQ(c.try_send(4), channel_status::closed);
  });
}

// array.rs, send_timeout: the value comes back.
TEST_P(crossbeam, sending_in_time_leaves_the_value_when_it_fails) {
  run([] {
    channel<std::unique_ptr<int>> c{1};
    static_cast<void>(c.send(nullptr));
    auto mine = std::make_unique<int>(5);
    EXPECT_EQ(c.send_for(std::move(mine), 1ms), channel_status::timeout);
    ASSERT_NE(mine, nullptr);
    c.close();
    EXPECT_EQ(c.send_for(std::move(mine), 1h), channel_status::closed);
    EXPECT_EQ(*mine, 5);
  });
}

// array.rs, send_after_disconnect and recv_after_disconnect
TEST_P(crossbeam, after_the_close_nothing_is_sent_and_the_rest_received) {
  run([] {
    channel<int> c{100};
    for (int i = 1; i <= 3; ++i) static_cast<void>(c.send(i));
    c.close();
    EXPECT_EQ(c.send(4), channel_status::closed);
    for (int i = 1; i <= 3; ++i) EXPECT_EQ(c.recv(), i);
    EXPECT_EQ(c.recv(), std::nullopt);
  });
}

// array.rs and zero.rs, disconnect_wakes_sender
TEST_P(crossbeam, a_close_wakes_a_sender) {
  run([] {
    for (const std::size_t capacity : {0u, 1u}) {
      channel<int> c{capacity};
      for (std::size_t i = 0; i < capacity; ++i) static_cast<void>(c.send(0));
      crew all;
      all.go([&] { EXPECT_EQ(c.send(1), channel_status::closed); });
      until([&] { return c.statistics().waiting_senders == 1; });
      c.close();
    }
  });
}

// array.rs, spsc
TEST_P(crossbeam, one_to_one) {
  run([] {
    for (const std::size_t capacity : {0u, 3u}) {
      constexpr int n = 5000;
      channel<int> c{capacity};
      crew all;
      all.go([&] {
        for (int i = 0; i < n; ++i) EXPECT_EQ(c.recv(), i);
        EXPECT_EQ(c.recv(), std::nullopt);
      });
      for (int i = 0; i < n; ++i) static_cast<void>(c.send(i));
      c.close();
    }
  });
}

// array.rs, mpmc
TEST_P(crossbeam, many_to_many) {
  run([] {
    for (const std::size_t capacity : {0u, 3u}) {
      constexpr int n = 500, parties = 4;
      channel<int> c{capacity};
      std::vector<std::atomic<int>> seen(n);
      crew all;
      for (int p = 0; p < parties; ++p) {
        all.go([&] {
          for (int i = 0; i < n; ++i) ++seen[static_cast<std::size_t>(*c.recv())];
        });
        all.go([&] {
          for (int i = 0; i < n; ++i) static_cast<void>(c.send(i));
        });
      }
      all.join();
      for (const auto& times : seen) EXPECT_EQ(times, parties);
    }
  });
}

// array.rs, stress_oneshot
TEST_P(crossbeam, many_channels_of_one_use) {
  run([] {
    for (int i = 0; i < 1000; ++i) {
      channel<int> c{1};
      crew all;
      all.go([&] { EXPECT_EQ(c.recv(), 0); });
      all.go([&] { static_cast<void>(c.send(0)); });
    }
  });
}

// array.rs, stress_timeout_two_threads
TEST_P(crossbeam, both_sides_give_up_and_try_again) {
  run([] {
    constexpr int n = 100;
    channel<int> c{2};
    crew all;
    all.go([&] {
      for (int i = 0; i < n; ++i) {
        if (i % 2 == 0) this_fiber::sleep_for(100us);
        while (c.send_for(i, 50us) != channel_status::ok) {
        }
      }
    });
    for (int i = 0; i < n; ++i) {
      if (i % 2 == 0) this_fiber::sleep_for(100us);
      std::optional<int> got;
      while (!(got = c.recv_for(50us))) {
      }
      EXPECT_EQ(got, i);
    }
  });
}

// array.rs, drops: what is left in the buffer is destroyed once.
TEST_P(crossbeam, elements_are_destroyed_once) {
  run([] {
    const auto alive = std::make_shared<int>(0);
    {
      channel<std::shared_ptr<int>> c{50};
      crew all;
      all.go([&] {
        for (int i = 0; i < 200; ++i) c.recv();
      });
      for (int i = 0; i < 200 + 30; ++i) static_cast<void>(c.send(alive));
      all.join();
      EXPECT_EQ(alive.use_count(), 31);
    }
    EXPECT_EQ(alive.use_count(), 1);
  });
}

// array.rs, linearizable: after a send, a receive does not wait.
TEST_P(crossbeam, what_was_sent_can_be_taken_at_once) {
  run([] {
    channel<int> c{4};
    crew all;
    for (int p = 0; p < 4; ++p)
      all.go([&] {
        for (int i = 0; i < 1000; ++i) {
          static_cast<void>(c.send(0));
          EXPECT_TRUE(c.try_recv());
        }
      });
  });
}

// array.rs, fairness_duplicates: ready channels named several times each get their share.
TEST_P(crossbeam, ready_channels_get_shares_as_often_as_they_are_named) {
  run([] {
    constexpr int n = 10'000;
    channel<int> a{n}, b{n};
    for (int i = 0; i < n; ++i) {
      static_cast<void>(a.send(0));
      static_cast<void>(b.send(0));
    }
    std::array<int, 5> hits{};
    for (int i = 0; i < n; ++i)
      ++hits[select(on_recv(a, none), on_recv(a, none), on_recv(a, none), on_recv(b, none), on_recv(b, none))];
    for (const int h : hits) EXPECT_GE(h, n / 10);
  });
}

// zero.rs, fairness_duplicates, where the select has to wait.
TEST_P(crossbeam, cases_that_wait_on_one_channel_each_get_a_share) {
  run([] {
    constexpr int n = 600;
    channel<int> c;
    std::array<int, 3> hits{};
    crew all;
    all.go([&] {
      for (int i = 0; i < n; ++i) {
        this_fiber::yield();
        static_cast<void>(c.send(i));
      }
    });
    for (int i = 0; i < n; ++i) ++hits[select(on_recv(c, none), on_recv(c, none), on_recv(c, none))];
    for (const int h : hits) EXPECT_GE(h, n / 10);
  });
}

// array.rs, recv_in_send: the function of a case may use its channel.
TEST_P(crossbeam, functions_of_cases_may_use_the_channel) {
  run([] {
    channel<int> c{1};
    select(on_send(c, 1, [&](channel_status) { EXPECT_EQ(c.recv(), 1); }));
    static_cast<void>(c.send(2));
    select(on_recv(c, [&](std::optional<int> v) { static_cast<void>(c.send(*v + 1)); }));
    EXPECT_EQ(c.recv(), 3);
  });
}

// array.rs, channel_through_channel
TEST_P(crossbeam, channels_go_through_channels) {
  run([] {
    struct link;
    using next = std::shared_ptr<link>;
    struct link {
      channel<next> c{1};
    };
    auto first = std::make_shared<link>();
    crew all;
    all.go([at = first]() mutable {
      for (int i = 0; i < 300; ++i) {
        auto after = std::make_shared<link>();
        static_cast<void>(at->c.send(after));
        at = after;
      }
      at->c.close();
    });
    int n = 0;
    next at = first;
    while (std::optional<next> after = at->c.recv()) {
      ++n;
      at = std::move(*after);
    }
    EXPECT_EQ(n, 300);
  });
}

// select.rs, smoke1: the one of several that is ready.
TEST_P(crossbeam, the_ready_one_of_a_list_is_taken) {
  run([] {
    std::vector<std::unique_ptr<channel<int>>> c;
    case_list list;
    std::optional<int> got;
    for (int i = 0; i < 5; ++i) {
      c.push_back(std::make_unique<channel<int>>(1));
      list.add(on_recv(*c.back(), got));
    }
    static_cast<void>(c[4]->send(5));
    EXPECT_EQ(select(list), 4u);
    EXPECT_EQ(got, 5);
  });
}

// select.rs, disconnected: a close that comes later ends the select.
TEST_P(crossbeam, a_close_that_comes_later_is_selected) {
  run([] {
    channel<int> a, b;
    crew all;
    all.go([&] {
      this_fiber::sleep_for(1ms);
      a.close();
    });
    EXPECT_EQ(select(on_recv(a, [](std::optional<int> v) { EXPECT_FALSE(v); }), on_recv(b, never), on_timeout(1h)), 0u);
  });
}

// select.rs, default and timeout without cases.
TEST_P(crossbeam, a_list_without_cases_knows_default_and_timeout) {
  run([] {
    case_list list;
    EXPECT_EQ(select(list, otherwise()), 0u);
    EXPECT_EQ(select(list, on_timeout(1ms)), 0u);
  });
}

// select.rs, both_ready
TEST_P(crossbeam, a_send_and_a_receive_are_both_ready) {
  run([] {
    channel<int> a, b;
    crew all;
    all.go([&] {
      this_fiber::sleep_for(200us);
      static_cast<void>(a.send(1));
      EXPECT_EQ(b.recv(), 2);
    });
    for (int i = 0; i < 2; ++i) select(on_recv(a, [](std::optional<int> v) { EXPECT_EQ(v, 1); }), on_send(b, 2, none));
  });
}

// select.rs, loop_try: a polling select meets a waiting one.
TEST_P(crossbeam, polling_meets_waiting) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      channel<int> c, end;
      crew all;
      all.go([&] {
        while (select(on_send(c, 1, none), otherwise()) == 1) this_fiber::yield();
      });
      all.go([&] { select(on_recv(c, [](std::optional<int> v) { EXPECT_EQ(v, 1); }), on_recv(end, never)); });
    }
  });
}

// select.rs, cloning and send1: two selects, one sends and one receives, each round.
TEST_P(crossbeam, selects_meet_selects) {
  run([] {
    constexpr int n = 500;
    channel<int> a, b;
    crew all;
    all.go([&] {
      for (int i = 0; i < n; ++i) select(on_send(a, i, none), on_send(b, i, none));
    });
    for (int i = 0; i < n; ++i) {
      std::optional<int> got;
      select(on_recv(b, got), on_recv(a, got));
      EXPECT_EQ(got, i);
    }
  });
}

// select.rs, reentrant: a select within the function of a case.
TEST_P(crossbeam, selects_may_be_nested) {
  run([] {
    channel<int> a{1}, b{1};
    static_cast<void>(a.send(1));
    static_cast<void>(b.send(2));
    int got = 0;
    select(on_recv(a, [&](std::optional<int> v) {
      select(on_recv(a, never), on_recv(b, [&](std::optional<int> w) { got = *v * 10 + *w; }));
    }));
    EXPECT_EQ(got, 12);
  });
}

// select.rs, linearizable with selects
TEST_P(crossbeam, what_was_sent_can_be_selected_at_once) {
  run([] {
    for (const std::size_t capacity : {1u, 4u}) {
      channel<int> c{4 * capacity};
      crew all;
      for (int p = 0; p < 4; ++p)
        all.go([&] {
          for (int i = 0; i < 500; ++i) {
            static_cast<void>(c.send(0));
            select(on_recv(c, none), otherwise(never));
          }
        });
    }
  });
}

// tick.rs, fire and intervals
TEST_P(crossbeam, ticks_come_at_their_times) {
  run([] {
    EXPECT_EQ(ticker{1h}.channel().try_recv(), std::nullopt);
    const auto start = clock::now();
    ticker t{2ms};
    for (int i = 1; i <= 3; ++i) {
      const auto due = t.channel().recv();
      ASSERT_TRUE(due);
      EXPECT_GE(*due - start, i * 2ms);
      EXPECT_GE(clock::now(), *due);
    }
  });
}

// tick.rs, recv_two: two receivers share the ticks.
TEST_P(crossbeam, ticks_are_shared) {
  run([] {
    ticker t{1ms};
    crew all;
    for (int p = 0; p < 2; ++p)
      all.go([&] {
        for (int i = 0; i < 5; ++i) EXPECT_TRUE(select(on_recv(t.channel(), none)) == 0);
      });
  });
}

// iter.rs: a loop over a channel ends with its close; it may be left early.
TEST_P(crossbeam, loops_over_channels_end) {
  run([] {
    channel<int> c{3};
    crew all;
    all.go([&] {
      for (int i = 0; i < 10; ++i) static_cast<void>(c.send(i));
      c.close();
    });
    int sum = 0;
    for (const int v : c) {
      sum += v;
      if (v == 4) break;
    }
    EXPECT_EQ(sum, 10);
    for (const int v : c) sum += v;
    EXPECT_EQ(sum, 45);
  });
}

// golang.rs, mutex by a channel of one place
TEST_P(crossbeam, a_channel_of_one_place_is_a_lock) {
  run([] {
    channel<int> lock{1};
    int inside = 0, total = 0;
    {
      crew all;
      for (int p = 0; p < 4; ++p)
        all.go([&] {
          for (int i = 0; i < 200; ++i) {
            static_cast<void>(lock.send(0));
            EXPECT_EQ(++inside, 1);
            ++total;
            if (i % 50 == 0) this_fiber::yield();
            --inside;
            lock.recv();
          }
        });
    }
    EXPECT_EQ(total, 800);
  });
}

// never.rs: a case that is left out never fires.
TEST_P(crossbeam, what_is_left_out_never_fires) {
  run([] {
    channel<int> full{1};
    static_cast<void>(full.send(1));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(select(when(false, on_recv(full, never)), on_timeout(1us)), 1u);
    EXPECT_EQ(select(when(true, on_recv(full, none)), on_timeout(1h)), 0u);
  });
}

}  // namespace
}  // namespace ramie::ported
