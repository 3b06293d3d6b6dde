// After the programs of Go's test/chan, and some of test.
#include "ported.hpp"

#include <memory>
#include <optional>

namespace ramie::ported {
namespace {

class go_program : public program {};
INSTANTIATE_TEST_SUITE_P(on, go_program, on_1_2_and_8_workers(), workers_of);

// test/chan/doubleselect.go: a select that waits twice on one channel is served once for each element.
TEST_P(go_program, a_select_is_served_once) {
  run([] {
    constexpr int n = 1000;
    channel<int> c1, c2, c3, c4;
    channel<int> merged;
    crew all;
    all.go([&] {
      for (int i = 0; i < n; ++i)
        select(on_send(c1, i, none), on_send(c2, i, none), on_send(c3, i, none), on_send(c4, i, none));
      for (channel<int>* c : {&c1, &c2, &c3, &c4}) c->close();
    });
    wait_group open{4};
    for (channel<int>* c : {&c1, &c2, &c3, &c4})
      all.go([&, c] {
        for (const int v : *c) static_cast<void>(merged.send(v));
        open.done();
      });
    all.go([&] {
      open.wait();
      merged.close();
    });
    std::vector<int> seen(n, 0);
    for (const int v : merged) ++seen[static_cast<std::size_t>(v)];
    for (const int times : seen) EXPECT_EQ(times, 1);
  });
}

// test/chan/fifo.go: the first in line is served first.
TEST_P(go_program, receivers_are_served_in_line) {
  run([] {
    channel<int> c;
    std::vector<int> got(10, -1);
    crew all;
    for (std::size_t i = 0; i < got.size(); ++i) {
      all.go([&, i] { got[i] = *c.recv(); });
      until([&] { return c.statistics().waiting_receivers == i + 1; });
    }
    for (int i = 0; i < 10; ++i) static_cast<void>(c.send(i));
    all.join();
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<int>(i));
  });
}

// test/chan/goroutines.go: a daisy chain.
TEST_P(go_program, links_a_long_chain) {
  run([] {
    constexpr std::size_t links = 1000;
    std::vector<std::unique_ptr<channel<int>>> c;
    for (std::size_t i = 0; i <= links; ++i) c.push_back(std::make_unique<channel<int>>());
    crew all;
    for (std::size_t i = 0; i < links; ++i) all.go([&, i] { static_cast<void>(c[i]->send(1 + *c[i + 1]->recv())); });
    all.go([&] { static_cast<void>(c[links]->send(0)); });
    EXPECT_EQ(c[0]->recv(), static_cast<int>(links));
  });
}

// test/chan/select.go: guards disable cases, all sent bits arrive.
TEST_P(go_program, guards_leave_cases_out) {
  run([] {
    channel<unsigned> a, b;
    crew all;
    all.go([&] {
      unsigned left_a = 0xabcd, left_b = 0x1234;
      int bits_a = 16, bits_b = 16;
      while (bits_a > 0 || bits_b > 0)
        select(when(bits_a > 0, on_send(a, left_a & 1, [&](channel_status) { left_a >>= 1, --bits_a; })),
               when(bits_b > 0, on_send(b, left_b & 1, [&](channel_status) { left_b >>= 1, --bits_b; })));
      a.close();
      b.close();
    });
    unsigned got_a = 0, got_b = 0;
    int at_a = 0, at_b = 0;
    bool open_a = true, open_b = true;
    while (open_a || open_b)
      select(
          when(open_a,
               on_recv(a, [&](std::optional<unsigned> v) { v ? void(got_a |= *v << at_a++) : void(open_a = false); })),
          when(open_b,
               on_recv(b, [&](std::optional<unsigned> v) { v ? void(got_b |= *v << at_b++) : void(open_b = false); })));
    EXPECT_EQ(got_a, 0xabcdu);
    EXPECT_EQ(got_b, 0x1234u);
  });
}

// test/chan/select3.go: what waits and what does not, with several cases.
TEST_P(go_program, selects_wait_exactly_when_nothing_is_ready) {
  run([] {
    channel<int> a{1}, b, closed;
    closed.close();
    static_cast<void>(a.send(1));
    EXPECT_EQ(select(on_recv(b, never), on_recv(closed, none)), 1u);
    EXPECT_EQ(select(on_recv(a, none), on_recv(b, never)), 0u);
    EXPECT_EQ(select(on_recv(a, never), on_recv(b, never), on_timeout(1ms)), 2u);
    EXPECT_EQ(select(on_send(a, 1, none), on_recv(b, never)), 0u);
    EXPECT_EQ(select(on_send(a, 1, never), on_recv(b, never), on_timeout(1ms)), 2u);
  });
}

// test/chan/select6.go: a receiver that waits behind a select which another case ended is not forgotten.
TEST_P(go_program, who_stands_behind_a_select_is_not_forgotten) {
  run([] {
    channel<bool> a, b, stopped;
    crew all;
    all.go([&] { a.recv(); });
    until([&] { return a.statistics().waiting_receivers == 1; });
    all.go([&] {
      select(on_recv(a, never), on_recv(b, none));
      stopped.close();
    });
    until([&] { return a.statistics().waiting_receivers == 2; });
    all.go([&] { a.recv(); });
    until([&] { return a.statistics().waiting_receivers == 3; });
    static_cast<void>(b.send(true));
    stopped.recv();
    static_cast<void>(a.send(true));
    static_cast<void>(a.send(true));
  });
}

// test/chan/select7.go: a plain send meets a select, a plain receive meets a select.
TEST_P(go_program, single_operations_meet_selects) {
  run([] {
    channel<int> c, other;
    crew all;
    all.go([&] { EXPECT_EQ(c.send(1), channel_status::ok); });
    EXPECT_EQ(select(on_recv(c, [](std::optional<int> v) { EXPECT_EQ(v, 1); }), on_recv(other, never)), 0u);
    all.go([&] { EXPECT_EQ(c.recv(), 2); });
    EXPECT_EQ(select(on_send(c, 2, none), on_recv(other, never)), 0u);
  });
}

// test/chan/sieve1.go: the primes by a chain of filters.
TEST_P(go_program, sieves_primes) {
  run([] {
    std::vector<std::unique_ptr<channel<int>>> stages;
    std::vector<int> primes;
    crew all;
    stages.push_back(std::make_unique<channel<int>>());
    all.go([first = stages[0].get()] {
      for (int i = 2; first->send(i) == channel_status::ok; ++i) {
      }
    });
    while (primes.size() < 25) {
      channel<int>* from = stages.back().get();
      const int prime = *from->recv();
      primes.push_back(prime);
      stages.push_back(std::make_unique<channel<int>>());
      all.go([from, to = stages.back().get(), prime] {
        while (const std::optional<int> v = from->recv())
          if (*v % prime != 0 && to->send(*v) != channel_status::ok) break;
        from->close();
      });
    }
    EXPECT_EQ(primes.back(), 97);
    for (auto& s : stages) s->close();
    all.join();
  });
}

// test/chan/zerosize.go: elements without contents.
TEST_P(go_program, sends_elements_without_contents) {
  run([] {
    struct nothing {};
    channel<nothing> c{3};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(c.try_send(nothing{}), channel_status::ok);
    EXPECT_EQ(c.try_send(nothing{}), channel_status::full);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(c.try_recv());
    EXPECT_FALSE(c.try_recv());
  });
}

// test/closedchan.go: all forms of receiving from, and sending to, a closed channel.
TEST_P(go_program, a_closed_channel_answers_in_all_forms) {
  run([] {
    for (const std::size_t capacity : {0u, 2u}) {
      channel<int> c{capacity};
      for (std::size_t i = 0; i < capacity; ++i) static_cast<void>(c.send(1));
      c.close();
      for (std::size_t i = 0; i < capacity; ++i) EXPECT_EQ(c.recv(), 1);
      std::optional<int> got = 5;
      EXPECT_EQ(c.try_recv(got), channel_status::closed);
      EXPECT_EQ(got, std::nullopt);
      EXPECT_EQ(select(on_recv(c, got), otherwise(never)), 0u);
      channel_status s{};
      EXPECT_EQ(select(on_send(c, 1, s), otherwise(never)), 0u);
      EXPECT_EQ(s, channel_status::closed);
      EXPECT_EQ(c.try_send(1), channel_status::closed);
      EXPECT_EQ(c.send(1), channel_status::closed);
    }
  });
}

// test/ken/chan.go in small: channels that carry channels.
TEST_P(go_program, carries_channels) {
  run([] {
    channel<channel<int>*> requests;
    crew all;
    all.go([&] {
      for (channel<int>* answer : requests) static_cast<void>(answer->send(42));
    });
    for (int i = 0; i < 50; ++i) {
      channel<int> answer;
      static_cast<void>(requests.send(&answer));
      EXPECT_EQ(answer.recv(), 42);
    }
    requests.close();
  });
}

// test/chan/sendstmt.go: the value of a case is made once, whichever case is served.
TEST_P(go_program, values_of_cases_are_made_once) {
  run([] {
    channel<int> a{1}, b{1};
    int made = 0;
    const auto make = [&] { return ++made; };
    select(on_send(a, make(), none), on_send(b, make(), none));
    EXPECT_EQ(made, 2);
    EXPECT_EQ(a.size() + b.size(), 1u);
  });
}

// runtime/chan_test.go, TestShrinkStackDuringBlockedSend: deep calls while other fibers wait on the channel.
TEST_P(go_program, waits_beside_deep_calls) {
  run([] {
    channel<int> c;
    crew all;
    all.go([&] {
      for (int i = 0; i < 20; ++i) static_cast<void>(c.send(i));
      c.close();
    });
    struct deep {
      static int down(int n) {
        volatile char room[256] = {};
        return n == 0 ? room[0] : down(n - 1) + room[1] + 1;
      }
    };
    int next = 0;
    for (const int v : c) {
      EXPECT_EQ(deep::down(50), 50);
      EXPECT_EQ(v, next++);
    }
    EXPECT_EQ(next, 20);
  });
}

}  // namespace
}  // namespace ramie::ported
