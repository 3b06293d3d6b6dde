// Fiber actors, and mailboxes with a bound.
#include <ramie/actor/mailbox.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/patterns/dead_letters.hpp>
#include <ramie/sync/event.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct get {};
struct gate {};

class mailboxes : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, mailboxes, few_and_many());

TEST_P(mailboxes, give_messages_in_order_until_stopped) {
  in_runtime([] {
    std::vector<int> seen;
    bool was_stopped = false;
    auto f = spawn_actor<int, std::string>([&](mailbox<int, std::string>& box) {
      while (auto m = box.receive()) {
        if (std::holds_alternative<int>(*m)) seen.push_back(std::get<int>(*m));
        else seen.push_back(static_cast<int>(std::get<std::string>(*m).size()));
      }
      was_stopped = box.stopped();
      EXPECT_FALSE(box.receive().has_value());
    });
    for (int i = 0; i < 100; ++i) {
      f.tell(i);
      f.tell(std::string(static_cast<std::size_t>(i), 'x'));
    }
    f.stop();
    EXPECT_EQ(f.join().kind(), exit_kind::stopped);
    ASSERT_EQ(seen.size(), 200u);
    for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(seen[i], static_cast<int>(i / 2));
    EXPECT_TRUE(was_stopped);
  });
}

TEST_P(mailboxes, take_from_many_senders) {
  const int each = scaled(5000);
  runtime rt{options()};
  std::atomic<int> got{0};
  auto f = rt.run([&] {
    return spawn_actor<int>([&](mailbox<int>& box) {
      while (auto m = box.receive()) got += std::get<int>(*m);
    });
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i) f.tell(1);
    });
  rt.run([&] {
    for (int i = 0; i < each; ++i) {
      f.tell(1);
      if (i % 8 == 0) this_fiber::yield();
    }
  });
  for (auto& t : threads) t.join();
  f.stop();
  f.join();
  EXPECT_EQ(got.load(), 3 * each);
}

TEST_P(mailboxes, wait_no_longer_than_told) {
  in_runtime([] {
    event empty, empty_again;
    auto f = spawn_actor<int>([&](mailbox<int>& box) {
      EXPECT_FALSE(box.receive_for(1ms).has_value());
      EXPECT_FALSE(box.stopped());
      empty.set();
      EXPECT_EQ(std::get<int>(*box.receive_for(1h)), 5);
      EXPECT_FALSE(box.receive_for(0ms).has_value());
      empty_again.set();
      EXPECT_FALSE(box.receive_for(1h).has_value());
      EXPECT_TRUE(box.stopped());
    });
    empty.wait();
    f.tell(5);
    empty_again.wait();
    f.stop();
    EXPECT_EQ(f.join().kind(), exit_kind::stopped);
  });
}

TEST_P(mailboxes, let_messages_be_picked) {
  in_runtime([] {
    std::vector<std::string> seen;
    auto f = spawn_actor<int, std::string>([&](mailbox<int, std::string>& box) {
      for (int wanted : {3, 1}) {
        auto m = box.receive_if<int>([&](int i) { return i == wanted; });
        seen.push_back(std::to_string(*m));
      }
      EXPECT_FALSE(box.receive_if_for<int>(1ms, [](int i) { return i == 77; }).has_value());
      seen.push_back(*box.receive_if<std::string>([](const std::string&) { return true; }));
      while (auto m = box.receive()) seen.push_back(std::to_string(std::get<int>(*m)));
    });
    for (int i = 0; i < 3; ++i) f.tell(i);
    f.tell(std::string{"s"});
    this_fiber::yield();
    f.tell(3);
    f.tell(4);
    await([&] { return f.mail_count() == 0; });
    f.stop();
    f.join();
    EXPECT_EQ(seen, (std::vector<std::string>{"3", "1", "s", "0", "2", "4"}));
  });
}

TEST_P(mailboxes, are_left_when_their_actor_is_killed) {
  in_runtime([] {
    for (int i = 0; i < scaled(100); ++i) {
      auto waits = spawn_actor<int>([](mailbox<int>& box) {
        while (box.receive()) {
        }
        EXPECT_TRUE(box.stopped());
      });
      auto sleeps = spawn_actor<int>([](mailbox<int>&) { this_fiber::sleep_for(1000h); });
      auto throws = spawn_actor<int>([](mailbox<int>&) { throw std::runtime_error{"enough"}; });
      if (i % 2 == 0) this_fiber::yield();
      waits.kill();
      sleeps.kill();
      EXPECT_EQ(waits.join().kind(), exit_kind::killed);
      EXPECT_EQ(sleeps.join().kind(), exit_kind::killed);
      EXPECT_EQ(throws.join().kind(), exit_kind::failed);
    }
  });
}

TEST_P(mailboxes, end_with_their_runtime) {
  // One that has not begun when the runtime shuts down does not begin.
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  {
    runtime rt{options()};
    rt.run([&] {
      for (int i = 0; i < 50; ++i)
        spawn_actor<int>([&](mailbox<int>& box) {
          ++begun;
          while (box.receive()) {
          }
          ++ended;
        });
      while (begun.load() == 0) this_fiber::yield();
    });
  }
  EXPECT_GE(begun.load(), 1);
  EXPECT_EQ(ended.load(), begun.load());
}

TEST_P(mailboxes, hear_of_ends) {
  class mortal : public actor<mortal> {
   public:
    void on(get) { throw std::runtime_error{"gone"}; }
  };
  in_runtime([] {
    auto m = spawn_actor<mortal>();
    std::vector<exit_kind> heard;
    auto f = spawn_actor<down, exit_signal>([&](mailbox<down, exit_signal>& box) {
      box.monitor(m);
      box.link(m);
      m.tell(get{});
      for (int i = 0; i < 2; ++i) {
        auto got = box.receive();
        heard.push_back(std::visit([](auto& s) { return s.reason.kind(); }, *got));
      }
    });
    EXPECT_EQ(f.join().kind(), exit_kind::stopped);
    EXPECT_EQ(heard, (std::vector<exit_kind>{exit_kind::failed, exit_kind::failed}));
  });
}

/// Waits at a gate, then sums up.
class slow_adder : public actor<slow_adder> {
 public:
  explicit slow_adder(fiber_tests::event& e) : go_{e} {}
  void on(gate) { go_.wait(); }
  void on(int i) { seen_.push_back(i); }
  std::vector<int> on(get) { return seen_; }

 private:
  fiber_tests::event& go_;
  std::vector<int> seen_;
};

actor_ref<slow_adder> shut_in(fiber_tests::event& go, overflow policy) {
  auto a = spawn_actor<slow_adder>(actor_options{.mailbox_capacity = 3, .overflow = policy}, go);
  a.tell(gate{});
  await([&] { return go.parked() == 1; });
  return a;
}

TEST_P(mailboxes, refuse_or_drop_what_does_not_fit) {
  in_runtime([] {
    const std::uint64_t full_before = dead_letters().full;
    {
      fiber_tests::event go;
      auto a = shut_in(go, overflow::fail);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(a.tell(i), tell_status::ok);
      EXPECT_EQ(a.tell(3), tell_status::full);
      EXPECT_THROW(a.ask(get{}), mailbox_full);
      EXPECT_EQ(a.mail_count(), 3u);
      go.set();
      await([&] { return a.mail_count() == 0; });
      EXPECT_EQ(a.ask(get{}), (std::vector<int>{0, 1, 2}));
      stop_and_join(a);
    }
    {
      fiber_tests::event go;
      auto a = shut_in(go, overflow::drop_newest);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(a.tell(i), tell_status::ok);
      EXPECT_EQ(a.tell(3), tell_status::dropped);
      a.stop();  // always fits
      go.set();
      EXPECT_EQ(a.join().kind(), exit_kind::stopped);
    }
    {
      fiber_tests::event go;
      auto a = shut_in(go, overflow::drop_oldest);
      for (int i = 0; i < 6; ++i) EXPECT_EQ(a.tell(i), tell_status::ok);
      EXPECT_EQ(a.mail_count(), 3u);
      go.set();
      await([&] { return a.mail_count() == 0; });
      EXPECT_EQ(a.ask(get{}), (std::vector<int>{3, 4, 5}));
      stop_and_join(a);
    }
    EXPECT_EQ(dead_letters().full - full_before, 2u + 1u + 3u);
  });
}

// A sender that drops a message must not count along with the actor, which handles others meanwhile.
TEST_P(mailboxes, keep_their_count_while_they_drop_the_oldest) {
  runtime rt{options()};
  fiber_tests::event go;
  auto a = rt.run([&] {
    return spawn_actor<slow_adder>(actor_options{.mailbox_capacity = 3, .overflow = overflow::drop_oldest}, go);
  });
  const int each = scaled(20'000);
  std::thread other{[&] {
    for (int i = 0; i < each; ++i) a.tell(i);
  }};
  rt.run([&] {
    for (int i = 0; i < each; ++i) {
      a.tell(i);
      if (i % 16 == 0) this_fiber::yield();
    }
  });
  other.join();
  rt.run([&] {
    a.ask(get{});  // what was sent before is handled
    EXPECT_EQ(a.mail_count(), 0u);
    stop_and_join(a);
  });
}

TEST_P(mailboxes, make_senders_wait) {
  in_runtime([] {
    fiber_tests::event go;
    auto a = shut_in(go, overflow::block_sender);
    std::vector<join_handle<void>> senders;
    const int each = scaled(500);
    for (int s = 0; s < 4; ++s)
      senders.push_back(spawn([=] {
        for (int i = 0; i < each; ++i) {
          EXPECT_EQ(a.tell(s), tell_status::ok);
          EXPECT_LE(a.mail_count(), 3u);
        }
      }));
    auto asker = spawn([a] { return a.ask(get{}).size(); });
    auto given_up = spawn([a] {
      for (;;) a.tell(9);
    });
    this_fiber::yield();
    given_up.request_stop();
    EXPECT_THROW(given_up.join(), cancelled);
    go.set();
    for (auto& s : senders) s.join();
    asker.join();
    std::vector<int> counts(10);
    for (const int i : a.ask(get{})) ++counts[static_cast<std::size_t>(i)];
    for (std::size_t s = 0; s < 4; ++s) EXPECT_EQ(counts[s], each);
    stop_and_join(a);
  });
}

TEST_P(mailboxes, let_a_sender_in_for_urgent_mail_too) {
  in_runtime([] {
    fiber_tests::event go;
    auto a = shut_in(go, overflow::block_sender);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(a.tell_urgent(i), tell_status::ok);
    auto sender = spawn([a] { return a.tell(4); });
    this_fiber::yield();
    go.set();
    EXPECT_EQ(sender.join(), tell_status::ok);
    EXPECT_EQ(a.ask(get{}).size(), 4u);
    stop_and_join(a);
  });
}

TEST_P(mailboxes, let_waiting_senders_go_when_the_actor_ends) {
  in_runtime([] {
    fiber_tests::event go;
    auto a = shut_in(go, overflow::block_sender);
    for (int i = 0; i < 3; ++i) a.tell(i);
    std::vector<join_handle<tell_status>> senders;
    for (int s = 0; s < 4; ++s) senders.push_back(spawn([a] { return a.tell(1); }));
    auto asker = spawn([a] { EXPECT_THROW(a.ask(get{}), actor_down); });
    this_fiber::yield();
    a.kill();
    for (auto& s : senders) EXPECT_EQ(s.join(), tell_status::down);
    asker.join();
    a.join();
  });
}

TEST_P(mailboxes, of_fiber_actors_may_be_bounded_too) {
  runtime rt{options()};
  std::atomic<int> sum{0};
  auto f = rt.run([&] {
    return spawn_actor<int>(actor_options{.mailbox_capacity = 2}, [&](mailbox<int>& box) {
      while (auto m = box.receive()) sum += std::get<int>(*m);
    });
  });
  const int each = scaled(2000);
  std::thread other{[&] {
    for (int i = 0; i < each; ++i) f.tell(1);
  }};
  rt.run([&] {
    for (int i = 0; i < each; ++i) f.tell(1);
  });
  other.join();
  f.stop();
  f.join();
  EXPECT_EQ(sum.load(), 2 * each);
}

TEST_P(mailboxes, never_block_an_actor_on_itself) {
  class chatty : public actor<chatty> {
   public:
    void on(gate) {
      for (int i = 0; i < 10; ++i) EXPECT_EQ(self().tell(i), tell_status::ok);
    }
    void on(int) { ++count_; }
    int on(get) { return count_; }

   private:
    int count_ = 0;
  };
  in_runtime([] {
    auto c = spawn_actor<chatty>(actor_options{.mailbox_capacity = 2});
    c.tell(gate{});
    await([&] { return c.ask(get{}) == 10; });
    stop_and_join(c);
  });
}

}  // namespace
}  // namespace ramie
