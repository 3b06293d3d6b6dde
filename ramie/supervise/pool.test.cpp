// Pools: what becomes of their children, one by one and all at once.
#include <ramie/supervise/supervisor.hpp>

#include <ramie/actor/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct crash {};
struct leave {};
struct ping {};

/// Knows how many live, and a number that its constructor was given.
class session : public actor<session> {
 public:
  explicit session(std::atomic<int>& alive, int n = 0) : alive_{alive}, n_{n} { ++alive_; }
  session(std::atomic<int>& alive, std::unique_ptr<int> n) : session{alive, *n} {}
  ~session() { --alive_; }
  void on(crash) { throw std::runtime_error{"crash"}; }
  void on(leave) { stop(); }
  int on(ping) { return n_; }

 private:
  std::atomic<int>& alive_;
  int n_;
};

pool_options quiet(pool_options o) {
  if (!o.report) o.report = [](const child_report&) {};
  return o;
}

class pools : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, pools, few_and_many());

TEST_P(pools, end_with_their_children) {
  in_runtime([] {
    for (int round = 0; round < scaled(100); ++round) {
      std::atomic<int> alive{0};
      std::vector<actor_ref<session>> all;
      {
        actor_pool<session> pool{
            quiet({.lifetime = static_cast<child_lifetime>(round % 3), .max_restarts = 1'000'000})};
        for (int i = 0; i < 100; ++i) all.push_back(pool.spawn(std::ref(alive), i));
        EXPECT_EQ(all[42].ask(ping{}), 42);
        EXPECT_EQ(pool.count_children().children, 100u);
        for (std::size_t i = static_cast<std::size_t>(round) % 5; i < all.size(); i += 5) all[i].tell(crash{});
        for (std::size_t i = 1; i < all.size(); i += 10) all[i].tell(leave{});
        for (int n = round % 7; n != 0; --n) this_fiber::yield();
      }
      EXPECT_EQ(alive.load(), 0);
      for (const any_actor& a : all) {
        ASSERT_FALSE(a.alive());
        a.join();
      }
    }
  });
}

TEST_P(pools, count_those_that_are_there) {
  in_runtime([] {
    std::atomic<int> alive{0};
    actor_pool<session> pool{{.max_children = 3}};
    auto a = pool.spawn(std::ref(alive));
    auto b = pool.spawn(std::ref(alive));
    auto c = pool.spawn(std::ref(alive));
    EXPECT_THROW(pool.spawn(std::ref(alive)), too_many_children);
    EXPECT_EQ(alive.load(), 3);
    EXPECT_EQ(pool.children(), (std::vector<any_actor>{a, b, c}));
    b.tell(leave{});
    b.join();
    EXPECT_EQ(pool.count_children().children, 2u);  // its place is free as soon as it can be joined
    auto d = pool.spawn(std::ref(alive));
    EXPECT_TRUE(pool.stop_child(a));
    EXPECT_FALSE(a.alive());
    EXPECT_FALSE(pool.stop_child(a));
    auto stranger = spawn_actor<session>(std::ref(alive));
    EXPECT_FALSE(pool.stop_child(stranger));
    EXPECT_EQ(pool.children(), (std::vector<any_actor>{c, d}));
    EXPECT_EQ(pool.count_children().running, 2u);
    stranger.kill();
    stranger.join();
  });
}

TEST_P(pools, restart_as_their_lifetime_says) {
  in_runtime([] {
    for (const child_lifetime lifetime :
         {child_lifetime::permanent, child_lifetime::transient, child_lifetime::temporary}) {
      std::atomic<int> alive{0};
      actor_pool<session> pool{quiet({.lifetime = lifetime, .max_restarts = 100, .within = 1h})};
      auto failing = pool.spawn(std::ref(alive), 7);
      auto leaving = pool.spawn(std::ref(alive), 8);
      auto other = pool.spawn(std::ref(alive), 9);
      failing.tell(crash{});
      leaving.tell(leave{});
      if (lifetime == child_lifetime::temporary) {
        EXPECT_EQ(failing.join().kind(), exit_kind::failed);
      } else {
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ(ask_patiently(failing, ping{}), 7);
          failing.tell(crash{});
        }
        EXPECT_EQ(ask_patiently(failing, ping{}), 7);
      }
      if (lifetime == child_lifetime::permanent) EXPECT_EQ(ask_patiently(leaving, ping{}), 8);
      else EXPECT_EQ(leaving.join().kind(), exit_kind::stopped);
      EXPECT_EQ(other.ask(ping{}), 9);
      if (lifetime == child_lifetime::transient) {
        failing.tell(leave{});  // one that was restarted before ends like others
        EXPECT_EQ(failing.join().kind(), exit_kind::stopped);
      }
      const std::size_t left[] = {3, 1, 1};
      const std::uint64_t restarts[] = {5, 4, 0};
      EXPECT_EQ(pool.count_children().children, left[static_cast<int>(lifetime)]);
      EXPECT_EQ(pool.restarts(), restarts[static_cast<int>(lifetime)]);
      EXPECT_TRUE(pool.stop_child(other));
      EXPECT_FALSE(other.alive());
    }
  });
}

TEST_P(pools, give_up_when_restarts_come_too_fast) {
  in_runtime([] {
    std::atomic<int> alive{0};
    actor_pool<session> pool{quiet({.lifetime = child_lifetime::permanent, .max_restarts = 2, .within = 1h})};
    auto a = pool.spawn(std::ref(alive));
    auto b = pool.spawn(std::ref(alive));
    for (int i = 0; i < 3; ++i) a.tell(crash{});
    EXPECT_EQ(pool.join().kind(), exit_kind::gave_up);
    EXPECT_FALSE(a.alive());
    EXPECT_FALSE(b.alive());
    EXPECT_EQ(alive.load(), 0);
    EXPECT_THROW(pool.spawn(std::ref(alive)), actor_down);
    EXPECT_EQ(alive.load(), 0);
  });
}

TEST_P(pools, take_arguments_that_cannot_be_copied_if_nothing_is_restarted) {
  in_runtime([] {
    std::atomic<int> alive{0};
    actor_pool<session> temporary;
    EXPECT_EQ(temporary.spawn(std::ref(alive), std::make_unique<int>(5)).ask(ping{}), 5);
    actor_pool<session> permanent{{.lifetime = child_lifetime::permanent}};
    EXPECT_THROW(permanent.spawn(std::ref(alive), std::make_unique<int>(5)), invalid_argument);
    EXPECT_EQ(permanent.count_children().children, 0u);
  });
}

TEST_P(pools, keep_arguments_only_for_those_that_may_be_restarted) {
  in_runtime([] {
    class reader : public actor<reader> {
     public:
      explicit reader(const std::shared_ptr<int>&) {}
    };
    auto data = std::make_shared<int>(1);
    actor_pool<reader> temporary;
    auto a = temporary.spawn(data);
    EXPECT_EQ(data.use_count(), 1);
    actor_pool<reader> transient{{.lifetime = child_lifetime::transient}};
    auto b = transient.spawn(data);
    EXPECT_EQ(data.use_count(), 2);
    b.stop();
    b.join();
    EXPECT_EQ(data.use_count(), 1);
  });
}

TEST_P(pools, pass_on_what_a_constructor_throws) {
  class picky : public actor<picky> {
   public:
    explicit picky(int n) {
      if (n < 0) throw std::runtime_error{"negative"};
    }
  };
  in_runtime([] {
    actor_pool<picky> pool{{.lifetime = child_lifetime::transient, .max_children = 1}};
    EXPECT_THROW(pool.spawn(-1), std::runtime_error);
    auto a = pool.spawn(1);
    EXPECT_THROW(pool.spawn(1), too_many_children);
    EXPECT_EQ(pool.count_children().children, 1u);
  });
}

TEST_P(pools, wait_longer_before_each_restart) {
  in_runtime([] {
    std::atomic<int> alive{0};
    std::vector<std::chrono::nanoseconds> delays;
    actor_pool<session> pool{{.lifetime = child_lifetime::transient,
                              .max_restarts = 10,
                              .within = 1h,
                              .actor = {.asks_wait_for_restart = true},
                              .backoff = {.first = 1ms, .most = 1h, .factor = 2, .jitter = 0},
                              .report = [&](const child_report& r) { delays.push_back(r.delay); }}};
    auto c = pool.spawn(std::ref(alive), 3);
    for (int i = 0; i < 3; ++i) {
      c.tell(crash{});
      EXPECT_EQ(c.ask(ping{}), 3);
    }
    EXPECT_EQ(delays, (std::vector<std::chrono::nanoseconds>{1ms, 2ms, 4ms}));
  });
}

TEST_P(pools, decide_by_the_exception) {
  in_runtime([] {
    std::atomic<int> alive{0};
    std::atomic<int> asked{0};
    actor_pool<session> pool{quiet({.max_restarts = 10, .decide = [&](const child_report& r) {
                                      ++asked;
                                      return r.why.normal() ? child_decision::as_usual : child_decision::restart;
                                    }})};
    auto c = pool.spawn(std::ref(alive), 4);  // temporary, but for what `decide` says
    c.tell(crash{});
    EXPECT_EQ(ask_patiently(c, ping{}), 4);
    c.tell(leave{});
    EXPECT_EQ(c.join().kind(), exit_kind::stopped);
    EXPECT_EQ(asked.load(), 2);
  });
}

TEST_P(pools, are_children_themselves) {
  in_runtime([] {
    std::atomic<int> alive{0};
    supervisor top{{.max_restarts = 10, .within = 1h, .report = [](const child_report&) {}}};
    auto pool = top.spawn_pool<session>(
        quiet({.lifetime = child_lifetime::permanent, .max_restarts = 1, .within = 1h, .name = "sessions"}),
        {.id = "pool"});
    auto a = pool.spawn(std::ref(alive));
    auto b = pool.spawn(std::ref(alive));
    a.tell(crash{});
    EXPECT_EQ(ask_patiently(a, ping{}), 0);
    EXPECT_NE(top.tree().find("\n  pool pool ("), std::string::npos) << top.tree();
    EXPECT_NE(top.tree().find("session), children: 2, restarts of children: 1\n"), std::string::npos) << top.tree();
    a.tell(crash{});  // one too many: the pool is restarted, its children are gone
    EXPECT_EQ(b.join().kind(), exit_kind::shutdown);
    EXPECT_FALSE(a.join().normal());
    await([&] { return top.restarts() == 1; });
    actor_ref<session> c;
    await([&] {
      try {
        c = pool.spawn(std::ref(alive), 5);
      } catch (const actor_down&) {
      }
      return static_cast<bool>(c);
    });
    EXPECT_EQ(c.ask(ping{}), 5);
    EXPECT_EQ(pool.count_children().children, 1u);
    EXPECT_TRUE(top.delete_child("pool"));
    EXPECT_FALSE(c.alive());
    EXPECT_THROW(pool.spawn(std::ref(alive)), actor_down);
    EXPECT_EQ(alive.load(), 0);
  });
}

TEST_P(pools, do_not_wait_for_ever_for_those_that_ignore_their_end) {
  static std::atomic<bool> over;
  over = false;
  class stubborn : public actor<stubborn> {
   public:
    void on(ping) {
      while (!over) {
        try {
          this_fiber::sleep_for(1ms);
        } catch (const cancelled&) {
          this_fiber::yield();
        }
      }
    }
  };
  in_runtime([] {
    std::vector<actor_ref<stubborn>> all;
    {
      actor_pool<stubborn> pool{{.lifetime = child_lifetime::permanent, .shutdown = 5ms}};
      for (int i = 0; i < 3; ++i) all.push_back(pool.spawn());
      for (const auto& a : all) a.tell(ping{});
      await([&] { return all[0].mail_count() + all[1].mail_count() + all[2].mail_count() == 0; });
      EXPECT_TRUE(pool.stop_child(all[1]));
    }
    for (const auto& a : all) EXPECT_TRUE(a.alive());
    over = true;
    for (const auto& a : all) a.join();
  });
}

TEST_P(pools, take_children_from_everywhere_while_they_end) {
  in_runtime([] {
    for (int round = 0; round < scaled(100); ++round) {
      std::atomic<int> alive{0};
      std::atomic<int> made{0};
      std::vector<join_handle<void>> makers;
      {
        actor_pool<session> pool{quiet({.lifetime = child_lifetime::transient, .max_restarts = 1'000'000})};
        for (int m = 0; m < 4; ++m)
          makers.push_back(spawn([&, ref = pool_ref<session>{pool}] {
            try {
              for (int i = 0;; ++i) {
                auto c = ref.spawn(std::ref(alive), i);
                ++made;
                if (i % 3 == 0) c.tell(crash{});
                if (i % 3 == 1) c.tell(leave{});
                this_fiber::yield();
              }
            } catch (const actor_down&) {
            }
          }));
        await([&] { return made.load() >= 20; });
      }
      for (auto& m : makers) m.join();
      EXPECT_EQ(alive.load(), 0);
    }
  });
}

}  // namespace
}  // namespace ramie
