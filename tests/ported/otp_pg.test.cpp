// Behaviours after the tests of OTP's process groups (lib/kernel/test/pg_SUITE.erl), as programs for ramie; each names
// its origin. A process may join a group of OTP's several times; an actor is in a group once. Cases that do not apply:
//   errors                                          what OTP checks at run time, the compiler does
//   dyn_distribution, two, overlay_missing, empty_group_by_remote_leave, initial, netsplit, trisplit, foursplit,
//   nolocal, disconnected_start, forced_sync, protocol_upgrade, missing_scope_join   several nodes: ramie::cluster
//   scope_restart                                   a group is an object, and no process
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

struct word {
  int n = 0;
};
struct heard {};
struct fail_now {};

class member : public actor<member> {
 public:
  void on(word w) { sum_ += w.n; }
  int on(heard) { return sum_; }
  void on(fail_now) { throw cancelled{}; }

 private:
  int sum_ = 0;
};
using words = group<word>;

std::vector<any_actor> members_of(const words& g) {
  std::vector<any_actor> all;
  for (const auto& m : g.members()) all.emplace_back(m);
  return all;
}
template <class Ref>
void end(const Ref& a) {
  a.stop();
  a.join();
}

class otp_groups : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, otp_groups, few_and_many());

// pg, single, group_leave
TEST_P(otp_groups, pg) {
  in_runtime([] {
    words g;
    auto a = spawn_actor<member>();
    auto b = spawn_actor<member>();
    EXPECT_TRUE(g.members().empty());
    EXPECT_FALSE(g.leave(a));
    EXPECT_TRUE(g.join(a));
    EXPECT_FALSE(g.join(a));
    EXPECT_TRUE(g.join(b));
    EXPECT_EQ(members_of(g), (std::vector<any_actor>{a, b}));
    EXPECT_TRUE(g.leave(a));
    EXPECT_FALSE(g.leave(a));
    EXPECT_TRUE(g.join(a));
    EXPECT_EQ(members_of(g), (std::vector<any_actor>{b, a}));
    end(b);
    EXPECT_EQ(members_of(g), (std::vector<any_actor>{a}));
    EXPECT_FALSE(g.join(b));
    end(a);
    EXPECT_EQ(g.size(), 0u);
  });
}

// leave_exit_race: one leaves while it ends.
TEST_P(otp_groups, leave_exit_race) {
  in_runtime([] {
    words g;
    for (int i = 0; i < scaled(500); ++i) {
      auto a = spawn_actor<member>();
      ASSERT_TRUE(g.join(a));
      fork_join([&] { a.kill(); }, [&] { g.leave(a); });
      a.join();
      ASSERT_EQ(g.size(), 0u);
      ASSERT_FALSE(g.contains(a));
    }
  });
}

// thundering_herd: very many join at once, and end at once.
TEST_P(otp_groups, thundering_herd) {
  in_runtime([] {
    words g;
    const int many = scaled(10'000);
    std::vector<actor_ref<member>> all;
    for (int i = 0; i < many; ++i) all.push_back(spawn_actor<member>());
    scope joining;
    for (const auto& a : all) joining.spawn([&] { EXPECT_TRUE(g.join(a)); });
    joining.join();
    EXPECT_EQ(g.size(), all.size());
    EXPECT_EQ(g.publish(word{1}).taken, all.size());
    for (const auto& a : all) a.stop();
    for (const auto& a : all) a.join();
    EXPECT_EQ(g.size(), 0u);
  });
}

// exchange, double: many groups, whose members come and go at random, beside sets.
TEST_P(otp_groups, exchange) {
  in_runtime([] {
    std::mt19937 random{5};
    const auto below = [&](std::size_t n) { return random() % n; };
    std::vector<std::unique_ptr<words>> groups;
    for (int i = 0; i < 8; ++i) groups.push_back(std::make_unique<words>());
    std::vector<std::vector<any_actor>> should(groups.size());
    std::vector<actor_ref<member>> all;
    for (int i = 0; i < 12; ++i) all.push_back(spawn_actor<member>());
    for (int i = 0; i < scaled(5000); ++i) {
      const std::size_t g = below(groups.size());
      const std::size_t who = below(all.size());
      const auto place = std::find(should[g].begin(), should[g].end(), all[who]);
      const bool in = place != should[g].end();
      switch (below(8)) {
        case 0:
          end(all[who]);
          for (auto& s : should) std::erase(s, any_actor{all[who]});
          all[who] = spawn_actor<member>();
          break;
        case 1:
        case 2:
          EXPECT_EQ(groups[g]->leave(all[who]), in);
          if (in) should[g].erase(place);
          break;
        case 3:
          if (below(10) == 0) {
            groups[g] = std::make_unique<words>();
            should[g].clear();
          }
          break;
        default:
          EXPECT_EQ(groups[g]->join(all[who]), !in);
          if (!in) should[g].push_back(all[who]);
      }
      for (std::size_t n = 0; n < groups.size(); ++n) ASSERT_EQ(members_of(*groups[n]), should[n]);
    }
    for (const auto& a : all) end(a);
  });
}

// ---- monitors ----------------------------------------------------------------------------------------------------

struct see {};
struct watch_group {
  words* which;
};
struct unwatch {
  words* which;
};
/// Knows who is in the groups that it watches by what it is told alone.
class watcher : public actor<watcher> {
 public:
  using view = std::multiset<any_actor>;
  void on(const watch_group& w) {
    const auto begun = w.which->monitor(self());
    view& now = seen_[begun.ref.number];
    for (const auto& m : begun.members) now.insert(m);
    latest_ = begun.ref.number;
  }
  void on(const unwatch& w) { w.which->unmonitor(self()); }
  void on(const member_joined& j) { seen_[j.ref.number].insert(j.who); }
  void on(const member_left& l) {
    view& now = seen_[l.ref.number];
    const auto found = now.find(l.who);
    if (found == now.end()) ADD_FAILURE() << "one left who was not there";
    else now.erase(found);
  }
  void on(fail_now) { throw cancelled{}; }
  std::vector<any_actor> on(see) { return {seen_[latest_].begin(), seen_[latest_].end()}; }

 private:
  std::map<std::uint64_t, view> seen_;
  std::uint64_t latest_ = 0;
};

std::vector<any_actor> sorted(std::vector<any_actor> all) {
  std::sort(all.begin(), all.end());
  return all;
}

// monitor, monitor_nonempty_scope, monitor_empty: what a monitor is told, added to what it began with, is who is there.
TEST_P(otp_groups, monitor) {
  in_runtime([] {
    words g, other;
    auto a = spawn_actor<member>();
    auto b = spawn_actor<member>();
    auto w = spawn_actor<watcher>();
    w.tell(watch_group{&g});
    EXPECT_TRUE(w.ask(see{}).empty());
    g.join(a);
    other.join(b);
    EXPECT_EQ(w.ask(see{}), (std::vector<any_actor>{a}));
    g.join(b);
    EXPECT_EQ(w.ask(see{}), sorted({a, b}));
    end(b);
    EXPECT_EQ(w.ask(see{}), (std::vector<any_actor>{a}));
    w.tell(unwatch{&g});
    w.ask(see{});
    g.leave(a);
    EXPECT_EQ(w.ask(see{}), (std::vector<any_actor>{a}));  // it is told no more
    end(a);
    end(w);
  });
}

// monitor_multi_group: watchers of a group whose members come, go and end from everywhere see the same in the end.
TEST_P(otp_groups, monitor_multi_group) {
  in_runtime([] {
    words g;
    std::vector<actor_ref<watcher>> watchers;
    for (int i = 0; i < 4; ++i) watchers.push_back(spawn_actor<watcher>());
    std::mutex lock;
    std::vector<actor_ref<member>> left_over;
    scope all;
    for (int f = 0; f < 6; ++f)
      all.spawn([&, f] {
        std::mt19937 random{static_cast<unsigned>(f)};
        for (int i = 0; i < scaled(200); ++i) {
          auto a = spawn_actor<member>();
          g.join(a);
          if (random() % 4 == 0) watchers[random() % watchers.size()].tell(watch_group{&g});
          if (random() % 2 == 0) g.leave(a);
          if (random() % 3 == 0) this_fiber::yield();
          if (random() % 8 == 0) {
            g.join(a);
            std::lock_guard guard{lock};
            left_over.push_back(a);
          } else {
            a.kill();
          }
        }
      });
    all.join();
    for (const auto& w : watchers) w.tell(watch_group{&g});
    await([&] { return g.size() == left_over.size(); });
    std::vector<any_actor> should{left_over.begin(), left_over.end()};
    for (const auto& w : watchers) EXPECT_EQ(w.ask(see{}), sorted(should));
    for (const auto& a : left_over) end(a);
    for (const auto& w : watchers) {
      EXPECT_TRUE(w.ask(see{}).empty());
      end(w);
    }
  });
}

// A member that is restarted stays, and hears what was published; a watcher that is restarted is told nothing until it
// monitors again.
TEST_P(otp_groups, members_and_monitors_under_a_supervisor) {
  in_runtime([] {
    words g;
    supervisor sup{{.max_restarts = 1000, .within = 1h, .report = [](const child_report&) {}}};
    auto a = sup.spawn_actor<member>();
    auto w = sup.spawn_actor<watcher>();
    g.join(a);
    w.tell(watch_group{&g});
    for (int i = 0; i < 10; ++i) {
      a.tell(fail_now{});
      EXPECT_EQ(g.publish(word{1}).taken, 1u);
      w.tell(fail_now{});
      g.leave(a);
      g.join(a);
      w.tell(watch_group{&g});
      for (;;) {
        try {
          EXPECT_EQ(w.ask(see{}), (std::vector<any_actor>{a}));
          EXPECT_EQ(a.ask(heard{}), 1);
          break;
        } catch (const actor_down&) {
          this_fiber::yield();
        }
      }
    }
    EXPECT_EQ(sup.restarts(), 20u);
    EXPECT_EQ(g.size(), 1u);
  });
}

}  // namespace
}  // namespace ramie
