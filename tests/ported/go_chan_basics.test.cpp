// After the tests of Go's channels in runtime/chan_test.go.
#include "ported.hpp"

#include <array>
#include <atomic>
#include <optional>
#include <variant>

namespace ramie::ported {
namespace {

class go_chan : public program {};
INSTANTIATE_TEST_SUITE_P(on, go_chan, on_1_2_and_8_workers(), workers_of);

// runtime/chan_test.go, TestChan: a receive from an empty channel waits.
TEST_P(go_chan, receiving_from_an_empty_channel_waits) {
  run([] {
    for (const std::size_t capacity : {0u, 1u, 10u}) {
      channel<int> c{capacity};
      std::atomic<bool> received{false};
      crew all;
      all.go([&] {
        EXPECT_EQ(c.recv(), 7);
        received = true;
      });
      until([&] { return c.statistics().waiting_receivers == 1; });
      EXPECT_FALSE(received);
      EXPECT_EQ(c.send(7), channel_status::ok);
    }
  });
}

// TestChan: a non-blocking receive from an empty channel finds nothing, alone and in a select.
TEST_P(go_chan, receiving_without_waiting_finds_nothing) {
  run([] {
    for (std::size_t capacity = 0; capacity < 8; ++capacity) {
      channel<int> c{capacity};
      std::optional<int> got;
      EXPECT_EQ(c.try_recv(got), channel_status::empty);
      EXPECT_EQ(select(on_recv(c, never), otherwise()), 1u);
    }
  });
}

// TestChan: a send to a full channel waits until there is room.
TEST_P(go_chan, sending_to_a_full_channel_waits) {
  run([] {
    for (const std::size_t capacity : {0u, 1u, 10u}) {
      channel<int> c{capacity};
      for (std::size_t i = 0; i < capacity; ++i) static_cast<void>(c.send(0));
      std::atomic<int> sent{0};
      crew all;
      all.go([&] {
        static_cast<void>(c.send(0));
        sent = 1;
      });
      until([&] { return c.statistics().waiting_senders == 1; });
      EXPECT_EQ(sent, 0);
      EXPECT_EQ(c.recv(), 0);
    }
  });
}

// TestChan: a non-blocking send to a full channel fails, alone and in a select.
TEST_P(go_chan, sending_without_waiting_finds_no_room) {
  run([] {
    for (const std::size_t capacity : {0u, 1u, 10u}) {
      channel<int> c{capacity};
      for (std::size_t i = 0; i < capacity; ++i) EXPECT_EQ(c.try_send(0), channel_status::ok);
      EXPECT_EQ(c.try_send(0), channel_status::full);
      EXPECT_EQ(select(on_send(c, 0, never), otherwise()), 1u);
    }
  });
}

// TestChan: elements buffered before the close are received, then every receive finds the channel closed.
TEST_P(go_chan, a_closed_channel_is_drained_first) {
  run([] {
    channel<int> c{100};
    for (int i = 0; i < 100; ++i) static_cast<void>(c.send(i));
    c.close();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(c.recv(), i);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(c.recv(), std::nullopt);
  });
}

// TestChan: a close ends a receive that waits.
TEST_P(go_chan, a_close_ends_receives_that_wait) {
  run([] {
    channel<int> c;
    crew all;
    for (int i = 0; i < 4; ++i) all.go([&] { EXPECT_EQ(c.recv(), std::nullopt); });
    until([&] { return c.statistics().waiting_receivers == 4; });
    c.close();
  });
}

// TestChan: 100 integers arrive in the order in which they were sent.
TEST_P(go_chan, keeps_the_order) {
  run([] {
    for (const std::size_t capacity : {0u, 3u, 100u}) {
      channel<int> c{capacity};
      crew all;
      all.go([&] {
        for (int i = 0; i < 100; ++i) static_cast<void>(c.send(i));
      });
      for (int i = 0; i < 100; ++i) EXPECT_EQ(c.recv(), i);
    }
  });
}

// TestChan: many senders and many receivers; each value arrives as often as it was sent.
TEST_P(go_chan, loses_nothing_between_many) {
  run([] {
    constexpr int parties = 4, each = 500;
    for (const std::size_t capacity : {0u, 1u, 7u}) {
      channel<int> c{capacity};
      channel<std::array<int, each>> counts;
      crew all;
      for (int p = 0; p < parties; ++p) {
        all.go([&] {
          for (int i = 0; i < each; ++i) static_cast<void>(c.send(i));
        });
        all.go([&] {
          std::array<int, each> seen{};
          for (int i = 0; i < each; ++i) ++seen[static_cast<std::size_t>(*c.recv())];
          static_cast<void>(counts.send(seen));
        });
      }
      std::array<int, each> sum{};
      for (int p = 0; p < parties; ++p) {
        const auto one = *counts.recv();
        for (std::size_t i = 0; i < each; ++i) sum[i] += one[i];
      }
      for (const int n : sum) EXPECT_EQ(n, parties);
    }
  });
}

// TestChan: length and capacity of a buffer that is half full.
TEST_P(go_chan, tells_its_length_and_capacity) {
  run([] {
    channel<int> c{10};
    for (int i = 0; i < 5; ++i) static_cast<void>(c.send(i));
    EXPECT_EQ(c.size(), 5u);
    EXPECT_EQ(c.capacity(), 10u);
    EXPECT_EQ(channel<int>{}.capacity(), 0u);
  });
}

// TestNonblockRecvRace: a non-blocking receive that races with a close gets what was sent before the close.
TEST_P(go_chan, receiving_without_waiting_gets_what_was_sent_before_the_close) {
  run([] {
    for (int i = 0; i < 500; ++i) {
      channel<int> c{1};
      static_cast<void>(c.send(1));
      crew all;
      all.go(
          [&] { EXPECT_EQ(select(on_recv(c, [](std::optional<int> v) { EXPECT_EQ(v, 1); }), otherwise(never)), 0u); });
      c.close();
    }
  });
}

// TestNonblockSelectRace: one of two channels always has something.
TEST_P(go_chan, a_select_with_default_sees_that_one_is_ready) {
  run([] {
    for (int i = 0; i < 500; ++i) {
      channel<int> a{1}, b{1};
      static_cast<void>(a.send(1));
      crew all;
      all.go([&] { select(on_recv(a, none), on_recv(b, none), otherwise(never)); });
      static_cast<void>(b.send(1));
      static_cast<void>(a.try_recv());
    }
  });
}

// The same with the cases in the other order, which passes only if all cases are looked at at once.
TEST_P(go_chan, a_select_with_default_sees_that_one_is_ready_in_either_order) {
  run([] {
    for (int i = 0; i < 500; ++i) {
      channel<int> a{1}, b{1};
      static_cast<void>(a.send(1));
      crew all;
      all.go([&] { select(on_recv(b, none), on_recv(a, none), otherwise(never)); });
      static_cast<void>(b.send(1));
      static_cast<void>(a.try_recv());
    }
  });
}

// TestNonblockSelectRace2: the same, but the second channel becomes ready by its close.
TEST_P(go_chan, a_select_with_default_sees_a_close) {
  run([] {
    for (int i = 0; i < 500; ++i) {
      channel<int> a{1}, b;
      static_cast<void>(a.send(1));
      crew all;
      all.go([&] {
        if (i % 2 == 0) select(on_recv(a, none), on_recv(b, none), otherwise(never));
        else select(on_recv(b, none), on_recv(a, none), otherwise(never));
      });
      b.close();
      static_cast<void>(a.try_recv());
    }
  });
}

// TestSelfSelect: two fibers send to and receive from one channel in each select; none meets itself.
TEST_P(go_chan, a_select_does_not_meet_itself) {
  run([] {
    for (const std::size_t capacity : {0u, 10u}) {
      channel<int> c{capacity};
      crew all;
      for (int p = 0; p < 2; ++p)
        all.go([&, p] {
          const auto check = [&](std::optional<int> v) {
            if (capacity == 0) {
              EXPECT_NE(v, p);
            }
          };
          for (int i = 0; i < 500; ++i) {
            if (p == 0 || i % 2 == 0) select(on_send(c, p, none), on_recv(c, check));
            else select(on_recv(c, check), on_send(c, p, none));
          }
        });
    }
  });
}

// TestSelectStress: four channels, each with a sender and a receiver of its own, and selects over all four at both
// ends.
TEST_P(go_chan, selects_and_single_operations_share_channels) {
  run([] {
    constexpr int each = 300;
    std::array<channel<int>, 4> c{channel<int>{0}, channel<int>{0}, channel<int>{2}, channel<int>{3}};
    crew all;
    for (auto& one : c) {
      all.go([&one] {
        for (int i = 0; i < each; ++i) static_cast<void>(one.send(0));
      });
      all.go([&one] {
        for (int i = 0; i < each; ++i) EXPECT_TRUE(one.recv());
      });
    }
    all.go([&] {
      std::array<int, 4> sent{};
      const auto count = [&](std::size_t k) { return [&sent, k](channel_status) { ++sent[k]; }; };
      for (int i = 0; i < 4 * each; ++i)
        select(when(sent[0] < each, on_send(c[0], 0, count(0))), when(sent[1] < each, on_send(c[1], 0, count(1))),
               when(sent[2] < each, on_send(c[2], 0, count(2))), when(sent[3] < each, on_send(c[3], 0, count(3))));
    });
    all.go([&] {
      std::array<int, 4> got{};
      const auto count = [&](std::size_t k) { return [&got, k](std::optional<int>) { ++got[k]; }; };
      for (int i = 0; i < 4 * each; ++i)
        select(when(got[0] < each, on_recv(c[0], count(0))), when(got[1] < each, on_recv(c[1], count(1))),
               when(got[2] < each, on_recv(c[2], count(2))), when(got[3] < each, on_recv(c[3], count(3))));
    });
    all.join();
    for (auto& one : c) EXPECT_EQ(one.size(), 0u);
  });
}

// TestSelectFairness: of two channels that are always ready, neither is taken nearly always.
TEST_P(go_chan, a_select_is_fair_among_ready_channels) {
  run([] {
    constexpr int trials = 10'000;
    channel<int> a{trials + 1}, b{trials + 1};
    for (int i = 0; i <= trials; ++i) {
      static_cast<void>(a.send(1));
      static_cast<void>(b.send(1));
    }
    int first = 0;
    for (int i = 0; i < trials; ++i) first += select(on_recv(a, none), on_recv(b, none)) == 0 ? 1 : 0;
    EXPECT_GT(first, trials * 2 / 5);
    EXPECT_LT(first, trials * 3 / 5);
  });
}

// TestPseudoRandomSend: which of two sends on one channel is done is random, also when the select has to wait.
TEST_P(go_chan, a_select_that_waits_is_fair_among_sends_on_one_channel) {
  run([] {
    for (const std::size_t capacity : {0u, 100u}) {
      channel<int> c{capacity};
      constexpr int n = 200;
      int ones = 0;
      crew all;
      all.go([&] {
        for (int i = 0; i < n; ++i) {
          this_fiber::yield();
          ones += *c.recv();
        }
      });
      for (int i = 0; i < n; ++i) select(on_send(c, 0, none), on_send(c, 1, none));
      all.join();
      EXPECT_GT(ones, n / 10);
      EXPECT_LT(ones, n - n / 10);
    }
  });
}

// TestChanSendInterface: values of a variant type.
TEST_P(go_chan, sends_values_of_several_types) {
  run([] {
    using any = std::variant<std::monostate, int, std::string>;
    channel<any> c{2};
    EXPECT_EQ(c.send(any{}), channel_status::ok);
    EXPECT_EQ(select(on_send(c, any{1}, none), otherwise(never)), 0u);
    EXPECT_EQ(select(on_send(c, any{std::string{"full"}}, never), otherwise()), 1u);
    EXPECT_EQ(c.recv()->index(), 0u);
    EXPECT_EQ(std::get<int>(*c.recv()), 1);
  });
}

// TestMultiConsumer: many consumers between a producer and a checker; all that goes in comes out.
TEST_P(go_chan, feeds_many_consumers) {
  run([] {
    constexpr int workers = 23, items = 2000;
    constexpr std::array primes{2, 3, 7, 11, 13, 17, 19, 23, 27, 31};
    channel<int> feed{items}, results{items};
    wait_group busy{workers};
    crew all;
    for (int w = 0; w < workers; ++w)
      all.go([&] {
        for (const int v : feed) {
          if (v % 3 == 0) this_fiber::yield();
          static_cast<void>(results.send(v));
        }
        busy.done();
      });
    long expected = 0, sum = 0;
    for (int i = 0; i < items; ++i) {
      expected += primes[static_cast<std::size_t>(i) % primes.size()];
      static_cast<void>(feed.send(primes[static_cast<std::size_t>(i) % primes.size()]));
    }
    feed.close();
    busy.wait();
    results.close();
    int n = 0;
    for (const int v : results) {
      ++n;
      sum += v;
    }
    EXPECT_EQ(n, items);
    EXPECT_EQ(sum, expected);
  });
}

// TestSelectDuplicateChannel: a select with one channel twice leaves no operation behind when another case is served.
TEST_P(go_chan, a_select_may_name_a_channel_twice) {
  run([] {
    channel<int> c, d, e;
    crew all;
    all.go([&] {
      select(on_recv(c, never), on_recv(c, never), on_recv(d, none));
      static_cast<void>(e.send(9));
    });
    until([&] { return c.statistics().waiting_receivers == 2; });
    all.go([&] { EXPECT_EQ(c.recv(), 8); });
    static_cast<void>(d.send(7));
    EXPECT_EQ(e.recv(), 9);
    EXPECT_EQ(c.send(8), channel_status::ok);
  });
}

}  // namespace
}  // namespace ramie::ported
