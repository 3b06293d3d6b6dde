// Shards on a real server: each key has one actor, on the node that has the lease, whichever that is.
// Mostly waits.
#include "test_nodes.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace cluster_tests;

constexpr shard_options quick{.count = 32, .lease = 1000ms};

std::map<std::string, int> count(const std::vector<shard_info>& all) {
  std::map<std::string, int> table;
  for (const shard_info& i : all) ++table[i.node];
  return table;
}

template <class Condition>
void until(Condition holds) {
  while (!holds()) this_fiber::sleep_for(5ms);
}

TEST(shards, are_spread_over_nodes_and_answer_from_each) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    cluster b{options_for(server().url(), "b")};
    const auto at_a = a.shards<counter>("spread", quick);
    at_a.of("before").tell(add{1});  // it waits for an owner
    EXPECT_EQ(at_a.of("before").ask_for(60s, total{}).value, 1);
    const auto at_b = b.shards<counter>("spread", quick);
    // Shards move to the node that has come, until each has some.
    until([&] {
      return count(at_a.owners()).size() == 2 && at_a.owners().size() == 32 && !count(at_a.owners()).contains("");
    });
    std::set<std::string> nodes;
    for (int i = 0; i < 50; ++i) {
      const std::string key = "key " + std::to_string(i);
      for (int n = 0; n < 3; ++n) (n % 2 == 0 ? at_a : at_b).of(key).ask_for(60s, add{n});
      const counted one = at_a.of(key).ask_for(60s, total{}), two = at_b.of(key).ask_for(60s, total{});
      EXPECT_EQ(one.value, 3);
      EXPECT_EQ(two.value, 3);
      EXPECT_EQ(one.token, two.token);
      EXPECT_EQ(one.serial, two.serial);  // the same actor
    }
    const auto before = at_a.of("x").ask_for(60s, total{}).serial;
    EXPECT_THROW(at_a.of("x").ask_for(60s, fail_now{"broken"}), std::exception);
    // The failure is told before the mailbox is closed: what comes between ends with the actor.
    for (;;) try {
        EXPECT_NE(at_a.of("x").ask_for(60s, total{}).serial, before);
        break;
      } catch (const actor_down&) {
      }
    EXPECT_THROW(static_cast<void>(a.shards<counter>("bad", {.count = 0})), invalid_argument);
  });
}

TEST(shards, of_a_node_that_leaves_are_given_to_others) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    const auto at_a = a.shards<counter>("leaving", quick);
    std::vector<std::uint64_t> before;
    {
      cluster b{options_for(server().url(), "b")};
      const auto at_b = b.shards<counter>("leaving", quick);
      until([&] {
        return count(at_b.owners())["a"] != 0 && count(at_b.owners())["b"] != 0 && count(at_b.owners())[""] == 0;
      });
      for (const shard_info& i : at_b.owners()) before.push_back(i.token);
    }
    for (int i = 0; i < 20; ++i) EXPECT_EQ(at_a.of(std::to_string(i)).ask_for(60s, total{}).value, 0);
    until([&] { return count(at_a.owners())["a"] == 32; });
    const auto after = at_a.owners();
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_GE(after[i].token, before[i]);
  });
}

TEST(shards, of_a_killed_node_answer_elsewhere_within_the_lease_and_a_second) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    const auto here = a.shards<counter>("killed", quick);
    process other{{program("test_cluster_node"), server().url(), "other", "killed"}, "-"};
    ASSERT_EQ(blocking([&] { return other.line(); }), "ready\n");
    until([&] { return count(here.owners())["other"] != 0 && count(here.owners())["a"] != 0; });
    std::map<std::string, std::uint64_t> tokens;
    for (int i = 0; i < 64; ++i) tokens[std::to_string(i)] = here.of(std::to_string(i)).ask_for(60s, total{}).token;
    other.end(SIGKILL);
    for (const auto& [key, token] : tokens) {
      // The link says after some 0.8 s that the node is gone; then the lease runs out.
      for (;;) try {
          EXPECT_GE(here.of(key).ask_for(60s, total{}).token, token);
          break;
        } catch (const actor_down&) {
        }
    }
    EXPECT_EQ(count(here.owners())["a"], 32);
  });
}

TEST(shards, of_a_frozen_node_are_not_used_by_it_when_it_goes_on) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    const auto here = a.shards<counter>("frozen", quick);
    process other{{program("test_cluster_node"), server().url(), "other", "frozen"}, "-"};
    ASSERT_EQ(blocking([&] { return other.line(); }), "ready\n");
    until([&] { return count(here.owners())["other"] != 0; });
    std::string key;
    for (int i = 0; key.empty(); ++i)
      if (here.owners()[here.shard_of(std::to_string(i))].node == "other") key = std::to_string(i);
    const counted before = here.of(key).ask_for(60s, total{});
    other.signal(SIGSTOP);
    // These get into the frozen process' socket, and are not handled when it goes on: its lease is over.
    for (int i = 0; i < 10; ++i) here.of(key).tell(add{1});
    until([&] { return count(here.owners())["a"] == 32; });
    const counted after = here.of(key).ask_for(60s, total{});
    EXPECT_GT(after.token, before.token);
    EXPECT_EQ(after.value, 0);
    other.signal(SIGCONT);
    // It takes part again, by a new lease; the key comes back to it, or stays; either way there is one actor.
    until([&] { return count(here.owners())["other"] != 0; });
    // If its connection outlived that, what it had not read is sent on to the owner (G3 of shards.cpp).
    const auto value = here.of(key).ask_for(60s, total{}).value;
    EXPECT_TRUE(value >= 0 && value <= 10) << value;
  });
}

TEST(shards, stop_actors_that_are_idle_and_lose_nothing) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    const auto here = a.shards<counter>("idle", {.count = 4, .lease = 1000ms, .passivate_after = 30ms});
    const std::uint64_t first = here.of("k").ask_for(60s, total{}).serial;
    until([&] {
      this_fiber::sleep_for(100ms);
      return here.of("k").ask_for(60s, total{}).serial != first;
    });
    // Each is told something just when it may be stopped.
    const auto before = counter::handled().load();
    for (int round = 0; round < 100; ++round) {
      for (int key = 0; key < 10; ++key) here.of(std::to_string(key)).tell(add{1});
      this_fiber::sleep_for(std::chrono::milliseconds{round % 12 * 4});
    }
    until([&] { return counter::handled() - before >= 1000; });
    EXPECT_EQ(counter::handled() - before, 1000u);
  });
}

}  // namespace
}  // namespace ramie
