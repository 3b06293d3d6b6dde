// Small programs like those that other channels are tested with: sieves, chains, series, matchmakers.
#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;

constexpr auto ignore_value = [](auto&&) {};

class programs : public in_worlds {
 protected:
  static int often(int n) { return scaled(GetParam().migrate_always ? n / 10 : n); }
};
INSTANTIATE_TEST_SUITE_P(in, programs, all_worlds(), name_of);

using stream = std::shared_ptr<channel<int>>;
stream make_stream(std::size_t capacity = 0) { return std::make_shared<channel<int>>(capacity); }

// Prime numbers: a filter for each prime that was found, in a row.
TEST_P(programs, a_sieve) {
  run([](crew& all) {
    const int primes = on_threads() || GetParam().migrate_always || sanitized ? 25 : 60;
    std::vector<stream> links{make_stream()};
    all.start([from = links[0]] {
      for (int i = 2; from->send(i) == channel_status::ok; ++i) {
      }
    });
    int sum = 0;
    int last = 0;
    for (int k = 0; k < primes; ++k) {
      const int prime = links.back()->recv().value();
      EXPECT_GT(prime, last);
      for (int d = 2; d * d <= prime; ++d) EXPECT_NE(prime % d, 0);
      last = prime;
      sum += prime;
      const stream in = links.back();
      const stream out = make_stream();
      all.start([in, out, prime] {
        for (const int v : *in)
          if (v % prime != 0 && out->send(v) != channel_status::ok) break;
        out->close();
      });
      links.push_back(out);
    }
    EXPECT_EQ(sum, primes == 25 ? 1060 : 7699);
    for (const stream& s : links) s->close();
    all.join();
  });
}

// One channel always has something; the other must still get its turn.
TEST_P(programs, a_busy_channel_does_not_starve_another) {
  run([](crew& all) {
    channel<int> busy;
    channel<int> rare;
    channel<int> stop;
    all.start([&] {
      for (bool open = true; open;)
        select(on_send(busy, 1, ignore_value), on_recv(stop, [&](std::optional<int>) { open = false; }));
    });
    all.start([&] {
      for (bool open = true; open;)
        select(on_send(rare, 1, ignore_value), on_recv(stop, [&](std::optional<int>) { open = false; }));
    });
    std::array<int, 2> got{};
    int passed_over = 0;  // how often in a row, although its sender waited
    while (got[0] < often(200) || got[1] < often(200)) {
      const bool waits = rare.statistics().waiting_senders != 0;
      const std::size_t which = select(on_recv(busy, ignore_value), on_recv(rare, ignore_value));
      ++got.at(which);
      if (which == 1) passed_over = 0;
      else if (waits) ++passed_over;
      if (passed_over == 1000) {
        ADD_FAILURE() << got[0] << " of one, " << got[1] << " of the other";
        break;
      }
    }
    stop.close();
    all.join();
  });
}

// A sender that chooses among channels must not be taken by two receivers: numbers arrive once each, in order.
TEST_P(programs, two_receivers_never_share_a_selects_value) {
  run([](crew& all) {
    std::array<channel<int>, 4> lines{channel<int>{0}, channel<int>{0}, channel<int>{0}, channel<int>{0}};
    channel<int> merged;
    const int n = often(1500);
    all.start([&] {
      for (int i = 0; i < n; ++i)
        select(on_send(lines[0], i, ignore_value), on_send(lines[1], i, ignore_value),
               on_send(lines[2], i, ignore_value), on_send(lines[3], i, ignore_value));
      for (auto& l : lines) l.close();
    });
    std::atomic<int> open{4};
    for (auto& l : lines)
      all.start([&] {
        int last = -1;
        for (const int v : l) {
          EXPECT_GT(v, last);
          last = v;
          static_cast<void>(merged.send(v));
        }
        if (--open == 0) merged.close();
      });
    std::vector<bool> seen(static_cast<std::size_t>(n), false);
    for (const int v : merged) {
      ASSERT_FALSE(seen.at(static_cast<std::size_t>(v))) << v << " came twice";
      seen[static_cast<std::size_t>(v)] = true;
    }
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), n);
    all.join();
  });
}

// Trying, on channels with and without a buffer, by itself and by select: the truth at each moment.
TEST_P(programs, trying_meets_who_is_there) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 1u}) {
      channel<int> c{capacity};
      EXPECT_EQ(c.try_recv(), std::nullopt);
      EXPECT_EQ(select(on_recv(c, ignore_value), otherwise([] {})), 1u);
      all.start([&] { EXPECT_EQ(c.recv(), 123); });
      await_receivers(c, 1);
      EXPECT_EQ(select(on_send(c, 123, ignore_value), otherwise([] {})), 0u);
      all.join();
      if (capacity == 1) {
        EXPECT_EQ(c.try_send(1), channel_status::ok);
      }
      EXPECT_EQ(c.try_send(2), channel_status::full);
      EXPECT_EQ(select(on_send(c, 3, ignore_value), otherwise([] {})), 1u);
      all.start([&] { static_cast<void>(c.send(234)); });
      await_senders(c, 1);
      int got = 0;
      EXPECT_EQ(select(on_recv(c, [&](std::optional<int> v) { got = v.value(); }), otherwise([] {})), 0u);
      EXPECT_EQ(got, capacity == 1 ? 1 : 234);
      if (capacity == 1) {
        EXPECT_EQ(c.recv(), 234);
      }
      all.join();
    }
  });
}

// A value goes down a long chain, each link adding one.
TEST_P(programs, a_daisy_chain) {
  run([](crew& all) {
    const int length = on_threads() ? 50 : often(3000);
    std::vector<stream> links;
    for (int i = 0; i <= length; ++i) links.push_back(make_stream());
    for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i)
      all.start([in = links[i + 1], out = links[i]] { static_cast<void>(out->send(1 + in->recv().value())); });
    static_cast<void>(links.back()->send(0));
    EXPECT_EQ(links.front()->recv(), length);
    all.join();
  });
}

// Many selects on a pair of channels each, crosswise: all complete.
TEST_P(programs, a_crowd_of_selects) {
  run([](crew& all) {
    const int crowd = on_threads() ? 40 : often(1000);
    channel<int> a;
    channel<int> b{1};
    std::atomic<int> first{0};
    std::atomic<int> second{0};
    for (int i = 0; i < crowd; ++i) {
      all.start([&] { first += select(on_recv(a, ignore_value), on_recv(b, ignore_value)) < 2 ? 1 : 0; });
      all.start([&] { second += select(on_send(b, 1, ignore_value), on_send(a, 1, ignore_value)) < 2 ? 1 : 0; });
    }
    all.join();
    EXPECT_EQ(first, crowd);
    EXPECT_EQ(second, crowd);
    EXPECT_EQ(a.size() + b.size(), 0u);
  });
}

// Power series: a series is an endless stream of coefficients, operators are processes between streams.
class series {
 public:
  explicit series(crew& all) : all_{all} {}
  ~series() {
    for (const stream& s : every_) s->close();
    all_.join();
  }
  series(const series&) = delete;
  series& operator=(const series&) = delete;

  template <class Next>
  stream from(Next next) {
    const stream out = open();
    all_.start([out, next]() mutable {
      while (out->send(next()) == channel_status::ok) {
      }
    });
    return out;
  }
  stream sum(const stream& f, const stream& g) {
    const stream out = open();
    all_.start([=] {
      for (;;) {
        // In either order; both are needed.
        std::optional<int> x;
        std::optional<int> y;
        const auto take_x = [&](std::optional<int> v) { x = v; };
        const auto take_y = [&](std::optional<int> v) { y = v; };
        if (select(on_recv(*f, take_x), on_recv(*g, take_y)) == 0) y = g->recv();
        else x = f->recv();
        if (!x || !y || out->send(*x + *y) != channel_status::ok) return;
      }
    });
    return out;
  }
  /// The product, term by term: each new coefficient of both is kept.
  stream product(const stream& f, const stream& g) {
    const stream out = open();
    all_.start([=] {
      std::vector<int> a;
      std::vector<int> b;
      for (;;) {
        const std::optional<int> x = f->recv();
        const std::optional<int> y = g->recv();
        if (!x || !y) return;
        a.push_back(*x);
        b.push_back(*y);
        if (out->send(std::inner_product(a.begin(), a.end(), b.rbegin(), 0)) != channel_status::ok) return;
      }
    });
    return out;
  }
  /// Two that each give all of `f`; they may be read at different speeds.
  std::array<stream, 2> split(const stream& f) {
    const std::array<stream, 2> outs{open(), open()};
    all_.start([=] {
      std::array<std::vector<int>, 2> owed;
      std::array<std::size_t, 2> at{};
      for (;;) {
        for (std::size_t i = 0; i < 2; ++i)
          if (at[i] == owed[i].size()) {
            const std::optional<int> v = f->recv();
            if (!v) return;
            for (auto& o : owed) o.push_back(*v);
          }
        bool open = true;
        const auto given = [&](std::size_t i) {
          return [&, i](channel_status s) { s == channel_status::ok ? void(++at[i]) : void(open = false); };
        };
        select(on_send(*outs[0], owed[0][at[0]], given(0)), on_send(*outs[1], owed[1][at[1]], given(1)));
        if (!open) return;
      }
    });
    return outs;
  }

 private:
  stream open() {
    every_.push_back(make_stream());
    return every_.back();
  }
  crew& all_;
  std::vector<stream> every_;
};

TEST_P(programs, power_series) {
  run([](crew& all) {
    const int terms = GetParam().migrate_always || sanitized ? 10 : 40;
    series s{all};
    const auto ones = [] { return 1; };
    // 1/(1-x) squared has the coefficients 1, 2, 3...; and with itself added twice that.
    const stream counting = s.product(s.from(ones), s.from(ones));
    const auto [left, right] = s.split(counting);
    const stream doubled = s.sum(left, right);
    for (int i = 1; i <= terms; ++i) EXPECT_EQ(doubled->recv(), 2 * i);
    // (1 - x) times the counting series gives ones again.
    const stream more = s.product(s.from([n = 0]() mutable { return n++ == 0 ? 1
                                                                    : n == 2 ? -1
                                                                             : 0; }),
                                  s.product(s.from(ones), s.from(ones)));
    for (int i = 0; i < terms; ++i) EXPECT_EQ(more->recv(), 1);
  });
}

// Each party either gives its name away or gets another's. Never its own, never twice.
TEST_P(programs, matchmaking) {
  run([](crew& all) {
    for (int round = 0; round < often(50) + 1; ++round) {
      constexpr int parties = 8;
      channel<int> c;
      std::array<std::atomic<int>, parties> met{};
      for (int me = 0; me < parties; ++me)
        all.start([&, me] {
          select(on_recv(c,
                         [&](std::optional<int> other) {
                           EXPECT_NE(other, me);
                           ++met.at(static_cast<std::size_t>(me));
                           ++met.at(static_cast<std::size_t>(other.value()));
                         }),
                 on_send(c, me, ignore_value));
        });
      all.join();
      for (const auto& m : met) ASSERT_EQ(m, 1);
    }
  });
}

// Channels of capacity one, each used once, by the first to come.
TEST_P(programs, one_shot) {
  run([](crew& all) {
    const int n = on_threads() ? scaled(200) : often(2000);
    for (int i = 0; i < n; ++i) {
      channel<int> c{1};
      all.start([&] { EXPECT_EQ(c.recv(), i); });
      EXPECT_EQ(c.send(i), channel_status::ok);
      all.join();
    }
  });
}

// Sends from within a receive's function, on the same channel: its lock is free by then.
TEST_P(programs, a_function_may_use_its_channel) {
  run([](crew&) {
    channel<int> c{2};
    static_cast<void>(c.send(1));
    int depth = 0;
    const std::function<void()> again = [&] {
      select(on_recv(c, [&](std::optional<int> v) {
        if (++depth == 20) return;
        static_cast<void>(c.send(v.value() + 1));
        again();
      }));
    };
    again();
    EXPECT_EQ(depth, 20);
    select(on_send(c, 5, [&](channel_status) { EXPECT_EQ(c.recv(), 5); }));
    static_cast<void>(c.send(6));
    select(on_recv(c, [&](std::optional<int>) { c.close(); }));
    EXPECT_TRUE(c.is_closed());
  });
}

// A pipeline with a crowd in the middle: the order is free, but everything is handed on.
TEST_P(programs, fan_out_and_in) {
  run([](crew& all) {
    channel<int> jobs{4};
    channel<std::pair<int, long>> results;
    const int n = often(500);
    std::atomic<int> working{5};
    for (int w = 0; w < 5; ++w)
      all.start([&] {
        for (const int j : jobs) static_cast<void>(results.send({j, static_cast<long>(j) * j}));
        if (--working == 0) results.close();
      });
    all.start([&] {
      for (int i = 0; i < n; ++i) static_cast<void>(jobs.send(i));
      jobs.close();
    });
    long sum = 0;
    for (const auto& [job, square] : results) {
      EXPECT_EQ(square, static_cast<long>(job) * job);
      sum += job;
    }
    EXPECT_EQ(sum, static_cast<long>(n) * (n - 1) / 2);
    all.join();
  });
}

// A ring passes a token around; it arrives where it began, as often as it should.
TEST_P(programs, a_ring) {
  run([](crew& all) {
    const int size = on_threads() ? 10 : 100;
    const int laps = often(50) + 1;
    std::vector<stream> links;
    for (int i = 0; i < size; ++i) links.push_back(make_stream());
    for (std::size_t i = 0; i + 1 < links.size(); ++i)
      all.start([in = links[i], out = links[i + 1]] {
        for (const int v : *in) static_cast<void>(out->send(v + 1));
        out->close();
      });
    for (int lap = 0; lap < laps; ++lap) {
      static_cast<void>(links.front()->send(lap));
      EXPECT_EQ(links.back()->recv(), lap + size - 1);
    }
    links.front()->close();
    EXPECT_EQ(links.back()->recv(), std::nullopt);
    all.join();
  });
}

}  // namespace
}  // namespace ramie
