// Monitors and links: who hears of an end, and who dies of it.
#include <ramie/actor/actor.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct crash {};
struct watch_it {
  any_actor whom;
};
struct forget_it {
  any_actor whom;
};
struct link_to {
  any_actor whom;
};
struct unlink_from {
  any_actor whom;
};
struct heard {};

class mortal : public actor<mortal> {
 public:
  void on(crash) { throw std::runtime_error{"crash"}; }
  void on(const link_to& l) { link(l.whom); }
  void on(const unlink_from& l) { unlink(l.whom); }
};

class watcher : public actor<watcher> {
 public:
  void on(const watch_it& w) { monitor(w.whom); }
  void on(const forget_it& w) { unmonitor(w.whom); }
  void on(const down& d) { heard_.push_back(d.reason.kind()); }
  std::vector<exit_kind> on(heard) { return heard_; }

 private:
  std::vector<exit_kind> heard_;
};

class survivor : public actor<survivor> {
 public:
  void on(const link_to& l) { link(l.whom); }
  void on(const exit_signal& s) { heard_.push_back(s.reason.kind()); }
  std::vector<exit_kind> on(heard) { return heard_; }

 private:
  std::vector<exit_kind> heard_;
};

using kinds = std::vector<exit_kind>;

class lifecycle : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, lifecycle, few_and_many());

TEST_P(lifecycle, monitors_are_told_once_for_each_call) {
  in_runtime([] {
    auto w = spawn_actor<watcher>();
    auto a = spawn_actor<mortal>();
    auto b = spawn_actor<mortal>();
    auto c = spawn_actor<mortal>();
    w.tell(watch_it{a});
    w.tell(watch_it{a});
    w.tell(watch_it{b});
    w.tell(watch_it{c});
    w.tell(forget_it{c});
    EXPECT_TRUE(w.ask(heard{}).empty());
    a.stop();
    a.join();
    await([&] { return w.ask(heard{}).size() == 2; });
    b.tell(crash{});
    b.join();
    c.kill();
    c.join();
    await([&] { return w.ask(heard{}).size() == 3; });
    w.tell(watch_it{c});  // dead already: told at once
    await([&] { return w.ask(heard{}).size() == 4; });
    EXPECT_EQ(w.ask(heard{}), (kinds{exit_kind::stopped, exit_kind::stopped, exit_kind::failed, exit_kind::killed}));
    stop_and_join(w);
  });
}

TEST_P(lifecycle, links_spread_failures_but_not_normal_ends) {
  in_runtime([] {
    auto a = spawn_actor<mortal>();
    auto b = spawn_actor<mortal>();
    auto c = spawn_actor<mortal>();
    auto d = spawn_actor<mortal>();
    auto loose = spawn_actor<mortal>();
    auto tough = spawn_actor<survivor>();
    b.tell(link_to{a});
    b.tell(link_to{c});
    b.tell(link_to{d});
    b.tell(link_to{loose});
    b.tell(unlink_from{loose});
    tough.tell(link_to{a});
    tough.tell(link_to{d});
    EXPECT_TRUE(tough.ask(heard{}).empty());
    await([&] { return b.mail_count() == 0; });
    d.stop();
    d.join();
    await([&] { return tough.ask(heard{}).size() == 1; });
    EXPECT_TRUE(b.alive());
    c.tell(crash{});
    const exit_reason why = a.join();
    EXPECT_EQ(why.kind(), exit_kind::linked);
    EXPECT_NE(why.what().find("crash"), std::string::npos);
    EXPECT_EQ(b.join().kind(), exit_kind::linked);
    EXPECT_EQ(c.join().kind(), exit_kind::failed);
    await([&] { return tough.ask(heard{}).size() == 2; });
    EXPECT_EQ(tough.ask(heard{}), (kinds{exit_kind::stopped, exit_kind::linked}));
    EXPECT_TRUE(loose.alive());
    auto late = spawn_actor<mortal>();
    late.tell(link_to{c});  // dead already
    EXPECT_EQ(late.join().kind(), exit_kind::linked);
    stop_and_join(tough, loose);
  });
}

TEST_P(lifecycle, a_ring_of_links_dies_as_one) {
  in_runtime([] {
    for (int round = 0; round < scaled(50); ++round) {
      std::vector<actor_ref<mortal>> ring;
      for (int i = 0; i < 20; ++i) ring.push_back(spawn_actor<mortal>());
      for (std::size_t i = 0; i < ring.size(); ++i) ring[i].tell(link_to{ring[(i + 1) % ring.size()]});
      ring[7].tell(crash{});
      ring[13].kill();
      for (auto& a : ring) EXPECT_FALSE(a.join().normal());
    }
  });
}

TEST_P(lifecycle, joins_end_together_and_time_out) {
  in_runtime([] {
    auto a = spawn_actor<mortal>();
    EXPECT_FALSE(a.join_for(1ms).has_value());
    std::vector<join_handle<exit_kind>> joiners;
    for (int i = 0; i < 10; ++i) joiners.push_back(spawn([a] { return a.join().kind(); }));
    auto cancelled_one = spawn([a] { a.join(); });
    this_fiber::yield();
    cancelled_one.request_stop();
    EXPECT_THROW(cancelled_one.join(), cancelled);
    a.stop();
    for (auto& j : joiners) EXPECT_EQ(j.join(), exit_kind::stopped);
    EXPECT_TRUE(a.join_for(0ms).has_value());
  });
}

TEST_P(lifecycle, what_comes_before_stop_is_handled_and_what_comes_after_is_not) {
  class counter : public actor<counter> {
   public:
    explicit counter(int& n) : n_{n} {}
    void on(int i) {
      n_ += i;
      if (i == 100) stop();
    }

   private:
    int& n_;
  };
  in_runtime([] {
    int n = 0;
    auto c = spawn_actor<counter>(n);
    for (int i = 0; i < 50; ++i) c.tell(1);
    c.stop();
    c.tell(7);
    c.join();
    EXPECT_EQ(n, 50);
    n = 0;
    auto d = spawn_actor<counter>(n);
    d.tell(1);
    d.tell(100);
    d.tell(1);
    d.join();
    EXPECT_EQ(n, 101);
  });
}

TEST_P(lifecycle, urgent_messages_go_first) {
  struct gate {};
  class recorder : public actor<recorder> {
   public:
    explicit recorder(fiber_tests::event& e) : go_{e} {}
    void on(gate) { go_.wait(); }
    void on(int i) { seen_.push_back(i); }
    std::vector<int> on(heard) { return seen_; }

   private:
    fiber_tests::event& go_;
    std::vector<int> seen_;
  };
  in_runtime([] {
    fiber_tests::event go;
    auto r = spawn_actor<recorder>(go);
    r.tell(gate{});
    await([&] { return go.parked() == 1; });
    r.tell(1);
    r.tell(2);
    r.tell_urgent(3);
    r.tell_urgent(4);
    go.set();
    EXPECT_EQ(r.ask(heard{}), (std::vector<int>{3, 4, 1, 2}));
    stop_and_join(r);
  });
}

TEST_P(lifecycle, references_outlive_all) {
  std::vector<any_actor> kept;
  {
    runtime rt{options()};
    rt.run([&] {
      for (int i = 0; i < 10; ++i) kept.push_back(spawn_actor<mortal>());
      kept[0].stop();
    });
  }
  for (auto& a : kept) EXPECT_FALSE(a.alive());
  EXPECT_EQ(kept[0], kept[0]);
  EXPECT_NE(kept[0], kept[1]);
  kept.resize(5);
}

TEST(lifecycle_elsewhere, exit_reasons_have_names) {
  EXPECT_EQ(exit_reason{}.what(), "alive");
  EXPECT_EQ(exit_reason{exit_kind::gave_up}.what(), "gave_up");
  EXPECT_EQ((exit_reason{exit_kind::failed, std::make_exception_ptr(std::runtime_error{"x"})}.what()), "failed: x");
  EXPECT_TRUE(exit_reason{exit_kind::shutdown}.normal());
  EXPECT_FALSE(exit_reason{exit_kind::linked}.normal());
}

// ---- reasons of the program's own ----------------------------------------------------------------------------------

struct quota {
  int used;
};
enum class verdict { broke, bored };
struct stop_for {
  exit_reason why;
};

class leaver : public actor<leaver> {
 public:
  leaver() = default;
  explicit leaver(verdict v) { stop(exit_reason::of(v)); }
  void on(const link_to& l) { link(l.whom); }
  void on(const stop_for& s) { stop(s.why); }
};

class confidant : public actor<confidant> {
 public:
  void on(const watch_it& w) { monitor(w.whom); }
  void on(const link_to& l) { link(l.whom); }
  void on(const down& d) { heard_.push_back(d.reason); }
  void on(const exit_signal& s) { heard_.push_back(s.reason); }
  std::vector<exit_reason> on(heard) { return heard_; }

 private:
  std::vector<exit_reason> heard_;
};

TEST_P(lifecycle, reasons_are_the_programs_own) {
  in_runtime([] {
    auto a = spawn_actor<leaver>();
    a.tell(stop_for{exit_reason::of(quota{5})});
    const exit_reason why = a.join();
    EXPECT_EQ(why.kind(), exit_kind::custom);
    EXPECT_FALSE(why.normal());
    ASSERT_NE(why.as<quota>(), nullptr);
    EXPECT_EQ(why.as<quota>()->used, 5);
    EXPECT_EQ(why.as<int>(), nullptr);
    EXPECT_EQ(exit_reason::of("sold out").what(), "custom: sold out");
    EXPECT_EQ(*exit_reason::of("sold out").as<std::string>(), "sold out");
    EXPECT_EQ(exit_reason::of(7).what(), "custom: 7");
    EXPECT_EQ(exit_reason{}.as<int>(), nullptr);

    auto b = spawn_actor<leaver>(verdict::bored);
    EXPECT_EQ(*b.join().as<verdict>(), verdict::bored);

    auto c = spawn_actor<leaver>();
    c.stop(exit_reason::of(1));
    c.stop(exit_reason::of(2));
    EXPECT_EQ(*c.join().as<int>(), 1);

    auto d = spawn_actor<leaver>();
    d.stop(exit_reason{exit_kind::shutdown});
    EXPECT_EQ(d.join().kind(), exit_kind::shutdown);
  });
}

TEST_P(lifecycle, reasons_of_fiber_actors_come_with_their_stop) {
  in_runtime([] {
    for (const std::size_t capacity : {0u, 10u}) {
      auto f = spawn_actor<int>(actor_options{.mailbox_capacity = capacity}, [](mailbox<int>& box) {
        while (box.receive()) {
        }
      });
      f.tell(1);
      f.stop(exit_reason::of(std::string{"enough"}));
      EXPECT_EQ(*f.join().as<std::string>(), "enough");
    }
  });
}

TEST_P(lifecycle, reasons_reach_monitors_and_links) {
  in_runtime([] {
    auto c = spawn_actor<confidant>();
    auto a = spawn_actor<leaver>();
    auto b = spawn_actor<leaver>();
    c.tell(watch_it{a});
    c.tell(link_to{b});
    a.tell(link_to{b});
    static_cast<void>(c.ask(heard{}));
    a.stop(exit_reason::of(verdict::broke));
    await([&] { return c.ask(heard{}).size() == 2; });
    for (const exit_reason& why : c.ask(heard{})) {
      EXPECT_TRUE(why.kind() == exit_kind::custom || why.kind() == exit_kind::linked);
      EXPECT_EQ(*why.as<verdict>(), verdict::broke);
    }
    stop_and_join(c);
  });
}

TEST_P(lifecycle, reasons_restart_what_is_transient_unless_they_are_normal) {
  in_runtime([] {
    supervisor sup{{.max_restarts = 100, .within = 1h, .report = [](const child_report&) {}}};
    auto a = sup.spawn_actor<leaver>(child_options{.lifetime = child_lifetime::transient});
    a.stop(exit_reason::of(1));
    await([&] { return sup.restarts() == 1; });
    a.stop(exit_reason{exit_kind::shutdown});
    EXPECT_EQ(a.join().kind(), exit_kind::shutdown);
    EXPECT_EQ(sup.restarts(), 1u);
  });
}

TEST_P(lifecycle, exit_tells_those_who_listen_and_ends_the_others) {
  in_runtime([] {
    auto c = spawn_actor<confidant>();
    c.exit(exit_reason::of(3));
    c.exit(exit_reason{exit_kind::stopped});
    await([&] { return c.ask(heard{}).size() == 2; });
    EXPECT_EQ(*c.ask(heard{})[0].as<int>(), 3);
    EXPECT_EQ(c.ask(heard{})[1].kind(), exit_kind::stopped);
    stop_and_join(c);

    auto a = spawn_actor<leaver>();
    a.exit(exit_reason{exit_kind::stopped});  // normal: it does not care
    EXPECT_TRUE(a.alive());
    a.exit(exit_reason::of(4));
    const exit_reason why = a.join();
    EXPECT_EQ(why.kind(), exit_kind::custom);
    EXPECT_EQ(*why.as<int>(), 4);
    a.exit(exit_reason::of(5));
    EXPECT_EQ(*a.join().as<int>(), 4);
  });
}

// ---- monitors with a reference -------------------------------------------------------------------------------------

struct end_and_forget {
  any_actor whom;
};

class clerk : public actor<clerk> {
 public:
  monitor_ref on(const watch_it& w) { return monitor(w.whom); }
  void on(monitor_ref r) { unmonitor(r); }
  /// The note of the second lies in the mailbox when that is taken back.
  void on(const end_and_forget& e) {
    const monitor_ref first = monitor(e.whom);
    const monitor_ref second = monitor(e.whom);
    EXPECT_NE(first, second);
    e.whom.kill();
    e.whom.join();
    unmonitor(second);
    unmonitor(second);
    const monitor_ref third = monitor(e.whom);  // told at once
    unmonitor(third);
    kept_ = first;
  }
  void on(const down& d) { heard_.push_back(d.ref); }
  std::vector<monitor_ref> on(heard) { return heard_; }
  bool on(const any_actor&) { return heard_ == std::vector<monitor_ref>{kept_}; }

 private:
  std::vector<monitor_ref> heard_;
  monitor_ref kept_;
};

TEST_P(lifecycle, monitors_are_told_apart_and_taken_back_one_by_one) {
  in_runtime([] {
    auto a = spawn_actor<mortal>();
    auto c = spawn_actor<clerk>();
    const monitor_ref one = c.ask(watch_it{a});
    const monitor_ref two = c.ask(watch_it{a});
    const monitor_ref three = c.ask(watch_it{a});
    c.tell(two);
    static_cast<void>(c.ask(heard{}));
    a.kill();
    await([&] { return c.ask(heard{}).size() == 2; });
    EXPECT_EQ(c.ask(heard{}), (std::vector<monitor_ref>{one, three}));
    stop_and_join(c);
  });
}

TEST_P(lifecycle, monitors_are_taken_back_with_their_notes) {
  in_runtime([] {
    for (int i = 0; i < scaled(100); ++i) {
      auto a = spawn_actor<mortal>();
      auto c = spawn_actor<clerk>();
      c.ask(end_and_forget{a});
      EXPECT_TRUE(c.ask(any_actor{a}));
      stop_and_join(c);
    }
  });
}

TEST_P(lifecycle, monitors_of_fiber_actors_are_taken_back_with_their_notes) {
  in_runtime([] {
    auto a = spawn_actor<mortal>();
    auto f = spawn_actor<down, int>([&](mailbox<down, int>& box) {
      const monitor_ref first = box.monitor(a);
      const monitor_ref second = box.monitor(a);
      a.kill();
      a.join();
      EXPECT_FALSE(box.receive_if_for<int>(1ms, [](int) { return true; }).has_value());  // passes the notes over
      box.unmonitor(first);
      const auto d = box.receive_if<down>([](const down&) { return true; });
      EXPECT_EQ(d->ref, second);
      EXPECT_EQ(box.size(), 0u);
    });
    f.join();
  });
}

}  // namespace
}  // namespace ramie
