// Groups: who is in them, who is told, and what they get.
#include <ramie/patterns/group.hpp>

#include <ramie/fiber/fork_join.hpp>
#include <ramie/patterns/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;
using namespace pattern_tests;

struct gate {};

using readers = group<news>;
using shared_readers = std::shared_ptr<readers>;
struct begin {};
struct fail {};
struct counts {
  std::size_t members;
  std::vector<std::string> told;
};

/// Keeps a list of who is in a group, by what it is told; its notes are "+" and "-".
class watcher : public actor<watcher> {
 public:
  explicit watcher(shared_readers g, bool at_once = true) : group_{std::move(g)} {
    if (at_once) on(begin{});
  }
  void on(begin) {
    auto [ref, members] = group_->monitor(self());
    ref_ = ref;
    there_.clear();
    for (const auto& m : members) ++there_[m];
  }
  void on(const member_joined& note) { change(note.ref, note.who, 1); }
  void on(const member_left& note) { change(note.ref, note.who, -1); }
  void on(fail) { throw 1; }
  std::vector<std::string> on(count) { return told_; }
  /// How many it believes to be in the group.
  std::size_t on(gate) {
    std::size_t n = 0;
    for (const auto& [who, there] : there_) {
      EXPECT_TRUE(there == 0 || there == 1);
      n += static_cast<std::size_t>(there);
    }
    return n;
  }

 private:
  void change(monitor_ref ref, const any_actor& who, int by) {
    EXPECT_EQ(ref, ref_);
    there_[who] += by;
    told_.emplace_back(by > 0 ? "+" : "-");
  }
  shared_readers group_;
  monitor_ref ref_;
  std::map<any_actor, int> there_;
  std::vector<std::string> told_;
};
using words = std::vector<std::string>;

class groups : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, groups, few_and_many());

TEST_P(groups, publish_to_all_who_live) {
  in_runtime([] {
    readers g;
    auto a = spawn_actor<reader>();
    auto b = spawn_actor<other_reader>();
    auto c = spawn_actor<reader>();
    EXPECT_TRUE(g.join(a));
    EXPECT_FALSE(g.join(a));
    EXPECT_TRUE(g.join(b));
    EXPECT_TRUE(g.join(c));
    EXPECT_EQ(g.size(), 3u);
    const auto all = g.members();
    EXPECT_EQ((std::vector<any_actor>{all.begin(), all.end()}), (std::vector<any_actor>{a, b, c}));
    EXPECT_EQ(g.publish(news{"four"}).taken, 3u);
    stop_and_join(c);
    EXPECT_EQ(g.size(), 2u);
    EXPECT_FALSE(g.join(c));
    EXPECT_EQ(g.publish(news{"four"}).taken, 2u);
    EXPECT_EQ(a.ask(count{}), 2);
    EXPECT_EQ(b.ask(count{}), 8u);
    EXPECT_TRUE(g.leave(a));
    EXPECT_FALSE(g.leave(a));
    EXPECT_FALSE(g.contains(a));
    EXPECT_TRUE(g.contains(b));
    EXPECT_EQ(g.publish(news{"five!"}).taken, 1u);
    stop_and_join(a, b);
    EXPECT_EQ(g.publish(news{""}).taken, 0u);
  });
}

TEST_P(groups, are_not_held_up_by_a_full_member) {
  class slow : public actor<slow> {
   public:
    explicit slow(fiber_tests::event& go) : go_{go} {}
    void on(gate) { go_.wait(); }
    void on(const news&) { ++count_; }
    int on(count) { return count_; }

   private:
    fiber_tests::event& go_;
    int count_ = 0;
  };
  in_runtime([] {
    fiber_tests::event go;
    readers g;
    auto a = spawn_actor<slow>(actor_options{.mailbox_capacity = 2}, go);
    auto b = spawn_actor<reader>();
    g.join(a);
    g.join(b);
    a.tell(gate{});
    await([&] { return go.parked() == 1; });
    std::size_t refused = 0;
    for (int i = 0; i < 10; ++i) refused += g.publish(news{}).refused;
    EXPECT_EQ(refused, 8u);
    EXPECT_EQ(b.ask(count{}), 10);
    go.set();
    EXPECT_EQ(a.ask(count{}), 2);
    stop_and_join(a, b);
  });
}

TEST_P(groups, tell_who_joins_and_who_leaves) {
  in_runtime([] {
    auto g = std::make_shared<readers>();
    auto a = spawn_actor<reader>();
    auto b = spawn_actor<reader>();
    g->join(a);
    auto w = spawn_actor<watcher>(g);
    EXPECT_EQ(w.ask(gate{}), 1u);
    g->join(b);
    EXPECT_EQ(w.ask(gate{}), 2u);
    g->leave(a);
    EXPECT_EQ(w.ask(gate{}), 1u);
    g->join(a);
    b.kill();
    b.join();  // it has left by then
    EXPECT_EQ(w.ask(count{}), (words{"+", "-", "+", "-"}));
    EXPECT_EQ(w.ask(gate{}), 1u);
    EXPECT_TRUE(g->unmonitor(w));
    EXPECT_FALSE(g->unmonitor(w));
    g->leave(a);
    EXPECT_EQ(w.ask(count{}).size(), 4u);
    // A second monitor takes the place of the first: one note each.
    w.tell(begin{});
    w.tell(begin{});
    EXPECT_EQ(w.ask(gate{}), 0u);
    g->join(a);
    EXPECT_EQ(w.ask(count{}).size(), 5u);
    stop_and_join(a, w);
    EXPECT_FALSE(g->unmonitor(w));
  });
}

TEST_P(groups, keep_members_and_lose_monitors_over_a_restart) {
  class member : public actor<member> {
   public:
    void on(const news&) {}
    void on(fail) { throw 1; }
    int on(count) { return 1; }
  };
  in_runtime([] {
    supervisor sup{{.max_restarts = 1000, .report = [](const child_report&) {}}};
    auto g = std::make_shared<readers>();
    auto m = sup.spawn_actor<member>();
    auto w = sup.spawn_actor<watcher>(g);
    auto lazy = sup.spawn_actor<watcher>(g, false);
    lazy.tell(begin{});
    g->join(m);
    m.tell(fail{});
    EXPECT_EQ(ask_patiently(m, count{}), 1);
    EXPECT_TRUE(g->contains(m));
    // Its constructor monitors the group anew, so it knows who is there, and is told once of each change.
    for (int i = 0; i < 3; ++i) {
      w.tell(fail{});
      EXPECT_EQ(ask_patiently(w, gate{}), 1u);
    }
    lazy.tell(fail{});
    EXPECT_EQ(ask_patiently(lazy, gate{}), 0u);
    g->leave(m);
    EXPECT_EQ(w.ask(count{}), words{"-"});
    EXPECT_EQ(lazy.ask(count{}), words{});
  });
}

TEST_P(groups, may_end_before_their_members) {
  in_runtime([] {
    auto a = spawn_actor<reader>();
    std::optional<readers> g{std::in_place};
    class listening : public actor<listening> {
     public:
      void on(const member_joined&) { ++count_; }
      void on(const member_left&) { ++count_; }
      int on(count) { return count_; }

     private:
      int count_ = 0;
    };
    auto w = spawn_actor<listening>();
    static_cast<void>(g->monitor(w));
    g->join(a);
    g.reset();
    EXPECT_EQ(w.ask(count{}), 1);
    stop_and_join(a, w);
    // And members, watchers and groups at the same time.
    for (int i = 0; i < scaled(300); ++i) {
      std::optional<readers> first{std::in_place};
      readers second;
      auto b = spawn_actor<reader>();
      auto v = spawn_actor<listening>();
      for (readers* each : {&*first, &second}) {
        each->join(b);
        static_cast<void>(each->monitor(v));
      }
      fork_join([&] { b.kill(); }, [&] { fork_join([&] { first.reset(); }, [&] { v.kill(); }); });
      b.join();
      v.join();
      EXPECT_EQ(second.size(), 0u);
    }
  });
}

/// Many join, leave and end at once; a watcher that begins in their midst knows who is there.
TEST_P(groups, tell_watchers_what_fits_the_list_they_began_with) {
  in_runtime([] {
    const int n = scaled(200);
    auto g = std::make_shared<readers>();
    std::vector<actor_ref<reader>> all;
    for (int i = 0; i < 4 * n; ++i) all.push_back(spawn_actor<reader>());
    std::vector<actor_ref<watcher>> watchers;
    const auto change = [&](int from) {
      for (int i = from; i < from + 2 * n; ++i) {
        auto& a = all[static_cast<std::size_t>(i)];
        g->join(a);
        if (i % 4 == 0) g->leave(a);
        if (i % 4 == 1) a.kill();
        if (i % 4 == 2) this_fiber::yield();
      }
    };
    fork_join([&] { fork_join([&] { change(0); }, [&] { change(2 * n); }); },
              [&] {
                for (int i = 0; i < 8; ++i) {
                  watchers.push_back(spawn_actor<watcher>(g));
                  this_fiber::yield();
                }
              });
    for (std::size_t i = 1; i < all.size(); i += 4) all[i].join();
    EXPECT_EQ(g->size(), static_cast<std::size_t>(2 * n));
    for (const auto& w : watchers) EXPECT_EQ(w.ask(gate{}), g->size());
    for (const auto& a : all) a.kill();
    for (const auto& a : all) a.join();
    for (const auto& w : watchers) {
      EXPECT_EQ(w.ask(gate{}), 0u);
      stop_and_join(w);
    }
  });
}

TEST_P(groups, have_fiber_actors) {
  in_runtime([] {
    readers g;
    std::vector<std::string> seen;
    using told = mailbox<member_joined, member_left, news>;
    auto f = spawn_actor<member_joined, member_left, news>([&](told& box) {
      static_cast<void>(g.monitor(box.self()));
      g.join(box.self());
      while (auto m = box.receive()) {
        if (std::holds_alternative<member_joined>(*m)) seen.emplace_back("+");
        else if (std::holds_alternative<member_left>(*m)) seen.emplace_back("-");
        else g.leave(box.self());
        if (seen.size() == 2) return;
      }
    });
    await([&] { return g.size() == 1; });
    EXPECT_EQ(g.publish(news{"x"}).taken, 1u);
    f.join();
    EXPECT_EQ(seen, (words{"+", "-"}));
  });
}

}  // namespace
}  // namespace ramie
