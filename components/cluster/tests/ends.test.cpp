// What nodes tell each other of ends: of actors, of whole nodes at random moments, of names and of messages.
// Mostly waits.
#include "../node.hpp"
#include "../test_nodes.hpp"

#include <ramie/actor.hpp>
#include <ramie/base/config.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace cluster_tests;

constexpr bool is_sanitized = RAMIE_TSAN || RAMIE_ASAN;

/// Collects the notes of ends that it gets.
class coroner : public actor<coroner> {
 public:
  struct watch {
    any_actor who;
  };
  struct reports {};
  explicit coroner(std::shared_ptr<std::vector<down>> to) : to_{std::move(to)} {}
  void on(const watch& w) { monitor(w.who); }
  void on(const down& d) { to_->push_back(d); }
  std::size_t on(reports) { return to_->size(); }

 private:
  std::shared_ptr<std::vector<down>> to_;
};

class tied : public actor<tied> {
 public:
  bool on(const any_actor& to) {
    link(to);
    return true;
  }
};

/// What an ask that may fail came to.
exit_kind asked(const actor_ref<keeper>& whom, std::uint64_t ms) {
  return reason_thrown([&] { static_cast<void>(whom.ask(wait_for{ms})); }).kind();
}

/// A node that is killed at a moment that the seed says, while everything that can be waited for is waited for.
void kill_at_random(cluster& here, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  process node{{program("test_cluster_node"), server().url(), "victim"}, "-"};
  ASSERT_EQ(blocking([&] { return node.line(); }), "ready\n");
  const auto there = here.whereis<keeper>("keeper-victim").value();
  constexpr std::size_t count = 8;
  std::vector<actor_ref<keeper>> members;
  std::vector<actor_ref<tied>> ties;
  const auto downs = std::make_shared<std::vector<down>>();
  const auto watcher = spawn_actor<coroner>(downs);
  for (std::size_t i = 0; i < count; ++i) {
    members.push_back(there.ask(spawn_bounded{i % 3 == 0 ? 4u : 0u}));
    watcher.tell(coroner::watch{members[i]});
    ties.push_back(spawn_actor<tied>());
    EXPECT_TRUE(ties[i].ask(any_actor{members[i]}));
  }
  std::vector<join_handle<exit_kind>> joins, asks;
  std::vector<join_handle<void>> tells;
  for (std::size_t i = 0; i < count; ++i) {
    const auto m = members[i];
    joins.push_back(spawn([m] { return m.join().kind(); }));
    asks.push_back(spawn([m] {
      for (std::uint64_t ms = 0;; ms = (ms + 7) % 50)
        if (const exit_kind how = asked(m, ms); how != exit_kind::alive) return how;
    }));
    tells.push_back(spawn([m] {
      for (std::uint64_t n = 0; m.tell(number{n}) == tell_status::ok; ++n)
        if (n % 20 == 19) this_fiber::sleep_for(1ms);
    }));
  }
  // Some end before, some just then.
  for (auto ends = random() % 4; ends > 0; --ends) {
    const auto& one = members[random() % count];
    this_fiber::sleep_for(std::chrono::milliseconds{random() % 40});
    if (random() % 2 == 0) one.tell(end_me{});
    else one.tell(fail{"on its own"});
  }
  this_fiber::sleep_for(std::chrono::milliseconds{random() % 60});
  node.end(SIGKILL);
  for (std::size_t i = 0; i < count; ++i) {
    const exit_kind how = joins[i].join();
    EXPECT_TRUE(how == exit_kind::node_lost || how == exit_kind::stopped || how == exit_kind::failed)
        << "seed " << seed << ": " << static_cast<int>(how);
    EXPECT_EQ(asks[i].join(), how) << "seed " << seed;
    tells[i].join();
    EXPECT_FALSE(members[i].alive());
    if (how == exit_kind::stopped) {  // an orderly end does not end those who are linked
      EXPECT_TRUE(ties[i].alive());
      ties[i].stop();
      ties[i].join();
    } else {
      EXPECT_EQ(ties[i].join().kind(), exit_kind::linked) << "seed " << seed;
    }
  }
  while (watcher.ask(coroner::reports{}) < count) this_fiber::sleep_for(1ms);
  watcher.stop();
  watcher.join();
  EXPECT_EQ(downs->size(), count) << "seed " << seed;
  for (std::size_t i = 0; i < count; ++i) {
    const auto report = std::find_if(downs->begin(), downs->end(), [&](const down& d) { return d.who == members[i]; });
    ASSERT_NE(report, downs->end()) << "seed " << seed;
    EXPECT_EQ(report->reason.kind(), members[i].join().kind()) << "seed " << seed;
  }
}

TEST(ends, of_nodes_at_random_moments_reach_all_who_wait_once) {
  run([] {
    cluster here{options_for(server().url(), "here")};
    here.knows<keeper>();
    for (std::uint64_t seed = 1; seed <= (is_sanitized ? 4u : 12u); ++seed) {
      kill_at_random(here, seed);
      if (testing::Test::HasFailure()) break;
    }
  });
}

TEST(ends, of_actors_set_their_names_free_and_take_no_others) {
  run([] {
    two_nodes n;
    for (int round = 0; round < (is_sanitized ? 20 : 60); ++round) {
      const std::string name = "changes-hands-" + std::to_string(round);
      const auto first = spawn_actor<keeper>(), second = spawn_actor<keeper>();
      EXPECT_TRUE(n.a.register_name(name, first));
      EXPECT_TRUE(n.a.register_name(name, first));  // it has it
      EXPECT_FALSE(n.a.register_name(name, second));
      first.stop();
      first.join();
      // The name is free at once on its own node; that the first one's end is reported later does not take it away
      // again.
      EXPECT_TRUE(n.a.register_name(name, second));
      second.tell(text{"x"});
      EXPECT_EQ(n.b.whereis<keeper>(name).value().ask(text{"y"}), "y!");
      second.stop();
      second.join();
      while (n.b.whereis<keeper>(name).has_value()) this_fiber::sleep_for(1ms);
    }
    // Two names, and a server that is away when the actor ends.
    const auto two = spawn_actor<keeper>();
    EXPECT_TRUE(n.a.register_name("one-of-two", two));
    EXPECT_TRUE(n.a.register_name("two-of-two", two));
    server().kill();
    two.stop();
    two.join();
    blocking([] { server().start_again(); });
    const auto heir = spawn_actor<keeper>();
    for (const char* name : {"one-of-two", "two-of-two"})
      for (bool has = false; !has;) try {
          has = n.b.register_name(name, heir);
        } catch (const cluster_error&) {
          // The server is not quite there.
        }
    heir.stop();
    heir.join();
  });
}

/// libnats keeps what it said about the call before, and a call that gets no answer says nothing itself.
TEST(ends, of_the_server_are_not_taken_for_its_last_answer) {
  const auto net = detail::make_nats_carrier(options_for(server().url(), "c"));
  const std::uint64_t mine = net->create("names", "kept", "by me");
  ASSERT_NE(mine, 0u);
  EXPECT_EQ(net->create("names", "kept", "by another"), 0u);
  server().kill();
  EXPECT_THROW(net->remove("names", "kept", mine), cluster_error);
  server().start_again();
  for (bool kept = true; kept;) try {
      static_cast<void>(net->remove("names", "kept", mine));  // if the first one has not reached the server after all
      kept = net->get("names", "kept").has_value();
    } catch (const cluster_error&) {
      // The server is not quite there.
    }
}

struct letters {
  std::mutex lock;
  std::map<dead_letter_cause, std::map<std::string, int>> all;
  void add(const dead_letter& d) {
    const std::lock_guard guard{lock};
    ++all[d.cause][std::string{d.type->name()}];
  }
  int count(dead_letter_cause cause, const type_info& type) {
    const std::lock_guard guard{lock};
    return all[cause][std::string{type.name()}];
  }
};

TEST(ends, of_messages_that_nobody_takes_are_reported_where_it_happens) {
  runtime rt;
  rt.run([&] {
    two_nodes n;
    letters seen;
    const dead_letter_watch watch{rt, [&](const dead_letter& d) { seen.add(d); }};
    // An actor that has ended, as its node says.
    const auto ended = n.there.ask(spawn_bounded{0});
    ended.tell(end_me{});
    EXPECT_EQ(ended.join().kind(), exit_kind::stopped);
    EXPECT_EQ(ended.tell(text{"late"}), tell_status::down);
    EXPECT_EQ(seen.count(dead_letter_cause::down, type_of<text>()), 1);
    // What is in its mailbox when it fails, there.
    const auto failing = n.there.ask(spawn_bounded{0});
    failing.tell(wait_for{100});
    failing.tell(fail{"on purpose"});
    for (int i = 0; i < 10; ++i) failing.tell(order_kept{});
    EXPECT_EQ(failing.join().kind(), exit_kind::failed);
    while (seen.count(dead_letter_cause::down, type_of<order_kept>()) < 10) this_fiber::sleep_for(1ms);
    EXPECT_EQ(seen.count(dead_letter_cause::down, type_of<order_kept>()), 10);
  });
}

TEST(ends, of_nodes_make_dead_letters_of_what_is_told_to_their_actors) {
  runtime rt;
  rt.run([&] {
    far_node n{"unlucky"};
    letters seen;
    const dead_letter_watch watch{rt, [&](const dead_letter& d) { seen.add(d); }};
    const auto small = n.there.ask(spawn_bounded{4});
    small.tell(wait_for{60'000});
    // Four get into the mailbox there, four may be under way, and four wait here; the next one holds its sender.
    auto sender = spawn([&] {
      int taken = 0;
      for (std::uint64_t i = 0; i < 13; ++i) taken += small.tell(number{i}) == tell_status::ok ? 1 : 0;
      return taken;
    });
    while (small.mail_count() < 4) this_fiber::sleep_for(1ms);
    n.node.end(SIGKILL);
    EXPECT_EQ(small.join().kind(), exit_kind::node_lost);
    EXPECT_GE(sender.join(), 8);  // four there or under way, at least, when four wait
    EXPECT_GE(seen.count(dead_letter_cause::lost, type_of<number>()), 4);
    EXPECT_EQ(small.tell(text{"late"}), tell_status::down);
    EXPECT_EQ(
        seen.count(dead_letter_cause::lost, type_of<text>()) + seen.count(dead_letter_cause::down, type_of<text>()), 1);
  });
}

}  // namespace
}  // namespace ramie
