// Closing from every state, and channels that are destroyed as soon as they may be.
#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;

class closing : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, closing, all_worlds(), name_of);

TEST_P(closing, twice_is_closing_once) {
  run([](crew&) {
    for (const std::size_t capacity : {0u, 2u}) {
      channel<int> c{capacity};
      c.close();
      EXPECT_TRUE(c.is_closed());
      c.close();
      EXPECT_TRUE(c.is_closed());
      EXPECT_EQ(c.recv(), std::nullopt);
      EXPECT_EQ(c.recv_for(1h), std::nullopt);
      EXPECT_EQ(c.send(1), channel_status::closed);
      EXPECT_EQ(c.send_for(1, 1h), channel_status::closed);
      EXPECT_EQ(c.size(), 0u);
    }
  });
}

TEST_P(closing, leaves_what_is_buffered) {
  run([](crew&) {
    channel<std::unique_ptr<int>> c{5};
    for (int i = 0; i < 4; ++i) static_cast<void>(c.send(std::make_unique<int>(i)));
    c.close();
    EXPECT_EQ(c.size(), 4u);
    EXPECT_EQ(**c.recv(), 0);
    EXPECT_EQ(**c.try_recv(), 1);
    EXPECT_EQ(**c.recv_for(1h), 2);
    select(on_recv(c, [](std::optional<std::unique_ptr<int>> p) { EXPECT_EQ(*p.value(), 3); }));
    EXPECT_FALSE(c.recv().has_value());
    EXPECT_TRUE(c.is_closed());
  });
}

TEST_P(closing, wakes_all_who_wait_to_receive) {
  run([](crew& all) {
    channel<int> c{1};
    channel<int> never;
    std::atomic<int> told{0};
    for (int i = 0; i < 4; ++i) {
      all.start([&] { told += c.recv() == std::nullopt ? 1 : 0; });
      all.start([&] {
        std::optional<int> got;
        told += c.recv_until(got, std::chrono::steady_clock::now() + 1h) == channel_status::closed ? 1 : 0;
      });
      all.start([&] {
        select(on_recv(never, [](std::optional<int>) { ADD_FAILURE(); }),
               on_recv(c, [&](std::optional<int> v) { told += v ? 0 : 1; }), on_timeout(1h, [] { ADD_FAILURE(); }));
      });
    }
    await_receivers(c, 12);
    c.close();
    await([&] { return told == 12; });
    all.join();
    EXPECT_EQ(never.statistics().waiting_receivers, 0u);
  });
}

TEST_P(closing, wakes_all_who_wait_to_send_and_leaves_them_their_values) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 1u}) {
      channel<std::unique_ptr<int>> c{capacity};
      for (std::size_t i = 0; i < capacity; ++i) static_cast<void>(c.send(nullptr));
      std::atomic<int> told{0};
      for (int i = 0; i < 3; ++i) {
        all.start([&, i] {
          auto mine = std::make_unique<int>(i);
          EXPECT_EQ(c.send(std::move(mine)), channel_status::closed);
          EXPECT_EQ(*mine, i);
          ++told;
        });
        all.start([&, i] {
          auto mine = std::make_unique<int>(i);
          EXPECT_EQ(c.send_for(std::move(mine), 1h), channel_status::closed);
          EXPECT_EQ(*mine, i);
          ++told;
        });
        all.start([&] {
          select(on_send(c, std::make_unique<int>(1), [&](channel_status s) {
            EXPECT_EQ(s, channel_status::closed);
            ++told;
          }));
        });
      }
      await_senders(c, 9);
      c.close();
      all.join();
      EXPECT_EQ(told, 9);
      EXPECT_EQ(c.size(), capacity);
    }
  });
}

TEST_P(closing, by_many_at_once_and_amid_traffic_loses_nothing) {
  run([](crew& all) {
    for (int round = 0; round < scaled(GetParam().migrate_always ? 20 : 60); ++round) {
      channel<int> c{static_cast<std::size_t>(round % 4)};
      std::atomic<int> sent{0};
      std::atomic<int> received{0};
      for (int party = 0; party < 2; ++party) {
        all.start([&] {
          while (c.send(1) == channel_status::ok) ++sent;
        });
        all.start([&] {
          for ([[maybe_unused]] const int v : c) ++received;
        });
      }
      for (int party = 0; party < 2; ++party)
        all.start([&] {
          await([&] { return received >= round; });
          c.close();
        });
      all.join();
      EXPECT_EQ(sent, received);
    }
  });
}

// One select may wait on the closed channel in several cases.

TEST_P(closing, ends_a_select_that_waits_on_it_in_two_receives) {
  run([](crew& all) {
    for (int round = 0; round < scaled(50); ++round) {
      channel<int> c;
      std::atomic<int> told{0};
      all.start([&] {
        const auto closed = [&](std::optional<int> v) { told += v ? 0 : 1; };
        select(on_recv(c, closed), on_recv(c, closed));
      });
      if (round % 2 == 0) await_receivers(c, 2);
      c.close();
      all.join();
      EXPECT_EQ(told, 1);
    }
  });
}

TEST_P(closing, ends_a_select_that_waits_on_it_in_two_sends) {
  run([](crew& all) {
    for (int round = 0; round < scaled(50); ++round) {
      channel<int> c{1};
      static_cast<void>(c.send(0));
      std::atomic<int> told{0};
      all.start([&] {
        const auto closed = [&](channel_status s) { told += s == channel_status::closed ? 1 : 0; };
        select(on_send(c, 1, closed), on_send(c, 2, closed));
      });
      if (round % 2 == 0) await_senders(c, 2);
      c.close();
      all.join();
      EXPECT_EQ(told, 1);
      EXPECT_EQ(c.size(), 1u);
    }
  });
}

TEST_P(closing, ends_a_select_that_waits_on_it_in_a_receive_and_a_send) {
  run([](crew& all) {
    for (int round = 0; round < scaled(50); ++round) {
      channel<int> c;
      std::atomic<int> told{0};
      all.start([&] {
        select(on_recv(c, [&](std::optional<int> v) { told += v ? 0 : 1; }),
               on_send(c, 1, [&](channel_status s) { told += s == channel_status::closed ? 1 : 0; }));
      });
      if (round % 2 == 0) {
        await_receivers(c, 1);
        await_senders(c, 1);
      }
      c.close();
      all.join();
      EXPECT_EQ(told, 1);
    }
  });
}

TEST_P(closing, of_two_channels_at_once_amid_selects_in_both_orders) {
  run([](crew& all) {
    for (int round = 0; round < scaled(GetParam().migrate_always ? 5 : 30); ++round) {
      channel<int> work, quit;
      std::atomic<int> told{0};
      constexpr int each = 20;
      const auto closed = [&](std::optional<int> v) { told += v ? 0 : 1; };
      for (int i = 0; i < each / (on_threads() ? 4 : 1); ++i) {
        all.start([&] { select(on_recv(work, closed), on_recv(quit, closed)); });
        all.start([&] { select(on_recv(quit, closed), on_recv(work, closed), on_recv(quit, closed)); });
      }
      all.start([&] { quit.close(); });
      if (round % 2 == 0) await([&] { return work.statistics().waiting_receivers > 0 || told > 0; });
      work.close();
      all.join();
      EXPECT_EQ(told, 2 * (each / (on_threads() ? 4 : 1)));
    }
  });
}

// A woken waiter may destroy the channel before the waker has returned.

struct parcel {
  channel<int> c;
  explicit parcel(std::size_t capacity) : c{capacity} {}
};

class going_away : public in_worlds {
 protected:
  static int rounds() { return scaled(GetParam().migrate_always ? 20 : 300); }
};
INSTANTIATE_TEST_SUITE_P(in, going_away, all_worlds(), name_of);

TEST_P(going_away, at_the_hands_of_the_receiver) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 1u}) {
      channel<parcel*> parcels{1};
      all.start([&] {
        for (int i = 0; i < rounds(); ++i) {
          auto* p = new parcel{capacity};
          static_cast<void>(parcels.send(p));
          EXPECT_EQ(p->c.send(i), channel_status::ok);
        }
      });
      for (int i = 0; i < rounds(); ++i) {
        const std::unique_ptr<parcel> p{parcels.recv().value()};
        if (i % 3 == 0) this_fiber::yield();
        if (i % 2 == 0) EXPECT_EQ(p->c.recv(), i);
        else select(on_recv(p->c, [i](std::optional<int> v) { EXPECT_EQ(v, i); }));
      }
      all.join();
    }
  });
}

TEST_P(going_away, at_the_hands_of_the_sender) {
  run([](crew& all) {
    channel<parcel*> parcels{1};
    all.start([&] {
      for (int i = 0; i < rounds(); ++i) {
        parcel* p = parcels.recv().value();
        if (i % 2 == 0) EXPECT_EQ(p->c.recv(), i);
        else EXPECT_EQ(p->c.recv_for(1h), i);
      }
    });
    for (int i = 0; i < rounds(); ++i) {
      const auto p = std::make_unique<parcel>(std::size_t{0});
      static_cast<void>(parcels.send(p.get()));
      if (i % 3 == 0) this_fiber::yield();
      if (i % 2 == 0) EXPECT_EQ(p->c.send(i), channel_status::ok);
      else select(on_send(p->c, i, [](channel_status) {}));
    }
    all.join();
  });
}

TEST_P(going_away, at_the_hands_of_who_was_told_of_its_closing) {
  run([](crew& all) {
    channel<parcel*> parcels{1};
    all.start([&] {
      for (int i = 0; i < rounds(); ++i) {
        auto* p = new parcel{0};
        static_cast<void>(parcels.send(p));
        p->c.close();
      }
    });
    for (int i = 0; i < rounds(); ++i) {
      const std::unique_ptr<parcel> p{parcels.recv().value()};
      if (i % 3 == 0) this_fiber::yield();
      if (i % 2 == 0) EXPECT_EQ(p->c.recv(), std::nullopt);
      else EXPECT_EQ(p->c.send(i), channel_status::closed);
    }
    all.join();
  });
}

TEST_P(going_away, at_the_hands_of_the_last_of_many_who_were_told_of_its_closing) {
  run([](crew& all) {
    for (int i = 0; i < rounds() / 4; ++i) {
      struct counted {
        channel<int> c;
        std::atomic<int> inside{4};
      };
      auto* p = new counted;
      const auto leave = [p] {
        if (--p->inside == 0) delete p;
      };
      const auto closed = [](std::optional<int> v) { EXPECT_EQ(v, std::nullopt); };
      all.start([=] { select(on_recv(p->c, closed), on_recv(p->c, closed)), leave(); });
      all.start([=] { closed(p->c.recv()), leave(); });
      all.start([=] { closed(p->c.recv_for(1us)), leave(); });
      all.start([=] { select(on_recv(p->c, closed), on_timeout(1us, [] {}), on_recv(p->c, closed)), leave(); });
      if (i % 2 == 0) await([&] { return p->c.statistics().waiting_receivers >= 3; });
      p->c.close();
      if (i % 16 == 0) all.join();
    }
    all.join();
  });
}

TEST_P(going_away, with_a_shared_owner) {
  run([](crew& all) {
    for (int i = 0; i < rounds(); ++i) {
      auto c = std::make_shared<channel<int>>();
      all.start([c, i] { static_cast<void>(c->send(i)); });
      EXPECT_EQ(c->recv(), i);
      c.reset();
      if (i % 16 == 0) all.join();
    }
    all.join();
  });
}

}  // namespace
}  // namespace ramie
