// Many parties, random topologies, storms of selects: the sums must come out. Seeds are fixed; failures print them.
#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;

class stress : public in_worlds {
 protected:
  static int often(int n) { return scaled(GetParam().migrate_always || on_threads() ? n / 12 : n); }
};
INSTANTIATE_TEST_SUITE_P(in, stress, all_worlds(), name_of);

TEST_P(stress, many_to_many) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 1u, 16u, 1000u}) {
      for (const auto& [producers, consumers] : {std::pair{1, 4}, std::pair{4, 1}, std::pair{4, 4}}) {
        channel<std::uint64_t> c{capacity};
        const int n = often(2000) / producers;
        std::atomic<std::uint64_t> sum{0};
        std::atomic<int> count{0};
        std::atomic<int> producing{producers};
        for (int p = 0; p < producers; ++p)
          all.start([&, p] {
            for (int i = 0; i < n; ++i) EXPECT_EQ(c.send(static_cast<std::uint64_t>(p * n + i)), channel_status::ok);
            if (--producing == 0) c.close();
          });
        for (int k = 0; k < consumers; ++k)
          all.start([&] {
            std::uint64_t mine = 0;
            int taken = 0;
            for (const std::uint64_t v : c) {
              mine += v;
              ++taken;
            }
            sum += mine;
            count += taken;
          });
        all.join();
        const auto total = static_cast<std::uint64_t>(producers * n);
        ASSERT_EQ(count, producers * n) << "capacity " << capacity;
        ASSERT_EQ(sum, total * (total - 1) / 2);
      }
    }
  });
}

TEST_P(stress, each_producers_order_is_kept_for_each_consumer) {
  run([](crew& all) {
    struct item {
      int producer;
      int number;
    };
    for (const std::size_t capacity : {0u, 3u}) {
      channel<item> c{capacity};
      const int n = often(1000);
      std::atomic<int> producing{3};
      for (int p = 0; p < 3; ++p) {
        all.start([&, p] {
          for (int i = 0; i < n; ++i) static_cast<void>(c.send(item{p, i}));
          if (--producing == 0) c.close();
        });
        all.start([&] {
          std::array<int, 3> last{-1, -1, -1};
          for (const item& it : c) {
            EXPECT_LT(last.at(static_cast<std::size_t>(it.producer)), it.number);
            last.at(static_cast<std::size_t>(it.producer)) = it.number;
          }
        });
      }
      all.join();
    }
  });
}

/// A token that travels through a random graph until it has no hops left.
struct token {
  int hops;
  std::uint64_t weight;
};

/// Always receives, and passes on when a receiver is ready: by select, so that no ring of nodes can deadlock.
void node(channel<token>& in, std::vector<channel<token>*> next, channel<std::uint64_t>& done, unsigned seed) {
  std::mt19937 random{seed};
  std::deque<std::pair<channel<token>*, token>> leaving;
  std::deque<std::uint64_t> finished;
  bool open = true;
  const auto take = [&](std::optional<token> t) {
    if (!t) {
      open = false;
      return;
    }
    for (int hops = t->hops; hops != 0; --hops) {
      channel<token>* to = next[random() % next.size()];
      if (to == &in) continue;  // a select does not meet itself
      leaving.emplace_back(to, token{hops - 1, t->weight});
      return;
    }
    finished.push_back(t->weight);
  };
  const auto passed = [&](channel_status s) {
    if (s == channel_status::ok) leaving.pop_front();
  };
  const auto told = [&](channel_status) { finished.pop_front(); };
  while (open) {
    if (!leaving.empty() && !finished.empty())
      select(on_recv(in, take), on_send(*leaving.front().first, leaving.front().second, passed),
             on_send(done, finished.front(), told));
    else if (!leaving.empty())
      select(on_recv(in, take), on_send(*leaving.front().first, leaving.front().second, passed));
    else if (!finished.empty()) select(on_send(done, finished.front(), told), on_recv(in, take));
    else select(on_recv(in, take));
  }
}

TEST_P(stress, random_topologies) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    run([seed](crew& all) {
      std::mt19937 random{seed};
      const std::size_t nodes = 2 + random() % 12;
      std::vector<std::unique_ptr<channel<token>>> inboxes;
      for (std::size_t i = 0; i < nodes; ++i) inboxes.push_back(std::make_unique<channel<token>>(random() % 3));
      channel<std::uint64_t> done{random() % 2};
      for (std::size_t i = 0; i < nodes; ++i) {
        std::vector<channel<token>*> next;
        for (std::size_t k = 1 + random() % 3; k != 0; --k) next.push_back(inboxes[random() % nodes].get());
        all.start([&, i, next, s = static_cast<unsigned>(random())] { node(*inboxes[i], next, done, s); });
      }
      const int tokens = often(300);
      std::uint64_t weights = 0;
      all.start([&, s = static_cast<unsigned>(random())] {
        std::mt19937 mine{s};
        for (int i = 0; i < tokens; ++i)
          static_cast<void>(
              inboxes[mine() % nodes]->send(token{static_cast<int>(mine() % 20), static_cast<std::uint64_t>(i)}));
      });
      for (int i = 0; i < tokens; ++i) {
        weights += static_cast<std::uint64_t>(i);
        weights -= done.recv().value();
      }
      EXPECT_EQ(weights, 0u);
      for (const auto& in : inboxes) in->close();
      all.join();
    });
  }
}

TEST_P(stress, a_storm_of_selects) {
  run([](crew& all) {
    constexpr int parties = 6;
    constexpr std::size_t width = 4;
    std::array<std::unique_ptr<channel<int>>, width> c;
    for (std::size_t i = 0; i < width; ++i) c.at(i) = std::make_unique<channel<int>>(i % 3);
    channel<int> stop;
    const int n = often(400);
    std::atomic<long> sent{0};
    std::atomic<long> received{0};
    std::atomic<int> times{0};
    for (int party = 0; party < parties; ++party)
      all.start([&, party] {
        // Each receives all the time, and sends n values; all channels, both ends, the order shuffled by party.
        std::mt19937 random{static_cast<unsigned>(party)};
        bool open = true;
        const auto take = [&](std::optional<int> v) {
          received += v.value();
          ++times;
        };
        for (int left = n; open;) {
          const std::size_t at = random() % width;
          channel<int>& c0 = *c.at(at);
          channel<int>& c1 = *c.at((at + 1) % width);
          channel<int>& c2 = *c.at((at + 2) % width);
          channel<int>& c3 = *c.at((at + 3) % width);
          const auto gave = [&](channel_status) { sent += left--; };
          const auto end = [&](std::optional<int>) { open = false; };
          if (left != 0) {
            select(on_recv(c0, take), on_send(c1, left, gave), on_recv(stop, end), on_recv(c2, take),
                   on_send(c3, left, gave), on_send(c0, left, gave));
          } else {
            select(on_recv(c0, take), on_recv(c1, take), on_recv(stop, end), on_recv(c2, take), on_recv(c3, take));
          }
        }
      });
    await([&] { return times == parties * n; });
    stop.close();
    all.join();
    EXPECT_EQ(sent, received);
    for (const auto& one : c) {
      const channel_statistics s = one->statistics();
      EXPECT_EQ(s.length + s.waiting_senders + s.waiting_receivers, 0u);
    }
  });
}

TEST_P(stress, one_value_for_many_who_want_it) {
  run([](crew& all) {
    // Each value comes by one of two channels at once; each is taken once, by any select.
    for (int round = 0; round < often(100); ++round) {
      channel<int> a;
      channel<int> b;
      channel<int> end;
      std::atomic<int> taken{0};
      for (int i = 0; i < 5; ++i)
        all.start([&] {
          for (bool open = true; open;)
            select(on_recv(a, [&](std::optional<int> v) { taken += v.value(); }),
                   on_recv(b, [&](std::optional<int> v) { taken += v.value(); }),
                   on_recv(end, [&](std::optional<int>) { open = false; }));
        });
      for (int i = 0; i < 4; ++i)
        all.start([&, i] {
          channel<int>& mine = i % 2 == 0 ? a : b;
          static_cast<void>(mine.send(1));
          while (mine.try_send(100) != channel_status::ok) this_fiber::yield();
          select(on_send(a, 10'000, [](channel_status) {}), on_send(b, 10'000, [](channel_status) {}));
        });
      await([&] { return taken == 40'404; });
      end.close();
      all.join();
      ASSERT_EQ(taken, 40'404);
    }
  });
}

TEST_P(stress, fibers_threads_and_two_runtimes_at_once) {
  if (on_threads()) GTEST_SKIP() << "no fibers";
  runtime other{{.workers = 2}};
  channel<int> c{2};
  channel<int> back;
  std::atomic<int> working{3};
  const int n = often(800);
  const auto work = [&] {
    for (const int v : c) static_cast<void>(back.send(v + 1));
    if (--working == 0) back.close();
  };
  std::thread a_thread{work};
  auto elsewhere = other.spawn(work);
  run([&](crew& all) {
    all.start(work);
    all.start([&] {
      for (int i = 0; i < n; ++i) static_cast<void>(c.send(i));
      c.close();
    });
    long sum = 0;
    for (const int v : back) sum += v;
    EXPECT_EQ(sum, static_cast<long>(n) * (n + 1) / 2);
    all.join();
  });
  elsewhere.join();
  a_thread.join();
}

}  // namespace
}  // namespace ramie
