// Logs of events on a real server: what was appended is replayed, an owner that lost the key is fenced out.
#include "test_nodes.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace cluster_tests;

/// An event as it was, and as it is now.
struct paid {
  std::int64_t amount = 0;
};
struct paid_now {
  std::int64_t amount = 0;
  std::string currency = "EUR";
};
RAMIE_WIRE(paid, "test.paid", (1, amount))
RAMIE_WIRE(paid_now, "test.paid", (1, amount), (2, currency))

std::vector<std::int64_t> amounts(event_log<paid>& log) {
  std::vector<std::int64_t> all;
  log.replay([&](const paid& p) { all.push_back(p.amount); });
  return all;
}

TEST(logs, are_replayed_in_order_by_key) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    const auto logs = a.logs<paid>("replayed");
    auto x = logs.of("x"), y = logs.of("y");
    for (std::int64_t i = 0; i < 20; ++i) (i % 2 == 0 ? x : y).append({i});
    server().kill();
    blocking([] { server().start_again(); });
    x.append({100});
    for (int again = 0; again < 2; ++again) {  // the same each time
      auto fresh = logs.of("x");
      EXPECT_EQ(amounts(fresh), (std::vector<std::int64_t>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 100}));
      EXPECT_TRUE(amounts(fresh).empty());  // nothing since
    }
    EXPECT_THROW(static_cast<void>(logs.of("")), invalid_argument);
  });
}

TEST(logs, begin_at_a_snapshot) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    const auto logs = a.logs<paid>("saved");
    auto x = logs.of("x");
    EXPECT_FALSE(x.load<paid>().has_value());
    for (std::int64_t i = 1; i <= 10; ++i) x.append({i});
    x.save(paid{55});  // a sum
    x.append({11});
    auto fresh = logs.of("x");
    EXPECT_EQ(fresh.load<paid>().value().amount, 55);
    EXPECT_EQ(amounts(fresh), std::vector<std::int64_t>{11});
    // One that is older than what is there is left out.
    auto slow = logs.of("x");
    slow.save(paid{0});
    EXPECT_EQ(logs.of("x").load<paid>().value().amount, 55);
  });
}

TEST(logs, fence_out_all_but_one_writer) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    cluster b{options_for(server().url(), "b")};
    auto old_owner = a.logs<paid>("fenced").of("x");
    auto new_owner = b.logs<paid>("fenced").of("x");
    old_owner.append({1});
    EXPECT_EQ(amounts(new_owner), std::vector<std::int64_t>{1});
    new_owner.append({2});
    EXPECT_THROW(old_owner.append({3}), fenced_out);
    EXPECT_THROW(old_owner.append({4}), fenced_out);
    new_owner.append({5});
    auto check = a.logs<paid>("fenced").of("x");
    EXPECT_EQ(amounts(check), (std::vector<std::int64_t>{1, 2, 5}));
  });
}

TEST(logs, may_have_events_that_grew) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    a.logs<paid>("grown").of("x").append({7});
    auto now = a.logs<paid_now>("grown").of("x");
    std::vector<std::string> seen;
    const auto note = [&](const paid_now& p) { seen.push_back(std::to_string(p.amount) + " " + p.currency); };
    now.replay(note);
    now.append({8, "CHF"});
    auto again = a.logs<paid_now>("grown").of("x");
    again.replay(note);
    EXPECT_EQ(seen, (std::vector<std::string>{"7 EUR", "7 EUR", "8 CHF"}));
    auto older = a.logs<paid>("grown").of("x");  // what it does not know it skips
    EXPECT_EQ(amounts(older), (std::vector<std::int64_t>{7, 8}));
  });
}

TEST(logs, keep_a_room_of_cluster_chat_when_its_node_is_killed) {
  const std::string chat = program("example_cluster_chat");
  process one{{chat, server().url(), "serve", "one"}, "-"}, two{{chat, server().url(), "serve", "two"}, "-"};
  ASSERT_EQ(one.line(), "ready\n");
  ASSERT_EQ(two.line(), "ready\n");
  constexpr int count = 150;
  process speaker{{chat, server().url(), "say", "speaker", "lobby", std::to_string(count)}, "-"};
  int taken = 0, heard = 0;
  for (std::string said; !(said = speaker.line()).empty();) {
    if (said.starts_with("taken")) ++taken;
    else ++heard;
    // Either node may have the room: one is killed after the other.
    if (taken == 50) one.end(SIGKILL);
    if (taken == 100 && said.starts_with("taken")) {
      one = process{{chat, server().url(), "serve", "one"}, "-"};
      EXPECT_EQ(one.line(), "ready\n");
      two.end(SIGKILL);
    }
  }
  EXPECT_EQ(taken, count);
  EXPECT_GT(heard, 0);
  process reader{{chat, server().url(), "read", "reader", "lobby"}, "-"};
  for (int i = 0; i < count; ++i) ASSERT_EQ(reader.line(), "speaker says " + std::to_string(i) + "\n");
  EXPECT_EQ(reader.line(), "end\n");
}

}  // namespace
}  // namespace ramie
