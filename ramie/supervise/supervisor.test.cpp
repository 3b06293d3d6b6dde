// Supervisors: who is restarted when, and what becomes of mail.
#include <ramie/supervise/supervisor.hpp>

#include <ramie/actor/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

/// What happened, in order.
struct log_book {
  std::mutex lock;
  std::vector<std::string> lines;
  void add(std::string line) {
    std::lock_guard guard{lock};
    lines.push_back(std::move(line));
  }
  std::vector<std::string> take() {
    std::lock_guard guard{lock};
    return std::exchange(lines, {});
  }
};

struct crash {};
struct leave {};
struct add {
  int n;
};
struct total {};
struct name_please {};

class member : public actor<member> {
 public:
  member(log_book& log, std::string name) : log_{log}, name_{std::move(name)} { log_.add("+" + name_); }
  ~member() { log_.add("-" + name_); }
  void on(crash) { throw std::runtime_error{"crash of " + name_}; }
  void on(leave) { stop(); }
  void on(add a) { sum_ += a.n; }
  int on(total) { return sum_; }
  std::string on(name_please) { return name_; }

 private:
  log_book& log_;
  std::string name_;
  int sum_ = 0;
};

using lines = std::vector<std::string>;

class supervisors : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, supervisors, few_and_many());

TEST_P(supervisors, restart_one_child_in_its_place) {
  in_runtime([] {
    log_book log;
    {
      supervisor sup{{.strategy = restart::one_for_one, .max_restarts = 5, .within = 1h}};
      auto a = sup.spawn_actor<member>(std::ref(log), std::string{"a"});
      auto b = sup.spawn_actor<member>(std::ref(log), std::string{"b"});
      a.tell(add{3});
      b.tell(add{4});
      a.tell(crash{});
      a.tell(add{5});  // waits for the next incarnation
      EXPECT_EQ(ask_patiently(a, total{}), 5);
      EXPECT_EQ(b.ask(total{}), 4);
      EXPECT_EQ(sup.restarts(), 1u);
      EXPECT_TRUE(a.alive());
      EXPECT_EQ(sup.children(), (std::vector<any_actor>{a, b}));
      EXPECT_EQ(log.take(), (lines{"+a", "+b", "-a", "+a"}));
    }
    EXPECT_EQ(log.take(), (lines{"-b", "-a"}));
  });
}

TEST_P(supervisors, restart_all_or_the_rest) {
  for (const restart strategy : {restart::one_for_all, restart::rest_for_one}) {
    in_runtime([strategy] {
      log_book log;
      supervisor sup{{.strategy = strategy, .max_restarts = 5, .within = 1h}};
      auto a = sup.spawn_actor<member>(std::ref(log), std::string{"a"});
      auto b = sup.spawn_actor<member>(std::ref(log), std::string{"b"});
      auto c = sup.spawn_actor<member>(std::ref(log), std::string{"c"});
      log.take();
      b.tell(crash{});
      const std::size_t events = strategy == restart::one_for_all ? 6 : 4;
      await([&] {
        std::lock_guard guard{log.lock};
        return log.lines.size() >= events;
      });
      lines seen = log.take();
      // Constructors run on whichever workers.
      std::sort(seen.begin() + static_cast<std::ptrdiff_t>(events / 2), seen.end());
      if (strategy == restart::one_for_all) {
        EXPECT_EQ(seen, (lines{"-b", "-c", "-a", "+a", "+b", "+c"}));
      } else {
        EXPECT_EQ(seen, (lines{"-b", "-c", "+b", "+c"}));
      }
      EXPECT_EQ(ask_patiently(a, name_please{}), "a");
      EXPECT_EQ(ask_patiently(b, name_please{}), "b");
      EXPECT_EQ(ask_patiently(c, name_please{}), "c");
    });
  }
}

TEST_P(supervisors, heed_lifetimes) {
  in_runtime([] {
    log_book log;
    supervisor sup{{.max_restarts = 5, .within = 1h}};
    auto p =
        sup.spawn_actor<member>(child_options{.lifetime = child_lifetime::permanent}, std::ref(log), std::string{"p"});
    auto t =
        sup.spawn_actor<member>(child_options{.lifetime = child_lifetime::transient}, std::ref(log), std::string{"t"});
    auto u =
        sup.spawn_actor<member>(child_options{.lifetime = child_lifetime::transient}, std::ref(log), std::string{"u"});
    auto v =
        sup.spawn_actor<member>(child_options{.lifetime = child_lifetime::temporary}, std::ref(log), std::string{"v"});
    p.tell(leave{});
    t.tell(leave{});
    u.tell(crash{});
    v.tell(crash{});
    EXPECT_EQ(t.join().kind(), exit_kind::stopped);
    EXPECT_EQ(v.join().kind(), exit_kind::failed);
    EXPECT_EQ(ask_patiently(p, name_please{}), "p");
    EXPECT_EQ(ask_patiently(u, name_please{}), "u");
    await([&] { return sup.restarts() == 2; });
    EXPECT_EQ(sup.children(), (std::vector<any_actor>{p, u}));
    EXPECT_TRUE(sup.stop_child(p));
    EXPECT_FALSE(sup.stop_child(t));
    EXPECT_EQ(p.join().kind(), exit_kind::shutdown);
    EXPECT_THROW(p.ask(name_please{}), actor_down);
  });
}

TEST_P(supervisors, give_up_when_restarts_come_too_fast) {
  in_runtime([] {
    log_book log;
    supervisor sup{{.max_restarts = 2, .within = 1h}};
    auto a = sup.spawn_actor<member>(std::ref(log), std::string{"a"});
    auto b = sup.spawn_actor<member>(std::ref(log), std::string{"b"});
    for (int i = 0; i < 3; ++i) a.tell(crash{});
    const exit_reason why = sup.join();
    EXPECT_EQ(why.kind(), exit_kind::gave_up);
    EXPECT_NE(why.what().find("crash of a"), std::string::npos);
    a.join();
    b.join();
    EXPECT_THROW(a.ask(total{}), actor_down);
    EXPECT_THROW(sup.spawn_actor<member>(std::ref(log), std::string{"c"}), actor_down);
    EXPECT_EQ(log.take(), (lines{"+a", "+b", "-a", "+a", "-a", "+a", "-a", "-b"}));
  });
}

TEST_P(supervisors, are_restarted_with_their_children) {
  in_runtime([] {
    log_book log;
    supervisor top{{.max_restarts = 3, .within = 1h}};
    auto inner = top.spawn_supervisor({.max_restarts = 1, .within = 1h});
    auto a = inner.spawn_actor<member>(std::ref(log), std::string{"a"});
    auto b = inner.spawn_actor<member>(std::ref(log), std::string{"b"});
    a.tell(crash{});
    a.tell(crash{});  // one too many for `inner`
    await([&] {
      std::lock_guard guard{log.lock};
      return log.lines.size() >= 8;
    });
    EXPECT_EQ(ask_patiently(a, name_please{}), "a");
    EXPECT_EQ(ask_patiently(b, name_please{}), "b");
    EXPECT_EQ(top.restarts(), 1u);
    EXPECT_TRUE(inner.alive());
  });
}

TEST_P(supervisors, pass_on_what_a_child_cannot_start_for) {
  class picky : public actor<picky> {
   public:
    explicit picky(int n) {
      if (n < 0) throw std::runtime_error{"negative"};
    }
    int on(total) { return 1; }
  };
  in_runtime([] {
    supervisor sup;
    EXPECT_THROW(sup.spawn_actor<picky>(-1), std::runtime_error);
    EXPECT_EQ(sup.spawn_actor<picky>(1).ask(total{}), 1);
    EXPECT_EQ(sup.children().size(), 1u);
    EXPECT_THROW(supervisor({.max_restarts = -1}), invalid_argument);
  });
}

TEST_P(supervisors, construct_again_what_could_not_be_constructed) {
  /// The second and third of them cannot be made.
  class moody : public actor<moody> {
   public:
    explicit moody(std::atomic<int>& made) {
      const int n = ++made;
      if (n == 2 || n == 3) throw std::runtime_error{"mood " + std::to_string(n)};
    }
    void on(crash) { throw std::runtime_error{"crash"}; }
    int on(total) { return 1; }
  };
  in_runtime([] {
    std::atomic<int> made{0};
    {
      supervisor sup{{.max_restarts = 3, .within = 1h}};
      auto a = sup.spawn_actor<moody>(std::ref(made));
      a.tell(crash{});
      EXPECT_EQ(ask_patiently(a, total{}), 1);
      EXPECT_EQ(sup.restarts(), 3u);
      EXPECT_EQ(made, 4);
    }
    made = 0;
    supervisor sup{{.max_restarts = 2, .within = 1h}};
    auto a = sup.spawn_actor<moody>(std::ref(made));
    a.tell(crash{});
    const exit_reason why = sup.join();
    EXPECT_EQ(why.kind(), exit_kind::gave_up);
    EXPECT_NE(why.what().find("mood 3"), std::string::npos) << why.what();
    EXPECT_EQ(a.join().kind(), exit_kind::failed);
    EXPECT_EQ(made, 3);
  });
}

TEST_P(supervisors, leave_temporary_children_out_of_restarts) {
  in_runtime([] {
    log_book log;
    supervisor sup{{.strategy = restart::one_for_all, .max_restarts = 5, .within = 1h}};
    auto a = sup.spawn_actor<member>(std::ref(log), std::string{"a"});
    auto b =
        sup.spawn_actor<member>(child_options{.lifetime = child_lifetime::temporary}, std::ref(log), std::string{"b"});
    a.tell(crash{});
    EXPECT_EQ(b.join().kind(), exit_kind::shutdown);
    EXPECT_EQ(ask_patiently(a, name_please{}), "a");
    EXPECT_THROW(b.ask(name_please{}), actor_down);
    EXPECT_EQ(sup.children(), (std::vector<any_actor>{a}));
    EXPECT_EQ(log.take(), (lines{"+a", "+b", "-a", "-b", "+a"}));
  });
}

TEST_P(supervisors, let_asks_fail_or_wait_while_they_restart) {
  static std::atomic<bool> may_start{true};
  class slow_start : public actor<slow_start> {
   public:
    slow_start() {
      while (!may_start.load()) this_fiber::yield();
    }
    void on(crash) { throw std::runtime_error{"crash"}; }
    int on(total) { return 1; }
  };
  in_runtime([] {
    supervisor sup{{.max_restarts = 100, .within = 1h}};
    auto fails = sup.spawn_actor<slow_start>();
    auto waits = sup.spawn_actor<slow_start>(child_options{.actor = {.asks_wait_for_restart = true}});
    may_start = false;
    fails.tell(crash{});
    waits.tell(crash{});
    auto patient = spawn([waits] { return waits.ask(total{}); });
    EXPECT_THROW(fails.ask_for(1h, total{}), actor_down);
    may_start = true;
    EXPECT_EQ(patient.join(), 1);
    EXPECT_EQ(ask_patiently(fails, total{}), 1);
  });
}

TEST_P(supervisors, take_fiber_actors_too) {
  in_runtime([] {
    std::atomic<int> starts{0};
    std::atomic<int> sum{0};
    supervisor sup{{.max_restarts = 100, .within = 1h}};
    auto f = sup.spawn_actor<add, crash>(child_options{}, [&](mailbox<add, crash>& box) {
      ++starts;
      while (auto m = box.receive()) {
        if (std::holds_alternative<crash>(*m)) throw std::runtime_error{"crash"};
        sum += std::get<add>(*m).n;
      }
    });
    for (int i = 0; i < 5; ++i) {
      f.tell(add{1});
      f.tell(crash{});
    }
    await([&] { return starts.load() == 6; });
    EXPECT_EQ(sum.load(), 5);
  });
}

/// One stop is one end: the next incarnation does not find it again.
TEST_P(supervisors, restart_a_fiber_actor_that_was_stopped_once) {
  in_runtime([] {
    for (const std::size_t capacity : {0u, 8u}) {
      std::atomic<int> sum{0};
      supervisor sup{{.max_restarts = 100, .within = 1h, .report = [](const child_report&) {}}};
      auto f = sup.spawn_actor<add>(child_options{.actor = {.mailbox_capacity = capacity}}, [&](mailbox<add>& box) {
        while (auto m = box.receive()) sum += std::get<add>(*m).n;
      });
      for (int i = 0; i < 3; ++i) {
        f.tell(add{1});
        f.stop();
        f.tell(add{1});
        f.stop(exit_reason::of(i));
      }
      await([&] { return sum.load() == 6 && sup.restarts() == 6; });
      f.tell(add{1});
      await([&] { return sum.load() == 7; });
      EXPECT_EQ(sup.restarts(), 6u);
    }
  });
}

}  // namespace
}  // namespace ramie
