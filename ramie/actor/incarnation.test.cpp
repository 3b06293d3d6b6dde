// What an actor's incarnation owns ends with it, however it ends: links, monitors, timers, counts.
#include <ramie/actor/incarnation.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/patterns/registry.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct crash {};
struct ping {};
struct heard {};
struct link_to {
  any_actor whom;
};
struct watch_it {
  any_actor whom;
  monitoring what = monitoring::actor;
};

class plain : public actor<plain> {
 public:
  void on(crash) { throw std::runtime_error{"crash"}; }
  void on(const link_to& l) { link(l.whom); }
  int on(ping) { return 1; }
};

/// Lives on, and tells what it heard.
class listener : public actor<listener> {
 public:
  void on(const link_to& l) { link(l.whom); }
  void on(const watch_it& w) { monitor(w.whom, w.what); }
  void on(const down& d) { heard_.push_back("down " + d.reason.what()); }
  void on(const exit_signal& s) { heard_.push_back("exit " + s.reason.what()); }
  std::vector<std::string> on(heard) { return heard_; }

 private:
  std::vector<std::string> heard_;
};
using words = std::vector<std::string>;

supervisor_options many_restarts() {
  return {.max_restarts = 1'000'000, .within = 1h, .report = [](const child_report&) {}};
}

/// How many ties are in the actor's lists.
std::size_t ties_of(const any_actor& a) {
  std::lock_guard guard{a.cell()->lock};
  const detail::actor_extras* x = a.cell()->more.load();
  return x == nullptr ? 0 : x->now.ties.size() + x->monitors.size();
}

std::size_t names_of_this_test() {
  const auto all = registered_names();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const std::string& n) { return n.starts_with("inc."); }));
}

class incarnations : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, incarnations, few_and_many());

TEST_P(incarnations, take_their_monitors_along) {
  /// Monitors a service from its constructor on.
  class client : public actor<client> {
   public:
    client(any_actor service, std::atomic<int>& told) : told_{told} { monitor(service); }
    void on(const down&) { ++told_; }
    void on(crash) { throw std::runtime_error{"crash"}; }
    int on(ping) { return 1; }

   private:
    std::atomic<int>& told_;
  };
  in_runtime([] {
    std::atomic<int> told{0};
    auto service = spawn_actor<plain>();
    supervisor sup{many_restarts()};
    auto c = sup.spawn_actor<client>(any_actor{service}, std::ref(told));
    for (int i = 0; i < 5; ++i) {
      c.tell(crash{});
      EXPECT_EQ(ask_patiently(c, ping{}), 1);
    }
    await([&] { return sup.restarts() == 5; });
    EXPECT_EQ(ask_patiently(c, ping{}), 1);
    EXPECT_EQ(ties_of(service), 1u);
    stop_and_join(service);
    await([&] { return told.load() != 0; });
    EXPECT_EQ(c.ask(ping{}), 1);
    EXPECT_EQ(told.load(), 1);
  });
}

TEST_P(incarnations, take_their_links_along_and_tell_them) {
  in_runtime([] {
    supervisor sup{many_restarts()};
    auto child = sup.spawn_actor<plain>();
    auto partner = spawn_actor<listener>();
    auto victim = spawn_actor<plain>();
    auto former = spawn_actor<plain>();
    child.tell(link_to{former});
    EXPECT_EQ(child.ask(ping{}), 1);
    former.tell(link_to{child});  // they have a link already
    partner.tell(link_to{child});
    victim.tell(link_to{child});
    EXPECT_EQ(former.ask(ping{}), 1);
    EXPECT_EQ(victim.ask(ping{}), 1);
    EXPECT_TRUE(partner.ask(heard{}).empty());
    EXPECT_EQ(ties_of(child), 3u);
    child.tell(crash{});
    EXPECT_EQ(victim.join().kind(), exit_kind::linked);
    EXPECT_EQ(former.join().kind(), exit_kind::linked);
    await([&] { return partner.ask(heard{}).size() == 1; });
    EXPECT_EQ(partner.ask(heard{}), (words{"exit failed: crash"}));
    await([&] { return sup.restarts() == 1; });
    EXPECT_EQ(ask_patiently(child, ping{}), 1);
    partner.kill();  // the child that runs now is linked to nobody
    partner.join();
    EXPECT_EQ(child.ask(ping{}), 1);
    EXPECT_EQ(ties_of(child), 0u);
    EXPECT_EQ(sup.restarts(), 1u);
  });
}

TEST_P(incarnations, are_watched_or_their_actor_is) {
  in_runtime([] {
    auto w = spawn_actor<listener>();
    auto v = spawn_actor<listener>();
    {
      supervisor sup{many_restarts()};
      auto child = sup.spawn_actor<plain>();
      w.tell(watch_it{child, monitoring::incarnation});
      v.tell(watch_it{child, monitoring::actor});
      EXPECT_TRUE(w.ask(heard{}).empty());
      EXPECT_TRUE(v.ask(heard{}).empty());
      child.tell(crash{});
      await([&] { return w.ask(heard{}).size() == 1; });
      EXPECT_EQ(w.ask(heard{}), (words{"down failed: crash"}));
      EXPECT_EQ(ask_patiently(child, ping{}), 1);
      EXPECT_TRUE(v.ask(heard{}).empty());
    }
    await([&] { return v.ask(heard{}).size() == 1; });
    EXPECT_EQ(v.ask(heard{}), (words{"down shutdown"}));
    EXPECT_EQ(w.ask(heard{}).size(), 1u);
    stop_and_join(w, v);
  });
}

TEST_P(incarnations, that_end_leave_nothing_with_those_they_watched) {
  in_runtime([] {
    auto service = spawn_actor<plain>();
    /// Monitors and links, and ends at once.
    class short_lived : public actor<short_lived> {
     public:
      short_lived(const any_actor& service, bool fails) {
        monitor(service);
        link(service);
        if (fails) throw std::runtime_error{"no"};
      }
      void on(const down&) {}
      void on(const exit_signal&) {}
    };
    for (int i = 0; i < scaled(1000); ++i) {
      auto s = spawn_actor<short_lived>(service, false);
      s.stop();
      s.join();
    }
    EXPECT_EQ(ties_of(service), 0u);
    // The service is linked to it, and a constructor that fails is a failure.
    auto tough = spawn_actor<listener>();
    for (int i = 0; i < scaled(1000); ++i) EXPECT_THROW(spawn_actor<short_lived>(tough, true), std::runtime_error);
    EXPECT_EQ(ties_of(tough), 0u);
    const words told = tough.ask(heard{});
    EXPECT_EQ(told.size(), static_cast<std::size_t>(scaled(1000)));
    EXPECT_EQ(told.front(), "exit failed: no");
    stop_and_join(service, tough);
  });
}

TEST_P(incarnations, take_their_timers_along) {
  struct tick {};
  /// Starts timers, and cannot be made.
  class failing : public actor<failing> {
   public:
    failing(std::atomic<int>& made, std::atomic<int>& ticks) : ticks_{ticks} {
      send_every(1us, tick{});
      send_after(1us, tick{});
      if (++made % 10 != 1) throw std::runtime_error{"no"};
    }
    void on(tick) { ++ticks_; }
    void on(crash) { throw std::runtime_error{"crash"}; }
    int on(ping) { return 1; }

   private:
    std::atomic<int>& ticks_;
  };
  in_runtime([] {
    std::atomic<int> made{0};
    std::atomic<int> ticks{0};
    supervisor sup{many_restarts()};
    auto f = sup.spawn_actor<failing>(std::ref(made), std::ref(ticks));
    f.tell(crash{});
    await([&] { return made.load() >= 11; });
    EXPECT_EQ(ask_patiently(f, ping{}), 1);
    // One that was just being fired when its incarnation ended leaves a little later.
    await([&] {
      detail::incarnation& now = f.cell()->more.load()->now;
      std::lock_guard guard{now.timers_lock};
      int timers = 0;
      for (const auto* t = now.timers; t != nullptr; t = t->next) ++timers;
      return timers <= 2;
    });
    EXPECT_THROW(spawn_actor<failing>(made, ticks), std::runtime_error);
  });
}

TEST_P(incarnations, do_not_hear_what_was_meant_for_another) {
  struct tick {};
  struct gate {};
  /// Has a tick and a note in its mailbox when it fails.
  class waiting_one : public actor<waiting_one> {
   public:
    waiting_one(fiber_tests::event& go, std::atomic<int>& strays) : go_{go}, strays_{strays} {}
    void on(const watch_it& w) {
      monitor(w.whom);
      link(w.whom);
      send_after(0ns, tick{});
    }
    void on(gate) {
      go_.wait();
      throw std::runtime_error{"crash"};
    }
    void on(tick) { ++strays_; }
    void on(const down&) { ++strays_; }
    void on(const exit_signal&) { ++strays_; }
    int on(ping) { return 1; }

   private:
    fiber_tests::event& go_;
    std::atomic<int>& strays_;
  };
  in_runtime([] {
    fiber_tests::event go;
    std::atomic<int> strays{0};
    supervisor sup{many_restarts()};
    auto service = spawn_actor<plain>();
    auto w = sup.spawn_actor<waiting_one>(std::ref(go), std::ref(strays));
    w.tell(gate{});
    await([&] { return go.parked() == 1; });
    // Behind the gate: what it hears then is for the next.
    go.set();
    EXPECT_EQ(ask_patiently(w, ping{}), 1);
    fiber_tests::event again;
    auto v = sup.spawn_actor<waiting_one>(std::ref(again), std::ref(strays));
    v.tell(watch_it{service});
    v.tell(gate{});
    await([&] { return again.parked() == 1; });
    const auto before = v.mail_count();
    stop_and_join(service);
    await([&] { return strays.load() + static_cast<int>(v.mail_count()) >= static_cast<int>(before); });
    const int heard_in_time = strays.load();
    again.set();
    EXPECT_EQ(ask_patiently(v, ping{}), 1);
    EXPECT_LE(strays.load() - heard_in_time, 0);
  });
}

TEST_P(incarnations, are_found_ended_with_their_reason) {
  /// Its end takes a while, during which others tie themselves to it.
  class slow_end : public actor<slow_end> {
   public:
    slow_end(std::atomic<int>& ending, fiber_tests::event& go) : ending_{ending}, go_{go} {}
    ~slow_end() {
      ++ending_;
      go_.wait();
    }

   private:
    std::atomic<int>& ending_;
    fiber_tests::event& go_;
  };
  in_runtime([] {
    std::atomic<int> ending{0};
    fiber_tests::event go;
    auto s = spawn_actor<slow_end>(ending, go);
    auto linker = spawn_actor<plain>();
    auto w = spawn_actor<listener>();
    s.stop();
    await([&] { return ending.load() == 1; });
    EXPECT_TRUE(s.alive());
    linker.tell(link_to{s});
    w.tell(watch_it{s});
    w.tell(watch_it{s, monitoring::incarnation});
    EXPECT_EQ(linker.ask(ping{}), 1);
    EXPECT_TRUE(w.ask(heard{}).empty());
    go.set();
    EXPECT_EQ(s.join().kind(), exit_kind::stopped);
    await([&] { return w.ask(heard{}).size() == 2; });
    EXPECT_EQ(w.ask(heard{}), (words{"down stopped", "down stopped"}));
    EXPECT_EQ(linker.ask(ping{}), 1);
    w.tell(watch_it{s});
    linker.tell(link_to{s});
    EXPECT_EQ(linker.ask(ping{}), 1);
    // What it tells itself may come behind the question.
    await([&] { return w.ask(heard{}).size() == 3; });
    stop_and_join(linker, w);
  });
}

TEST_P(incarnations, tie_themselves_to_those_that_end_just_then) {
  class quick : public actor<quick> {};
  in_runtime([] {
    for (int i = 0; i < scaled(3000); ++i) {
      auto q = spawn_actor<quick>();
      auto linker = spawn_actor<plain>();
      auto w = spawn_actor<listener>();
      linker.tell(link_to{q});
      w.tell(watch_it{q});
      q.stop();
      w.tell(watch_it{q});
      await([&] { return w.ask(heard{}).size() == 2; });
      ASSERT_EQ(w.ask(heard{}), (words{"down stopped", "down stopped"}));
      ASSERT_EQ(linker.ask(ping{}), 1);
      stop_and_join(linker, w);
    }
  });
}

TEST_P(incarnations, that_stop_in_the_constructor_end) {
  class brief : public actor<brief> {
   public:
    explicit brief(std::atomic<int>& alive) : alive_{alive} {
      ++alive_;
      stop();
      self().tell(ping{});
    }
    ~brief() { --alive_; }
    void on(ping) { alive_ += 100; }

   private:
    std::atomic<int>& alive_;
  };
  class briefer : public actor<briefer> {
   public:
    briefer() { stop(); }
  };
  in_runtime([] {
    std::atomic<int> alive{0};
    EXPECT_EQ(spawn_actor<brief>(alive).join().kind(), exit_kind::stopped);
    EXPECT_EQ(alive.load(), 0);
    EXPECT_EQ(spawn_actor<briefer>().join().kind(), exit_kind::stopped);
    supervisor sup{{.max_restarts = 3, .within = 1h, .report = [](const child_report&) {}}};
    auto b = sup.spawn_actor<briefer>();
    EXPECT_EQ(sup.join().kind(), exit_kind::gave_up);
    EXPECT_EQ(sup.cell()->has_ended(), true);
    EXPECT_EQ(b.join().kind(), exit_kind::stopped);
  });
}

TEST_P(incarnations, that_are_bounded_count_no_refused_requests) {
  // Requests that a restart refuses count no more, and those who wait for their room are let in.
  in_runtime([] {
    supervisor sup{many_restarts()};
    auto c = sup.spawn_actor<plain>(child_options{.actor = {.mailbox_capacity = 4}});
    for (int round = 0; round < scaled(200); ++round) {
      c.tell(crash{});
      std::vector<join_handle<void>> askers;
      for (int i = 0; i < 8; ++i)
        askers.push_back(spawn([c] {
          try {
            c.ask(ping{});
          } catch (const actor_down&) {
          }
        }));
      for (auto& a : askers) a.join();
    }
    EXPECT_EQ(ask_patiently(c, ping{}), 1);
    await([&] { return c.mail_count() == 0; });
  });
}

TEST_P(incarnations, serve_while_they_crash) {
  // A service: four shards with short mailboxes, many clients, and crashes all the time.
  in_runtime([] {
    supervisor sup{many_restarts()};
    std::vector<actor_ref<plain>> shards;
    for (int i = 0; i < 4; ++i)
      shards.push_back(sup.spawn_actor<plain>(child_options{.actor = {.mailbox_capacity = 32}}));
    const int clients = scaled(1000);
    std::atomic<int> served{0};
    std::atomic<bool> over{false};
    auto storm = spawn([&] {
      for (std::size_t i = 0; !over; ++i) {
        await([&] { return over || sup.restarts() + 4 > i; });  // so that they also serve
        shards[i % 4].tell(crash{});
        this_fiber::sleep_for(1ms);
      }
    });
    std::vector<join_handle<void>> all;
    for (int i = 0; i < clients; ++i)
      all.push_back(spawn([&, i] {
        served += ask_patiently(shards[static_cast<std::size_t>(i) % 4], ping{});
        for (int n = 0; n < 50; ++n) {
          try {
            served += shards[static_cast<std::size_t>(i + n) % 4].ask(ping{});
          } catch (const actor_down&) {
            this_fiber::yield();
          }
        }
      }));
    for (auto& h : all) h.join();
    over = true;
    storm.join();
    EXPECT_GE(served.load(), clients);
    for (auto& s : shards) {
      EXPECT_EQ(ask_patiently(s, ping{}), 1);
      await([&] { return s.mail_count() == 0; });
    }
  });
}

TEST_P(incarnations, restart_however_much_mail_waits) {
  // 20,000 messages wait, and each crashes the actor: a look at all of them each time would take minutes.
  static std::atomic<int> crashes;
  crashes = 0;
  class fragile : public actor<fragile> {
   public:
    void on(int) {
      ++crashes;
      throw 1;
    }
  };
  in_runtime([] {
    supervisor sup{many_restarts()};
    auto f = sup.spawn_actor<fragile>();
    const int n = scaled(20'000);
    for (int i = 0; i < n; ++i) f.tell(i);
    await([&] { return crashes.load() == n; });
  });
}

TEST_P(incarnations, give_their_names_back) {
  in_runtime([] {
    auto a = spawn_actor<plain>();
    auto b = spawn_actor<plain>();
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(register_name("inc.a" + std::to_string(i), a));
      EXPECT_FALSE(register_name("inc.a" + std::to_string(i), b));
      EXPECT_TRUE(register_name("inc.b" + std::to_string(i), b));
    }
    EXPECT_EQ(names_of_this_test(), 2000u);
    EXPECT_TRUE(unregister_name("inc.a500"));
    EXPECT_EQ(whereis_any("inc.a7"), a);
    stop_and_join(a);
    EXPECT_FALSE(whereis_any("inc.a7"));
    EXPECT_EQ(whereis<plain>("inc.b999"), b);
    EXPECT_EQ(names_of_this_test(), 1000u);
    stop_and_join(b);
    EXPECT_EQ(names_of_this_test(), 0u);
    // One whose constructor throws.
    class named : public actor<named> {
     public:
      named() {
        register_name("inc.named", self());
        throw std::runtime_error{"no"};
      }
    };
    EXPECT_THROW(spawn_actor<named>(), std::runtime_error);
    EXPECT_FALSE(whereis_any("inc.named"));
  });
}

TEST_P(incarnations, tell_of_failures_by_their_class) {
  in_runtime([] {
    testing::internal::CaptureStderr();
    auto p = spawn_actor<plain>();
    p.tell(crash{});
    while (p.alive()) this_fiber::yield();
    await([&] {  // not by join: that would be somebody who knows
      std::lock_guard guard{p.cell()->lock};
      return (p.cell()->status & detail::actor_cell::ended) != 0;
    });
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("plain"), std::string::npos) << text;
    EXPECT_EQ(text.find("fiber"), std::string::npos) << text;
    testing::internal::CaptureStderr();
    {
      supervisor sup{{.max_restarts = 1, .within = 1h, .name = "shop"}};
      auto c = sup.spawn_actor<plain>(child_options{.id = "till"});
      c.tell(crash{});
      c.tell(crash{});
      sup.join();
    }
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_NE(told.find("supervisor \"shop\": child \"till\""), std::string::npos) << told;
    EXPECT_NE(told.find("failed: crash; restart 1 of 1"), std::string::npos) << told;
    EXPECT_NE(told.find("gives up"), std::string::npos) << told;
  });
}

}  // namespace
}  // namespace ramie
