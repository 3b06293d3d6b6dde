// What a tree of supervisors promises: its end is the end of all of it, starts come in order, and specifications can be
// changed while it runs.
#include <ramie/supervise/supervisor.hpp>

#include <ramie/actor/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct crash {};
struct ping {};

/// Counts how many are alive.
class counted : public actor<counted> {
 public:
  explicit counted(std::atomic<int>& alive) : alive_{alive} { ++alive_; }
  ~counted() { --alive_; }
  void on(crash) { throw std::runtime_error{"crash"}; }
  int on(ping) { return 1; }

 private:
  std::atomic<int>& alive_;
};

supervisor_options quiet(supervisor_options o) {
  o.report = [](const child_report&) {};
  return o;
}

class supervisor_trees : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, supervisor_trees, few_and_many());

TEST_P(supervisor_trees, have_ended_when_the_destructor_returns) {
  in_runtime([] {
    for (int round = 0; round < scaled(100); ++round) {
      std::atomic<int> alive{0};
      std::vector<any_actor> all;
      {
        supervisor top{quiet({.max_restarts = 1'000'000, .within = 1h})};
        for (int s = 0; s < 4; ++s) {
          auto middle =
              top.spawn_supervisor(quiet({.strategy = s % 2 == 0 ? restart::one_for_all : restart::one_for_one,
                                          .max_restarts = s == 3 ? 1 : 1'000'000,
                                          .within = 1h}));
          all.push_back(middle);
          for (int i = 0; i < 10; ++i) all.push_back(middle.spawn_actor<counted>(std::ref(alive)));
        }
        // Some of them are just about to be restarted when the tree ends.
        for (std::size_t i = static_cast<std::size_t>(round) % 3; i < all.size(); i += 3)
          if (all[i].cell()->how().of->name().find("counted") != std::string_view::npos)
            actor_ref<counted>{*all[i].cell()}.tell(crash{});
        for (int n = round % 7; n != 0; --n) this_fiber::yield();
      }
      EXPECT_EQ(alive.load(), 0);
      for (const any_actor& a : all) ASSERT_FALSE(a.alive());
    }
  });
}

TEST_P(supervisor_trees, end_a_child_that_is_about_to_be_restarted) {
  in_runtime([] {
    for (int round = 0; round < scaled(500); ++round) {
      std::atomic<int> alive{0};
      any_actor child;
      {
        supervisor sup{quiet({.max_restarts = 1'000'000, .within = 1h})};
        auto c = sup.spawn_actor<counted>(std::ref(alive));
        child = c;
        c.tell(crash{});
        for (int n = round % 5; n != 0; --n) this_fiber::yield();
      }
      ASSERT_EQ(alive.load(), 0);
      ASSERT_FALSE(child.alive());
    }
  });
}

TEST_P(supervisor_trees, start_each_child_when_the_one_before_is_there) {
  static actor_ref<counted> database;
  /// Asks its database before it is ready.
  class client : public actor<client> {
   public:
    client() { database.ask(ping{}); }
    int on(ping) { return 2; }
  };
  for (const restart strategy : {restart::one_for_all, restart::rest_for_one}) {
    in_runtime([&] {
      std::atomic<int> alive{0};
      {
        supervisor sup{quiet({.strategy = strategy, .max_restarts = 40, .within = 1h})};
        database = sup.spawn_actor<counted>(std::ref(alive));
        std::vector<actor_ref<client>> clients;
        for (int i = 0; i < 5; ++i) clients.push_back(sup.spawn_actor<client>());
        for (std::uint64_t round = 1; round <= 30; ++round) {
          database.tell(crash{});
          await([&] { return sup.restarts() == round; });
          for (const auto& c : clients) EXPECT_EQ(ask_patiently(c, ping{}), 2);
        }
        EXPECT_EQ(sup.restarts(), 30u);  // no constructor failed
      }
      database = {};
    });
  }
}

TEST_P(supervisor_trees, go_on_where_a_constructor_failed) {
  /// The first cannot be made twice in a row; those behind it wait for it.
  static std::mutex lock;
  static std::vector<std::string> log;
  static int bad;
  log.clear();
  bad = 0;
  class member : public actor<member> {
   public:
    explicit member(std::string name) : name_{std::move(name)} {
      std::lock_guard guard{lock};
      if (name_ == "b" && bad-- > 0) {
        log.push_back("!b");
        throw std::runtime_error{"bad"};
      }
      log.push_back("+" + name_);
    }
    ~member() {
      std::lock_guard guard{lock};
      log.push_back("-" + name_);
    }
    void on(crash) {
      std::lock_guard guard{lock};
      bad = 2;
      throw std::runtime_error{"crash"};
    }
    int on(ping) { return 1; }

   private:
    std::string name_;
  };
  in_runtime([] {
    supervisor sup{quiet({.strategy = restart::one_for_all, .max_restarts = 10, .within = 1h})};
    auto a = sup.spawn_actor<member>(std::string{"a"});
    auto b = sup.spawn_actor<member>(std::string{"b"});
    auto c = sup.spawn_actor<member>(std::string{"c"});
    b.tell(crash{});
    EXPECT_EQ(ask_patiently(c, ping{}), 1);
    EXPECT_EQ(ask_patiently(b, ping{}), 1);
    EXPECT_EQ(ask_patiently(a, ping{}), 1);
    EXPECT_EQ(sup.restarts(), 3u);
    std::lock_guard guard{lock};
    EXPECT_EQ(log, (std::vector<std::string>{"+a", "+b", "+c", "-b", "-c", "-a", "+a", "!b", "-a", "+a", "!b", "-a",
                                             "+a", "+b", "+c"}));
  });
}

TEST_P(supervisor_trees, know_children_by_id) {
  in_runtime([] {
    std::atomic<int> alive{0};
    supervisor sup{quiet({.max_restarts = 10, .within = 1h, .max_children = 3})};
    auto a = sup.spawn_actor<counted>(child_options{.id = "a"}, std::ref(alive));
    auto b = sup.spawn_actor<counted>(child_options{.id = "b"}, std::ref(alive));
    EXPECT_THROW(sup.spawn_actor<counted>(child_options{.id = "a"}, std::ref(alive)), invalid_argument);
    EXPECT_EQ(sup.find_child("b"), b);
    EXPECT_FALSE(sup.find_child("c"));
    EXPECT_TRUE(sup.stop_child("a"));
    EXPECT_EQ(alive.load(), 1);
    EXPECT_THROW(a.ask(ping{}), actor_down);
    EXPECT_EQ(sup.count_children().children, 2u);
    EXPECT_EQ(sup.count_children().running, 1u);
    EXPECT_EQ(a.tell(crash{}), tell_status::ok);  // waits until it is started again
    EXPECT_FALSE(sup.restart_child("b"));
    EXPECT_TRUE(sup.restart_child("a"));
    await([&] { return sup.restarts() == 1; });
    EXPECT_EQ(ask_patiently(a, ping{}), 1);
    EXPECT_TRUE(sup.delete_child("b"));
    EXPECT_FALSE(b.alive());
    EXPECT_FALSE(sup.delete_child("b"));
    auto t = sup.spawn_actor<counted>(child_options{.lifetime = child_lifetime::temporary, .id = "t"}, std::ref(alive));
    auto u = sup.spawn_actor<counted>(std::ref(alive));
    EXPECT_THROW(sup.spawn_actor<counted>(std::ref(alive)), too_many_children);
    EXPECT_TRUE(sup.stop_child("t"));
    EXPECT_FALSE(t.alive());
    const auto infos = sup.child_infos();
    ASSERT_EQ(infos.size(), 2u);
    EXPECT_EQ(infos[0].id, "a");
    EXPECT_EQ(infos[0].restarts, 1u);
    auto inner = sup.spawn_supervisor(quiet({.name = "inner"}), child_options{.id = "in"});
    auto deep = inner.spawn_actor<counted>(child_options{.id = "deep"}, std::ref(alive));
    const std::string tree = sup.tree();
    EXPECT_NE(tree.find("\n  in supervisor\n    deep ("), std::string::npos) << tree;
    EXPECT_NE(tree.find("restarts: 1"), std::string::npos) << tree;
  });
}

TEST_P(supervisor_trees, do_not_wait_for_ever_for_one_that_ignores_its_end) {
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
    any_actor left;
    {
      supervisor sup;
      auto s = sup.spawn_actor<stubborn>(child_options{.shutdown = 5ms});
      left = s;
      s.tell(ping{});
      await([&] { return s.mail_count() == 0; });
    }
    EXPECT_TRUE(left.alive());
    over = true;
    left.join();
  });
}

TEST_P(supervisor_trees, let_a_handler_end_in_its_time) {
  static std::atomic<bool> finished;
  finished = false;
  class careful : public actor<careful> {
   public:
    void on(ping) {
      this_fiber::sleep_for(2ms);
      finished = true;
    }
  };
  in_runtime([] {
    {
      supervisor sup;
      auto s = sup.spawn_actor<careful>(child_options{.shutdown = 1h});
      s.tell(ping{});
      await([&] { return s.mail_count() == 0; });
    }
    EXPECT_TRUE(finished.load());
  });
}

TEST_P(supervisor_trees, end_with_their_significant_children) {
  struct leave {};
  class worker_actor : public actor<worker_actor> {
   public:
    void on(leave) { stop(); }
  };
  const child_options significant{.lifetime = child_lifetime::transient, .significant = true};
  in_runtime([&] {
    supervisor any{{.auto_shutdown = auto_shutdown::any_significant}};
    auto a = any.spawn_actor<worker_actor>(significant);
    auto b = any.spawn_actor<worker_actor>(significant);
    a.tell(leave{});
    EXPECT_EQ(any.join().kind(), exit_kind::shutdown);
    EXPECT_FALSE(b.alive());
    supervisor all{{.auto_shutdown = auto_shutdown::all_significant}};
    auto c = all.spawn_actor<worker_actor>(significant);
    auto d = all.spawn_actor<worker_actor>(significant);
    auto other = all.spawn_actor<worker_actor>();
    c.tell(leave{});
    c.join();
    EXPECT_TRUE(all.alive());
    d.tell(leave{});
    EXPECT_EQ(all.join().kind(), exit_kind::shutdown);
    EXPECT_FALSE(other.alive());
    EXPECT_THROW(all.spawn_actor<worker_actor>(child_options{.significant = true}), error);
  });
}

TEST_P(supervisor_trees, decide_by_the_exception_and_tell_of_it) {
  class picky : public actor<picky> {
   public:
    void on(int n) {
      if (n == 1) throw std::invalid_argument{"bad data"};
      if (n == 2) throw std::runtime_error{"fatal"};
      throw 3;
    }
    int on(ping) { return 1; }
  };
  in_runtime([] {
    std::vector<std::string> told;
    supervisor sup{{.max_restarts = 10,
                    .within = 1h,
                    .decide =
                        [](const child_report& r) {
                          try {
                            std::rethrow_exception(r.why.exception());
                          } catch (const std::invalid_argument&) {
                            return child_decision::forget;
                          } catch (const std::runtime_error&) {
                            return child_decision::give_up;
                          } catch (...) {
                            return child_decision::as_usual;
                          }
                        },
                    .report =
                        [&](const child_report& r) {
                          told.push_back(std::string{r.id} + ": " + r.why.what() + " " +
                                         std::to_string(static_cast<int>(r.decision)) + " " +
                                         std::to_string(r.restarts) + "/" + std::to_string(r.restarts_most));
                        }}};
    auto a = sup.spawn_actor<picky>(child_options{.id = "a"});
    auto b = sup.spawn_actor<picky>(child_options{.id = "b"});
    b.tell(3);
    EXPECT_EQ(ask_patiently(b, ping{}), 1);
    a.tell(1);
    EXPECT_EQ(a.join().kind(), exit_kind::failed);
    EXPECT_EQ(b.ask(ping{}), 1);
    b.tell(2);
    EXPECT_EQ(sup.join().kind(), exit_kind::gave_up);
    EXPECT_EQ(told, (std::vector<std::string>{"b: failed: an exception that is not a std::exception 1 1/10",
                                              "a: failed: bad data 2 1/10", "b: failed: fatal 3 1/10"}));
  });
}

TEST_P(supervisor_trees, wait_longer_before_each_restart) {
  in_runtime([] {
    std::atomic<int> alive{0};
    std::vector<std::chrono::nanoseconds> delays;
    supervisor sup{{.max_restarts = 10,
                    .within = 1h,
                    .backoff = {.first = 1ms, .most = 4ms, .factor = 2, .jitter = 0.5},
                    .report = [&](const child_report& r) { delays.push_back(r.delay); }}};
    auto c = sup.spawn_actor<counted>(child_options{.actor = {.asks_wait_for_restart = true}}, std::ref(alive));
    for (int i = 0; i < 4; ++i) {
      c.tell(crash{});
      EXPECT_EQ(c.ask(ping{}), 1);
    }
    ASSERT_EQ(delays.size(), 4u);
    const auto in = [](std::chrono::nanoseconds d, std::chrono::nanoseconds least, std::chrono::nanoseconds most) {
      return d >= least && d <= most;
    };
    EXPECT_TRUE(in(delays[0], 500us, 1ms));
    for (const auto d : delays) EXPECT_TRUE(in(d, 500us, 4ms));
  });
}

TEST_P(supervisor_trees, start_what_cannot_be_copied) {
  class owner : public actor<owner> {
   public:
    explicit owner(std::unique_ptr<int> n) : n_{std::move(n)} {}
    int on(ping) { return *n_; }
    void on(crash) { throw std::runtime_error{"crash"}; }

   private:
    std::unique_ptr<int> n_;
  };
  in_runtime([] {
    int made = 0;
    supervisor sup{quiet({.max_restarts = 10, .within = 1h})};
    auto o = sup.spawn_actor_by<owner>(child_options{}, [&] { return owner{std::make_unique<int>(++made)}; });
    EXPECT_EQ(o.ask(ping{}), 1);
    o.tell(crash{});
    EXPECT_EQ(ask_patiently(o, ping{}), 2);
  });
}

}  // namespace
}  // namespace ramie
