// Stop requests, shutdown, deadlines and timeouts in the middle of channel operations: an element is either delivered
// or still with its sender.
#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/scope.hpp>

#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;

constexpr auto unexpected = [](auto&&...) { ADD_FAILURE() << "the wrong case"; };

class stopping : public in_worlds {
 protected:
  static int rounds() { return scaled(GetParam().migrate_always ? 100 : 1000); }
};
INSTANTIATE_TEST_SUITE_P(in, stopping, all_worlds(), name_of);

TEST_P(stopping, ends_each_kind_of_wait) {
  if (on_threads()) GTEST_SKIP() << "nobody can stop a thread";
  run([](crew&) {
    channel<std::unique_ptr<int>> c;
    channel<int> full{1};
    static_cast<void>(full.send(1));
    auto kept = std::make_unique<int>(8);
    int number = 5;
    std::vector<join_handle<void>> all;
    all.push_back(spawn([&] { c.recv(); }));
    all.push_back(spawn([&] { c.recv_for(1h); }));
    all.push_back(spawn([&] {
      for (auto& p : c) unexpected(p);
    }));
    all.push_back(spawn([&] { select(on_recv(c, unexpected)); }));
    all.push_back(spawn([&] { select(on_recv(c, unexpected), on_timeout(1h, unexpected)); }));
    all.push_back(spawn([&] { static_cast<void>(full.send(number)); }));
    all.push_back(spawn([&] { static_cast<void>(full.send_for(2, 1h)); }));
    all.push_back(spawn([&] { select(on_send(full, 1, unexpected), on_recv(c, unexpected)); }));
    await_receivers(c, 6);
    await_senders(full, 3);
    for (auto& h : all) h.request_stop();
    for (auto& h : all) EXPECT_THROW(h.join(), cancelled);
    EXPECT_EQ(c.statistics().waiting_receivers, 0u);
    EXPECT_EQ(full.statistics().waiting_senders, 0u);

    auto sender = spawn([&] { static_cast<void>(c.send(std::move(kept))); });
    await_senders(c, 1);
    sender.request_stop();
    EXPECT_THROW(sender.join(), cancelled);
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(*kept, 8);
    EXPECT_EQ(full.recv(), 1);
    EXPECT_EQ(full.try_recv(), std::nullopt);
  });
}

// Calls that may wait, and need not, hear of it now and then: tests/ready_points.test.cpp.
TEST_P(stopping, concerns_only_what_may_wait) {
  if (on_threads()) GTEST_SKIP() << "nobody can stop a thread";
  run([](crew&) {
    channel<int> c{2};
    std::atomic<bool> go{false};
    auto h = spawn([&] {
      await([&] { return go.load(); });
      EXPECT_TRUE(this_fiber::stop_requested());
      EXPECT_EQ(c.try_send(1), channel_status::ok);
      EXPECT_EQ(select(on_send(c, 2, [](channel_status) {}), otherwise([] { ADD_FAILURE(); })), 0u);
      EXPECT_EQ(c.try_recv(), 1);
      EXPECT_EQ(select(on_recv(c, [](std::optional<int> v) { EXPECT_EQ(v, 2); }), otherwise([] {})), 0u);
      EXPECT_EQ(c.try_recv(), std::nullopt);
      EXPECT_EQ(select(on_recv(c, unexpected), otherwise([] {})), 1u);
      EXPECT_THROW(c.recv(), cancelled);
      EXPECT_THROW(select(on_recv(c, unexpected)), cancelled);
      EXPECT_THROW(c.recv_for(1h), cancelled);
      shield([&] { EXPECT_EQ(c.recv_for(10us), std::nullopt); });
      c.close();
      EXPECT_EQ(c.try_recv(), std::nullopt);
    });
    h.request_stop();
    go = true;
    h.join();
  });
}

TEST_P(stopping, a_sender_in_the_middle_delivers_or_keeps) {
  if (on_threads()) GTEST_SKIP() << "nobody can stop a thread";
  run([](crew&) {
    channel<std::unique_ptr<int>> c;
    std::mt19937 random{7};
    for (int i = 0; i < rounds(); ++i) {
      auto mine = std::make_unique<int>(i);
      std::atomic<bool> over{false};
      bool delivered = false;
      bool kept = false;
      const bool by_select = i % 4 == 3;
      auto sender = spawn([&] {
        try {
          // A select's value is in the case: here a copy with the same number.
          if (by_select) select(on_send(c, std::make_unique<int>(i), [](channel_status) {}));
          else static_cast<void>(c.send(std::move(mine)));
          delivered = true;
        } catch (const cancelled&) {
          kept = true;
        }
        over = true;
      });
      auto stopper = spawn([&, turns = random() % 4] {
        for (unsigned n = 0; n < turns; ++n) this_fiber::yield();
        sender.request_stop();
      });
      int received = 0;
      const auto receive = [&](std::optional<std::unique_ptr<int>> got) {
        if (!got) return;
        EXPECT_EQ(**got, i);
        ++received;
      };
      for (unsigned turns = random() % 4; turns != 0; --turns) this_fiber::yield();
      while (!over) {
        receive(c.try_recv());
        this_fiber::yield();
      }
      receive(c.try_recv());
      stopper.join();
      sender.join();
      ASSERT_EQ(received, delivered ? 1 : 0);
      ASSERT_NE(delivered, kept);
      if (!by_select) {
        ASSERT_EQ(mine != nullptr, kept);
      }
    }
  });
}

TEST_P(stopping, a_receiver_in_the_middle_takes_or_leaves) {
  if (on_threads()) GTEST_SKIP() << "nobody can stop a thread";
  run([](crew&) {
    channel<std::unique_ptr<int>> c;
    channel<int> other;
    std::mt19937 random{8};
    for (int i = 0; i < rounds(); ++i) {
      std::atomic<bool> over{false};
      int received = 0;
      auto receiver = spawn([&] {
        try {
          if (i % 2 == 0) {
            received += **c.recv() == i ? 1 : 100;
          } else {
            select(on_recv(other, unexpected),
                   on_recv(c, [&](std::optional<std::unique_ptr<int>> v) { received += **v == i ? 1 : 100; }));
          }
        } catch (const cancelled&) {
        }
        over = true;
      });
      auto stopper = spawn([&, turns = random() % 4] {
        for (unsigned n = 0; n < turns; ++n) this_fiber::yield();
        receiver.request_stop();
      });
      for (unsigned turns = random() % 4; turns != 0; --turns) this_fiber::yield();
      auto mine = std::make_unique<int>(i);
      int sent = 0;
      while (!over && sent == 0) {
        if (c.try_send(std::move(mine)) == channel_status::ok) ++sent;
        else this_fiber::yield();
      }
      stopper.join();
      receiver.join();
      ASSERT_EQ(received, sent);
      ASSERT_EQ(mine == nullptr, sent == 1);
    }
  });
}

TEST_P(stopping, a_scope_of_talkers_ends_them_all) {
  if (on_threads()) GTEST_SKIP() << "nobody can stop a thread";
  run([](crew&) {
    channel<int> a;
    channel<int> b{1};
    scope s;
    for (int i = 0; i < 4; ++i) {
      s.spawn([&] {
        for (;;) static_cast<void>(a.send(1));
      });
      s.spawn([&] {
        for (;;) select(on_recv(a, [](auto) {}), on_send(b, 1, [](auto) {}));
      });
    }
    s.spawn([&] {
      for (int i = 0; i < 20; ++i) b.recv();
      throw std::runtime_error{"enough"};
    });
    EXPECT_THROW(s.join(), std::runtime_error);
    EXPECT_EQ(a.statistics().waiting_senders + a.statistics().waiting_receivers, 0u);
    EXPECT_EQ(b.statistics().waiting_senders, 0u);
  });
}

TEST_P(stopping, by_shutdown_ends_all_who_wait) {
  if (on_threads()) GTEST_SKIP() << "no runtime";
  channel<int> c;
  channel<int> full{1};
  static_cast<void>(full.send(0));
  std::atomic<int> ended{0};
  {
    runtime rt{GetParam().options()};
    for (int i = 0; i < 20; ++i)
      rt.spawn([&, i] {
          try {
            if (i % 3 == 0) c.recv();
            else if (i % 3 == 1) static_cast<void>(full.send(1));
            else select(on_recv(c, unexpected), on_send(full, 2, unexpected), on_timeout(1h, unexpected));
          } catch (const cancelled&) {
            ++ended;
          }
        }).detach();
    await([&] { return c.statistics().waiting_receivers == 13 && full.statistics().waiting_senders == 13; });
  }
  EXPECT_EQ(ended, 20);
  EXPECT_EQ(full.recv(), 0);
  EXPECT_EQ(c.statistics().waiting_receivers + full.statistics().waiting_senders, 0u);
}

// Deadlines and timeouts, on threads too.

TEST_P(stopping, by_a_deadline_leaves_the_value_with_its_sender) {
  run([](crew&) {
    channel<std::unique_ptr<int>> c;
    auto mine = std::make_unique<int>(4);
    EXPECT_THROW(with_timeout(100us, [&] { static_cast<void>(c.send(std::move(mine))); }), timeout_error);
    ASSERT_NE(mine, nullptr);
    EXPECT_THROW(with_timeout(100us, [&] { c.recv(); }), timeout_error);
    EXPECT_THROW(with_timeout(100us, [&] { select(on_recv(c, unexpected), on_timeout(1h, unexpected)); }),
                 timeout_error);
    EXPECT_EQ(with_timeout(1h, [&] { return c.recv_for(10us) == std::nullopt; }), true)
        << "a timeout of its own that comes first is its own";
    EXPECT_EQ(c.statistics().waiting_receivers + c.statistics().waiting_senders, 0u);
  });
}

TEST_P(stopping, by_timeouts_on_both_ends_keeps_the_books) {
  run([](crew& all) {
    channel<int> c;
    channel<int> second{1};
    const int n = rounds() / 2;
    std::atomic<long> sent{0};
    std::atomic<long> received{0};
    std::atomic<int> sending{2};
    for (int party = 0; party < 2; ++party) {
      all.start([&, party] {
        std::mt19937 random{static_cast<unsigned>(party)};
        for (int i = 1; i <= n; ++i) {
          const auto time = std::chrono::microseconds{random() % 30};
          if (i % 2 == 0) {
            if (c.send_for(i, time) == channel_status::ok) sent += i;
          } else {
            const auto count = [&](channel_status) { sent += i; };
            select(on_send(c, i, count), on_send(second, i, count), on_timeout(time, [] {}));
          }
        }
        if (--sending == 0) {
          c.close();
          second.close();
        }
      });
      all.start([&, party] {
        std::mt19937 random{static_cast<unsigned>(party) + 10};
        const auto count = [&](std::optional<int> v) { received += v.value_or(0); };
        for (int i = 0; !c.is_closed() || !second.is_closed(); ++i) {
          const auto time = std::chrono::microseconds{random() % 30};
          if (i % 2 == 0) {
            count(c.recv_for(time));
          } else {
            select(on_recv(second, count), on_recv(c, count), on_timeout(time, [] {}));
          }
        }
        for (const int v : second) received += v;
      });
    }
    all.join();
    EXPECT_EQ(sent, received);
    EXPECT_EQ(c.statistics().waiting_receivers + c.statistics().waiting_senders, 0u);
  });
}

}  // namespace
}  // namespace ramie
