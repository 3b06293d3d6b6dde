// Actors end to end: told, asked, stopped, joined.
#include <ramie/actor/actor.hpp>

#include <ramie/fiber/testing.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace std::chrono_literals;
using fiber_tests::scaled;

struct deposit {
  int amount;
};
struct balance {};
struct explode {};

class account : public actor<account> {
 public:
  explicit account(int start) : total_{start} {}
  void on(deposit m) { total_ += m.amount; }
  int on(balance) { return total_; }
  void on(explode) { throw std::runtime_error{"bang"}; }

 private:
  int total_;
};

class actors : public fiber_tests::with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, actors, fiber_tests::few_and_many());

TEST_P(actors, handle_what_they_are_told_and_asked) {
  in_runtime([] {
    auto acc = spawn_actor<account>(100);
    EXPECT_EQ(acc.tell(deposit{5}), tell_status::ok);
    EXPECT_EQ(acc.ask(balance{}), 105);
    EXPECT_EQ(acc.ask_for(1h, balance{}), 105);
    EXPECT_TRUE(acc.alive());
    acc.stop();
    EXPECT_EQ(acc.join().kind(), exit_kind::stopped);
    EXPECT_FALSE(acc.alive());
    EXPECT_EQ(acc.tell(deposit{5}), tell_status::down);
    EXPECT_THROW(acc.ask(balance{}), actor_down);
  });
}

TEST_P(actors, end_with_the_exception_that_left_a_handler) {
  in_runtime([] {
    auto acc = spawn_actor<account>(1);
    EXPECT_THROW(acc.ask(explode{}), actor_down);
    const exit_reason why = acc.join();
    EXPECT_EQ(why.kind(), exit_kind::failed);
    EXPECT_NE(why.what().find("bang"), std::string::npos);
  });
}

TEST_P(actors, keep_the_order_of_each_sender) {
  struct numbered {
    int sender;
    int number;
  };
  struct sum {};
  class checker : public actor<checker> {
   public:
    void on(numbered m) {
      auto& last = last_[static_cast<std::size_t>(m.sender)];
      in_order_ = in_order_ && m.number == last + 1;
      last = m.number;
      ++count_;
    }
    int on(sum) { return in_order_ ? count_ : -1; }

   private:
    std::vector<int> last_ = std::vector<int>(4, -1);
    bool in_order_ = true;
    int count_ = 0;
  };
  const int each = scaled(20000);
  in_runtime([&] {
    auto c = spawn_actor<checker>();
    std::vector<join_handle<void>> senders;
    for (int s = 0; s < 4; ++s)
      senders.push_back(spawn([=] {
        for (int i = 0; i < each; ++i) {
          c.tell(numbered{s, i});
          if (i % 64 == 0) this_fiber::yield();
        }
      }));
    for (auto& s : senders) s.join();
    EXPECT_EQ(c.ask(sum{}), 4 * each);
    c.stop();
    c.join();
  });
}

TEST_P(actors, take_messages_that_only_move) {
  class taker : public actor<taker> {
   public:
    std::unique_ptr<int> on(std::unique_ptr<int> p) {
      ++*p;
      return p;
    }
    std::size_t on(const std::string& s) { return s.size(); }
  };
  in_runtime([] {
    auto t = spawn_actor<taker>();
    EXPECT_EQ(*t.ask(std::make_unique<int>(4)), 5);
    EXPECT_EQ(t.ask(std::string(1000, 'x')), 1000u);
    t.tell(std::make_unique<int>(1));
    t.stop();
    t.join();
  });
}

TEST_P(actors, take_messages_of_any_alignment) {
  struct alignas(64) line {
    int number;
    std::string text;
  };
  class reader : public actor<reader> {
   public:
    void on(const line& l) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&l) % 64, 0u);
      if (l.number % 8 == 5 && l.number > stashed_) {
        stashed_ = l.number;
        stash();
        return;
      }
      unstash_all();
      sum_ += l.number;
    }
    int on(balance) { return sum_; }

   private:
    int sum_ = 0;
    int stashed_ = 0;
  };
  in_runtime([] {
    auto r = spawn_actor<reader>();
    for (int i = 0; i < 100; ++i) r.tell(line{i, "long enough to need memory of its own"});
    EXPECT_EQ(r.ask(balance{}), 99 * 50);
    r.tell(line{1000, "nobody may read this"});
    r.kill();
    EXPECT_EQ(r.join().kind(), exit_kind::killed);
  });
}

// Its destructor runs while the exception is still being handled.
TEST_P(actors, may_wait_while_an_exception_ends_them) {
  struct gone {
    std::atomic<int>& count;
    explicit gone(std::atomic<int>& c) : count{c} {}
    ~gone() {
      for (int i = 0; i < 10; ++i) {
        this_fiber::yield();
        try {
          if (i % 2 == 0) throw i;
        } catch (int) {
          this_fiber::yield();
        }
      }
      ++count;
    }
  };
  class failing : public actor<failing> {
   public:
    explicit failing(std::atomic<int>& count) : gone_{count} {}
    void on(explode) { throw std::runtime_error{"bang"}; }

   private:
    gone gone_;
  };
  in_runtime([] {
    std::atomic<int> count{0};
    std::vector<actor_ref<failing>> all;
    for (int i = 0; i < 20; ++i) all.push_back(spawn_actor<failing>(count));
    for (auto& a : all) a.tell(explode{});
    for (auto& a : all) {
      const exit_reason why = a.join();
      EXPECT_EQ(why.kind(), exit_kind::failed);
      EXPECT_NE(why.what().find("bang"), std::string::npos);
    }
    EXPECT_EQ(count.load(), 20);
  });
}

TEST_P(actors, talk_to_plain_threads) {
  runtime rt{options()};
  auto acc = rt.run([] { return spawn_actor<account>(0); });
  std::vector<std::thread> threads;
  const int each = scaled(2000);
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        acc.tell(deposit{1});
        if (i % 16 == 0) {
          EXPECT_GT(acc.ask(balance{}), 0);
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(acc.ask(balance{}), 3 * each);
  acc.stop();
  EXPECT_EQ(acc.join().kind(), exit_kind::stopped);
}

TEST_P(actors, ask_each_other_while_they_handle_messages) {
  struct question {};
  class inner : public actor<inner> {
   public:
    int on(question) {
      this_fiber::yield();
      return 7;
    }
  };
  class outer : public actor<outer> {
   public:
    explicit outer(actor_ref<inner> i) : inner_{std::move(i)} {}
    int on(question) {
      busy_ = true;
      const int got = inner_.ask(question{});
      busy_ = false;
      return got;
    }
    bool on(balance) { return busy_; }  // one message at a time: never true

   private:
    actor_ref<inner> inner_;
    bool busy_ = false;
  };
  in_runtime([] {
    auto i = spawn_actor<inner>();
    auto o = spawn_actor<outer>(i);
    std::vector<join_handle<int>> askers;
    for (int n = 0; n < scaled(1000); ++n)
      askers.push_back(spawn([o] { return o.ask(balance{}) ? -1 : o.ask(question{}); }));
    for (auto& a : askers) EXPECT_EQ(a.join(), 7);
    o.stop();
    i.stop();
    o.join();
    i.join();
  });
}

TEST_P(actors, refuse_to_ask_or_join_themselves) {
  class lonely : public actor<lonely> {
   public:
    bool on(balance) {
      EXPECT_THROW(self().ask(balance{}), usage_error);
      EXPECT_THROW(self().join(), usage_error);
      return true;
    }
  };
  in_runtime([] {
    auto l = spawn_actor<lonely>();
    EXPECT_TRUE(l.ask(balance{}));
    l.stop();
    l.join();
  });
}

TEST_P(actors, are_ended_by_the_runtime) {
  static std::atomic<int> alive{0};
  class counted_actor : public actor<counted_actor> {
   public:
    counted_actor() { ++alive; }
    ~counted_actor() { --alive; }
    void on(balance) { this_fiber::sleep_for(1000h); }
    void on(deposit) {}
  };
  std::vector<actor_ref<counted_actor>> kept;
  {
    runtime rt{options()};
    rt.run([&] {
      for (int i = 0; i < 100; ++i) {
        kept.push_back(spawn_actor<counted_actor>());
        if (i % 3 == 0) kept.back().tell(balance{});
        if (i % 3 == 1) kept.back().tell(deposit{});
      }
    });
  }
  EXPECT_EQ(alive.load(), 0);
  for (auto& a : kept) {
    EXPECT_EQ(a.reason().kind(), exit_kind::shutdown);
    EXPECT_EQ(a.tell(deposit{}), tell_status::down);
  }
}

TEST_P(actors, are_killed_while_a_handler_waits) {
  struct wait_forever {};
  class sleeper : public actor<sleeper> {
   public:
    int on(wait_forever) {
      this_fiber::sleep_for(1000h);
      return 1;
    }
  };
  in_runtime([] {
    for (int i = 0; i < scaled(200); ++i) {
      auto s = spawn_actor<sleeper>();
      auto asker = spawn([s] { EXPECT_THROW(s.ask(wait_forever{}), actor_down); });
      if (i % 2 == 0) this_fiber::yield();
      s.kill();
      EXPECT_EQ(s.join().kind(), exit_kind::killed);
      asker.join();
    }
  });
}

TEST_P(actors, answer_into_futures) {
  in_runtime([] {
    auto acc = spawn_actor<account>(100);
    std::vector<future<int>> replies;
    for (int i = 0; i < 100; ++i) {
      acc.tell(deposit{1});
      replies.push_back(acc.ask_async(balance{}));
    }
    for (int i = 0; i < 100; ++i) EXPECT_EQ(replies[static_cast<std::size_t>(i)].get(), 101 + i);
    static_cast<void>(acc.ask_async(balance{}));  // nobody looks
    auto broken = acc.ask_async(explode{});
    auto too_late = acc.ask_async(balance{});
    EXPECT_THROW(broken.get(), actor_down);
    EXPECT_THROW(too_late.get(), actor_down);
    acc.join();
    EXPECT_THROW(acc.ask_async(balance{}).get(), actor_down);
  });
}

TEST_P(actors, let_a_cancelled_asker_go) {
  struct wait_for {};
  class slow : public actor<slow> {
   public:
    explicit slow(fiber_tests::event& e) : go_{e} {}
    int on(wait_for) {
      go_.wait();
      return 1;
    }
    fiber_tests::event& go_;
  };
  in_runtime([] {
    fiber_tests::event go;
    auto s = spawn_actor<slow>(go);
    auto asker = spawn([s] { return s.ask(wait_for{}); });
    fiber_tests::await([&] { return go.parked() == 1; });
    asker.request_stop();
    EXPECT_THROW(asker.join(), cancelled);
    EXPECT_THROW(s.ask_for(1ms, wait_for{}), timeout_error);
    go.set();
    EXPECT_EQ(s.ask(wait_for{}), 1);
    s.stop();
    s.join();
  });
}

TEST_P(actors, pass_the_exception_of_their_constructor_on) {
  class broken : public actor<broken> {
   public:
    broken() { throw std::runtime_error{"no"}; }
    void on(balance) {}
  };
  in_runtime([] { EXPECT_THROW(spawn_actor<broken>(), std::runtime_error); });
}

// Sending what the actor has no handler for does not compile; this is what the check asks.
static_assert(detail::accepts_message<account, deposit> && detail::accepts_message<account, balance>);
static_assert(!detail::accepts_message<account, std::string> && !detail::accepts_message<account, int*>);
static_assert(detail::accepts_message<mailbox<int, deposit>, deposit> && !detail::accepts_message<mailbox<int>, long>);
static_assert(std::is_same_v<detail::reply_of<account, balance>, int>);

TEST(actors_elsewhere, wander_from_worker_to_worker) {
  class relay : public actor<relay> {
   public:
    explicit relay(actor_ref<account> a) : account_{std::move(a)} {}
    int on(deposit d) {
      account_.tell(d);
      this_fiber::yield();
      const int now = account_.ask(balance{});
      try {
        throw std::runtime_error{"in flight over a suspension"};
      } catch (const std::runtime_error&) {
        this_fiber::yield();
      }
      return now;
    }

   private:
    actor_ref<account> account_;
  };
  runtime_options o;
  o.workers = 2;
  const detail::with_test_options migrating{{.migrate_always = true}};
  runtime rt{o};
  rt.run([] {
    auto acc = spawn_actor<account>(0);
    std::vector<actor_ref<relay>> relays;
    std::vector<future<int>> replies;
    for (int i = 0; i < 8; ++i) relays.push_back(spawn_actor<relay>(acc));
    for (int i = 0; i < scaled(800); ++i)
      replies.push_back(relays[static_cast<std::size_t>(i) % 8].ask_async(deposit{1}));
    for (auto& r : replies) EXPECT_GT(r.get(), 0);
    EXPECT_EQ(acc.ask(balance{}), scaled(800));
    for (auto& r : relays) r.kill();
    for (auto& r : relays) r.join();
    acc.stop();
    acc.join();
  });
}

TEST(actors_elsewhere, are_made_in_a_runtime_that_is_named) {
  runtime one{{.workers = 1}};
  runtime two{{.workers = 2}};
  const auto a = spawn_actor_in<account>(one, 5);
  EXPECT_EQ(a.ask(balance{}), 5);
  const auto named = spawn_actor_in<account>(one, actor_options{.name = "till"}, 7);
  EXPECT_EQ(named.name(), "till");
  int got = 0;
  const auto fiber = spawn_actor_in<int, deposit>(
      one, actor_options{.name = "box"}, [&](mailbox<int, deposit>& box) { got = std::get<int>(*box.receive()); });
  fiber.tell(3);
  fiber.join();
  EXPECT_EQ(got, 3);
  two.run([&] {
    const auto other = spawn_actor_in<account>(one, 9);
    EXPECT_EQ(other.ask(balance{}), 9);
    other.kill();
  });
  EXPECT_THROW(spawn_actor_in<account>(one, actor_options{.worker = 7}, 1), invalid_argument);
  a.kill();
  named.kill();
  one.shutdown();
  EXPECT_ANY_THROW(spawn_actor_in<account>(one, 1));
}

TEST(actors_elsewhere, are_not_made_on_plain_threads) { EXPECT_THROW(spawn_actor<account>(1), usage_error); }

}  // namespace
}  // namespace ramie
