// Select: what counts as ready, which case is taken, what stays behind.
#include <ramie/channel/select.hpp>

#include <ramie/channel/testing.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;

constexpr auto ignore_value = [](auto&&) {};
constexpr auto unexpected = [](auto&&...) { ADD_FAILURE() << "the wrong case"; };

template <class T>
std::size_t waiting(const channel<T>& c) {
  return c.statistics().waiting_senders + c.statistics().waiting_receivers;
}

class selects : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, selects, all_worlds(), name_of);

TEST_P(selects, take_the_case_that_is_ready_and_tell_which) {
  run([](crew&) {
    channel<int> empty{1};
    channel<int> full{1};
    channel<std::string> closed;
    static_cast<void>(full.send(1));
    closed.close();
    int got = 0;
    EXPECT_EQ(select(on_recv(empty, unexpected), on_recv(full, [&](std::optional<int> v) { got = v.value(); })), 1u);
    EXPECT_EQ(got, 1);
    EXPECT_TRUE(full.empty());
    static_cast<void>(full.send(2));
    bool sent = false;
    EXPECT_EQ(select(on_send(empty, 7, [&](channel_status s) { sent = s == channel_status::ok; }),
                     on_send(full, 8, unexpected)),
              0u);
    EXPECT_TRUE(sent);
    EXPECT_EQ(empty.recv(), 7);
    int seen = 0;
    EXPECT_EQ(select(on_recv(empty, unexpected), on_send(full, 8, unexpected),
                     on_recv(closed, [&](std::optional<std::string> v) { seen += v ? 0 : 1; })),
              2u);
    EXPECT_EQ(select(on_send(closed, "text", [&](channel_status s) { seen += s == channel_status::closed ? 1 : 0; }),
                     on_recv(empty, unexpected)),
              0u);
    EXPECT_EQ(seen, 2);
    EXPECT_EQ(full.recv(), 2);
  });
}

TEST_P(selects, otherwise_do_not_wait) {
  run([](crew&) {
    channel<int> c;
    channel<int> b{1};
    int idle = 0;
    EXPECT_EQ(select(on_recv(c, unexpected), otherwise([&] { ++idle; })), 1u);
    EXPECT_EQ(select(otherwise([&] { ++idle; }), on_send(c, 1, unexpected)), 0u);
    EXPECT_EQ(select(on_recv(c, unexpected), on_send(c, 1, unexpected), otherwise([&] { ++idle; })), 2u)
        << "a select does not meet itself";
    EXPECT_EQ(select(otherwise([&] { ++idle; })), 0u);
    EXPECT_EQ(idle, 4);
    EXPECT_EQ(select(otherwise(unexpected), on_send(b, 1, ignore_value)), 1u);
    EXPECT_EQ(select(on_recv(b, ignore_value), otherwise(unexpected)), 0u);
    EXPECT_EQ(waiting(c), 0u);
  });
}

TEST_P(selects, give_up_in_time) {
  run([](crew&) {
    channel<int> c;
    channel<int> b{1};
    int late = 0;
    const auto count = [&] { ++late; };
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(select(on_recv(c, unexpected), on_timeout(100us, count), on_send(c, 1, unexpected)), 1u);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 100us);
    EXPECT_EQ(select(on_timeout(0s, count), on_recv(c, unexpected)), 0u);
    EXPECT_EQ(select(on_timeout(-1h, count), on_recv(c, unexpected)), 0u);
    EXPECT_EQ(select(on_timeout(start, count)), 0u);
    EXPECT_EQ(select(on_timeout(10us, count)), 0u);
    EXPECT_EQ(late, 5);
    EXPECT_EQ(select(on_timeout(-1h, unexpected), on_send(b, 1, ignore_value)), 1u) << "what is ready goes first";
    EXPECT_EQ(select(on_timeout(1h, unexpected), on_recv(b, ignore_value)), 1u);
    EXPECT_EQ(waiting(c), 0u);
  });
}

TEST_P(selects, wait_for_any_of_their_cases) {
  run([](crew& all) {
    channel<int> a;
    channel<int> b{2};
    channel<int> to;
    channel<int> full{1};
    static_cast<void>(full.send(0));
    for (int round = 0; round < 5; ++round) {
      int result = -1;
      std::atomic<std::size_t> fired{99};
      all.start([&] {
        const std::size_t which = select(on_recv(a, [&](std::optional<int> v) { result = v.value_or(-2); }),
                                         on_recv(b, [&](std::optional<int> v) { result = v.value_or(-2); }),
                                         on_send(to, 33, [&](channel_status s) { result = s == channel_status::ok; }),
                                         on_send(full, 44, [&](channel_status s) { result = static_cast<int>(s); }),
                                         on_timeout(1h, unexpected));
        fired = which;
      });
      await([&] { return waiting(a) + waiting(b) + waiting(to) + waiting(full) == 4; });
      int expected = 0;
      std::size_t place = static_cast<std::size_t>(round);
      switch (round) {
        case 0: EXPECT_EQ(a.try_send(expected = 5), channel_status::ok); break;
        case 1: EXPECT_EQ(b.try_send(expected = 6), channel_status::ok); break;
        case 2:
          EXPECT_EQ(to.try_recv(), 33);
          expected = 1;
          break;
        case 3: EXPECT_EQ(full.recv(), 0); break;
        default:
          a.close();
          expected = -2;
          place = 0;
          break;
      }
      await([&] { return fired != 99; });
      EXPECT_EQ(fired, place);
      EXPECT_EQ(result, expected);
      EXPECT_EQ(waiting(a) + waiting(b) + waiting(to) + waiting(full), 0u);
      if (round == 3) {
        EXPECT_EQ(full.recv(), 44);
        static_cast<void>(full.send(0));
      }
    }
    all.join();
  });
}

TEST_P(selects, may_have_a_channel_in_several_cases) {
  run([](crew& all) {
    channel<int> c;
    // Both ends of one channel: either is served from outside, never by the other.
    for (int round = 0; round < scaled(200); ++round) {
      std::atomic<std::size_t> fired{99};
      all.start([&] {
        fired = select(on_recv(c, [&](std::optional<int> v) { EXPECT_EQ(v, 1); }), on_send(c, 2, ignore_value),
                       on_recv(c, [&](std::optional<int> v) { EXPECT_EQ(v, 1); }));
      });
      if (round % 3 == 0) await([&] { return waiting(c) == 3; });
      if (round % 2 == 0) static_cast<void>(c.send(1));
      else EXPECT_EQ(c.recv(), 2);
      await([&] { return fired != 99; });
      EXPECT_EQ(fired == 1, round % 2 != 0);
      EXPECT_EQ(waiting(c), 0u);
      all.join();
    }
    EXPECT_EQ(select(on_recv(c, unexpected), on_send(c, 2, unexpected), on_timeout(20us, [] {})), 2u);
    all.join();
  });
}

TEST_P(selects, of_both_ends_meet_each_other) {
  run([](crew& all) {
    channel<int> c;
    const int n = scaled(GetParam().migrate_always ? 200 : 2000);
    std::atomic<int> sent{0};
    std::atomic<int> received{0};
    for (int party = 0; party < 2; ++party)
      all.start([&, party] {
        for (int i = 0; i < n; ++i)
          select(on_recv(c,
                         [&](std::optional<int> v) {
                           EXPECT_EQ(v, 1 - party) << "not its own";
                           ++received;
                         }),
                 on_send(c, party, [&](channel_status s) { sent += s == channel_status::ok ? 1 : 0; }));
      });
    all.join();
    EXPECT_EQ(sent, n);
    EXPECT_EQ(received, n);
    all.join();
  });
}

TEST_P(selects, meet_in_opposite_order) {
  run([](crew& all) {
    channel<int> a;
    channel<int> b;
    const int n = scaled(GetParam().migrate_always ? 200 : 2000);
    long sent = 0;
    long received = 0;
    all.start([&] {
      for (int i = 0; i < n; ++i) {
        select(on_send(a, i, ignore_value), on_send(b, i, ignore_value));
        sent += i;
      }
    });
    for (int i = 0; i < n; ++i)
      select(on_recv(b, [&](std::optional<int> v) { received += v.value(); }),
             on_recv(a, [&](std::optional<int> v) { received += v.value(); }));
    all.join();
    EXPECT_EQ(sent, received);
    // Each sends on one and receives on the other, crosswise.
    std::atomic<long> balance{0};
    for (int party = 0; party < 2; ++party)
      all.start([&, party] {
        channel<int>& mine = party == 0 ? a : b;
        channel<int>& theirs = party == 0 ? b : a;
        for (int to_send = n, to_receive = n; to_send + to_receive > 0;) {
          const auto take = [&](std::optional<int> v) {
            balance -= v.value();
            --to_receive;
          };
          const auto gave = [&, v = to_send](channel_status) {
            balance += v;
            --to_send;
          };
          if (to_send == 0) select(on_recv(theirs, take));
          else if (to_receive == 0) select(on_send(mine, to_send, gave));
          else if (party == 0) select(on_recv(theirs, take), on_send(mine, to_send, gave));
          else select(on_send(mine, to_send, gave), on_recv(theirs, take));
        }
      });
    all.join();
    EXPECT_EQ(balance, 0);
    all.join();
  });
}

using repeated = recv_case<int, std::function<void(std::optional<int>)>>;

TEST_P(selects, take_lists_of_cases) {
  run([](crew& all) {
    std::vector<std::unique_ptr<channel<int>>> some;
    for (int i = 0; i < 20; ++i) some.push_back(std::make_unique<channel<int>>());
    std::vector<int> got(20, 0);
    std::vector<repeated> cases;
    for (std::size_t i = 0; i < 20; ++i)
      cases.push_back(on_recv(
          *some[i], std::function<void(std::optional<int>)>{[&got, i](std::optional<int> v) { got[i] += v.value(); }}));
    EXPECT_EQ(select(cases, otherwise([] {})), 20u);
    EXPECT_EQ(select(cases, on_timeout(10us, [] {})), 20u);
    for (std::size_t i = 0; i < 20; ++i) {
      all.start([&, i] { static_cast<void>(some[i]->send(static_cast<int>(i) + 1)); });
      EXPECT_EQ(select(cases), i) << "the list may be used again";
      EXPECT_EQ(got[i], static_cast<int>(i) + 1);
    }
    for (const auto& c : some) EXPECT_EQ(waiting(*c), 0u);
    std::vector<repeated> none;
    EXPECT_THROW(select(none), invalid_argument);
    EXPECT_EQ(select(none, otherwise([] {})), 0u);
    EXPECT_EQ(select(none, on_timeout(1us, [] {})), 0u);

    std::array<send_case<int, void (*)(channel_status)>, 2> sends{
        on_send(*some[0], 5, +[](channel_status) {}), on_send(*some[1], 6, +[](channel_status) {})};
    all.start([&] { EXPECT_EQ(some[1]->recv(), 6); });
    EXPECT_EQ(select(sends), 1u);
    all.join();
  });
}

TEST_P(selects, let_what_a_function_throws_pass) {
  run([](crew& all) {
    channel<int> c{1};
    channel<int> other;
    const auto thrower = [](auto&&...) { throw std::runtime_error{"by the function"}; };
    static_cast<void>(c.send(1));
    EXPECT_THROW(select(on_recv(c, thrower), on_recv(other, unexpected)), std::runtime_error);
    EXPECT_TRUE(c.empty()) << "it was received all the same";
    EXPECT_THROW(select(on_send(c, 2, thrower)), std::runtime_error);
    EXPECT_EQ(c.recv(), 2);
    EXPECT_THROW(select(on_recv(other, unexpected), on_timeout(1us, thrower)), std::runtime_error);
    EXPECT_THROW(select(on_recv(other, unexpected), otherwise(thrower)), std::runtime_error);
    all.start([&] { static_cast<void>(other.send(3)); });
    EXPECT_THROW(select(on_recv(c, unexpected), on_recv(other, thrower)), std::runtime_error);
    EXPECT_EQ(waiting(c) + waiting(other), 0u);
    all.join();
  });
}

TEST_P(selects, lose_nothing_when_a_move_throws) {
  run([](crew& all) {
    channel<moody> buffered{2};
    channel<moody> other;
    // At once, from the buffer and into it.
    static_cast<void>(buffered.send(moody{1}));
    {
      moody shy{2, 0};
      const auto mood = shy.throws_left;
      static_cast<void>(buffered.send(std::move(shy)));
      EXPECT_EQ(buffered.recv()->value, 1);
      *mood = 1;
    }
    EXPECT_THROW(select(on_recv(buffered, unexpected)), std::runtime_error);
    EXPECT_EQ(buffered.size(), 1u);
    select(on_recv(other, unexpected),
           on_recv(buffered, [](std::optional<moody> v) { EXPECT_EQ(v.value().value, 2); }));
    // From a sender to the select that waits for it, and the other way round: the mover gets the exception, the other
    // keeps waiting.
    std::atomic<int> got{0};
    all.start([&] {
      select(on_recv(buffered, unexpected), on_recv(other, [&](std::optional<moody> v) { got = v.value().value; }));
    });
    await_receivers(other, 1);
    moody shy{3, 1};
    EXPECT_THROW(static_cast<void>(other.send(std::move(shy))), std::runtime_error);
    EXPECT_EQ(shy.value, 3);
    EXPECT_EQ(got, 0);
    EXPECT_EQ(other.send(std::move(shy)), channel_status::ok);
    await([&] { return got == 3; });
    all.join();
    {
      std::shared_ptr<std::atomic<int>> mood = std::make_shared<std::atomic<int>>(0);
      all.start([&] {
        moody mine{4};
        mine.throws_left = mood;
        select(on_recv(buffered, unexpected), on_send(other, std::move(mine), [&](channel_status) { got = 4; }));
      });
      await_senders(other, 1);
      *mood = 1;
      EXPECT_THROW(other.recv(), std::runtime_error);
      EXPECT_EQ(other.recv()->value, 4);
      await([&] { return got == 4; });
    }
    all.join();
    EXPECT_EQ(waiting(buffered) + waiting(other), 0u);
    all.join();
  });
  EXPECT_EQ(moody::alive, 0);
}

TEST_P(selects, move_what_only_moves) {
  run([](crew& all) {
    channel<std::unique_ptr<int>> c;
    all.start([&] {
      auto token = std::make_unique<int>(3);
      select(on_send(c, std::make_unique<int>(7), [t = std::move(token)](channel_status) { EXPECT_EQ(*t, 3); }));
    });
    int got = 0;
    select(on_recv(c, [&](std::optional<std::unique_ptr<int>> v) { got = **v; }), on_timeout(1h, unexpected));
    EXPECT_EQ(got, 7);
    all.join();
  });
}

TEST_P(selects, choose_evenly_among_the_ready) {
  run([](crew&) {
    constexpr int ways = 5;
    const int n = 5000;
    std::array<channel<int>, ways> c{channel<int>{1}, channel<int>{1}, channel<int>{1}, channel<int>{1},
                                     channel<int>{1}};
    std::array<int, ways> chosen{};
    // Three ready to be received from, two to be sent to.
    for (int i = 0; i < 3; ++i) static_cast<void>(c[static_cast<std::size_t>(i)].send(i));
    for (int i = 0; i < n; ++i) {
      const std::size_t at =
          select(on_recv(c[0], ignore_value), on_send(c[3], 0, ignore_value), on_recv(c[1], ignore_value),
                 on_send(c[4], 0, ignore_value), on_recv(c[2], ignore_value), on_timeout(1h, unexpected));
      ++chosen.at(at);
      if (at == 1) c[3].recv();
      else if (at == 3) c[4].recv();
      else static_cast<void>(c[at / 2].send(0));
    }
    double chi_square = 0;
    for (const int count : chosen) {
      const double off = count - n / double{ways};
      chi_square += off * off / (n / double{ways});
    }
    // Four degrees of freedom: above 44 once in 150 million runs with even odds. A choice of the first would give
    // 20000.
    EXPECT_LT(chi_square, 44.0);
  });
}

/// Counts which of `n` cases on one channel a select that waits is served in, `rounds` times.
template <class Select, class Serve>
std::vector<int> served_while_waiting(crew& all, channel<int>& c, std::size_t n, int rounds, Select once, Serve serve) {
  std::vector<int> times(n, 0);
  all.start([&, rounds] {
    for (int i = 0; i < rounds; ++i) {
      await([&] { return waiting(c) == n; });
      serve(i);
    }
  });
  for (int i = 0; i < rounds; ++i) ++times[once()];
  all.join();
  return times;
}

TEST_P(selects, that_wait_are_fair_among_their_cases_on_one_channel) {
  run([](crew& all) {
    // 300 tries, each with chance 1/2: fewer than 90 of one kind is seven deviations away. With 1/3: below 45,
    // likewise.
    constexpr int rounds = 300;
    channel<int> c;
    const auto receive = [&] { EXPECT_TRUE(c.recv()); };
    const auto send = [&] { EXPECT_EQ(c.send(0), channel_status::ok); };
    for (const int times : served_while_waiting(
             all, c, 2, rounds, [&] { return select(on_recv(c, ignore_value), on_recv(c, ignore_value)); },
             [&](int) { send(); }))
      EXPECT_GE(times, 90);
    for (const int times : served_while_waiting(
             all, c, 2, rounds, [&] { return select(on_send(c, 1, ignore_value), on_send(c, 2, ignore_value)); },
             [&](int) { receive(); }))
      EXPECT_GE(times, 90);
    for (const int times : served_while_waiting(
             all, c, 3, rounds,
             [&] {
               return select(on_send(c, 1, ignore_value), on_send(c, 2, ignore_value), on_send(c, 3, ignore_value));
             },
             [&](int) { receive(); }))
      EXPECT_GE(times, 45);
    std::vector<decltype(on_recv(c, ignore_value))> list;
    for (int i = 0; i < 3; ++i) list.push_back(on_recv(c, ignore_value));
    for (const int times : served_while_waiting(all, c, 3, rounds, [&] { return select(list); }, [&](int) { send(); }))
      EXPECT_GE(times, 45);
  });
}

TEST_P(selects, with_otherwise_find_what_is_ready_at_every_moment) {
  run([](crew& all) {
    // After Go's TestNonblockSelectRace, with the cases in both orders.
    for (int round = 0; round < scaled(GetParam().migrate_always ? 100 : 1000); ++round) {
      channel<int> a{1}, b{1};
      static_cast<void>(a.send(1));
      all.start([&, round] {
        if (round % 2 == 0) select(on_recv(a, ignore_value), on_recv(b, ignore_value), otherwise(unexpected));
        else select(on_recv(b, ignore_value), on_recv(a, ignore_value), otherwise(unexpected));
      });
      static_cast<void>(b.send(1));
      static_cast<void>(a.try_recv());
      all.join();
    }
  });
}

TEST_P(selects, serve_as_wide_as_they_come) {
  run([](crew& all) {
    constexpr std::size_t width = 100;
    std::vector<std::unique_ptr<channel<int>>> c;
    for (std::size_t i = 0; i < width; ++i) c.push_back(std::make_unique<channel<int>>());
    long sum = 0;
    for (std::size_t i = 0; i < width; ++i) all.start([&, i] { static_cast<void>(c[i]->send(static_cast<int>(i))); });
    std::vector<recv_case<int, std::function<void(std::optional<int>)>>> cases;
    for (std::size_t i = 0; i < width; ++i)
      cases.push_back(
          on_recv(*c[i], std::function<void(std::optional<int>)>{[&](std::optional<int> v) { sum += v.value(); }}));
    for (std::size_t i = 0; i < width; ++i) EXPECT_LT(select(cases), width);
    EXPECT_EQ(sum, static_cast<long>(width * (width - 1) / 2));
    EXPECT_EQ(select(cases, otherwise([] {})), width);
    all.join();
  });
}

}  // namespace
}  // namespace ramie
