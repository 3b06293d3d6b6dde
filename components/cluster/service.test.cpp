// Nodes that come and go, actors started on others, and groups.
// Mostly waits.
#include "test_nodes.hpp"

#include <ramie/patterns/router.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace cluster_tests;

class listener : public actor<listener> {
 public:
  explicit listener(std::shared_ptr<channel<std::string>> to) : to_{std::move(to)} {}
  void on(const node_up& n) { static_cast<void>(to_->send("up " + n.node.name)); }
  void on(const node_lost& n) { static_cast<void>(to_->send("lost " + n.node.name)); }
  void on(const member_joined& /*m*/) { static_cast<void>(to_->send("joined")); }
  void on(const member_left& /*m*/) { static_cast<void>(to_->send("left")); }

 private:
  std::shared_ptr<channel<std::string>> to_;
};

struct listening {
  std::shared_ptr<channel<std::string>> heard = std::make_shared<channel<std::string>>(100);
  actor_ref<listener> who = spawn_actor<listener>(heard);
  ~listening() {
    who.stop();
    who.join();
  }
  std::string next() const { return heard->recv().value_or("closed"); }
};

TEST(nodes, that_come_and_go_are_reported) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    const listening l;
    a.on_node(l.who);
    {
      cluster b{options_for(server().url(), "b")};
      EXPECT_EQ(l.next(), "up b");
      const listening late;  // it is told of those that are there
      a.on_node(late.who);
      EXPECT_EQ(late.next(), "up b");
    }
    EXPECT_EQ(l.next(), "lost b");
    process c{{program("test_cluster_node"), server().url(), "c"}, "-"};
    EXPECT_EQ(l.next(), "up c");
    c.end(SIGKILL);
    EXPECT_EQ(l.next(), "lost c");
  });
}

TEST(nodes, that_were_frozen_are_lost_and_up_again) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    const listening l;
    a.on_node(l.who);
    const process c{{program("test_cluster_node"), server().url(), "c"}, "-"};
    EXPECT_EQ(l.next(), "up c");
    c.signal(SIGSTOP);
    EXPECT_EQ(l.next(), "lost c");
    c.signal(SIGCONT);
    EXPECT_EQ(l.next(), "up c");
  });
}

TEST(nodes, start_actors_for_others) {
  run([] {
    far_node n{"host"};
    n.here.knows<greeter>();
    const std::vector<node_info> all = n.here.nodes();
    const auto host = std::find_if(all.begin(), all.end(), [](const node_info& i) { return i.name == "host"; });
    ASSERT_NE(host, all.end());
    const auto there = n.here.spawn_on<greeter>(*host, "hello ", std::int64_t{2});
    EXPECT_EQ(there.ask(text{"you "}), "hello you hello you ");
    const auto failure = [](auto f) -> std::string {
      try {
        f();
      } catch (const remote_failure& e) {
        return e.what();
      }
      return "";
    };
    EXPECT_NE(failure([&] { n.here.spawn_on<greeter>(*host, "x", std::int64_t{-1}); }).find("times is negative"),
              std::string::npos);
    EXPECT_NE(failure([&] { n.here.spawn_on<greeter>(*host, "x"); }).find("starts a"), std::string::npos);
    EXPECT_NE(failure([&] { n.here.spawn_on<keeper>(*host); }).find("does not start a"), std::string::npos);
    EXPECT_TRUE(there.alive());
    there.stop();
    EXPECT_EQ(there.join().kind(), exit_kind::stopped);
    // On this node it is an actor like any.
    n.here.hosts<greeter, std::string, std::int64_t>();
    const auto mine = n.here.spawn_on<greeter>(n.here.self(), "hi ", std::int64_t{1});
    EXPECT_EQ(mine.ask(text{"me"}), "hi me");
    mine.stop();
    mine.join();
    n.node.end(SIGKILL);
    EXPECT_EQ(reason_thrown([&] { n.here.spawn_on<greeter>(*host, "x", std::int64_t{1}); }).kind(),
              exit_kind::node_lost);
  });
}

TEST(groups, have_members_on_all_nodes) {
  run([] {
    two_nodes n;
    process third{{program("test_cluster_node"), server().url(), "third"}, "-"};
    ASSERT_EQ(blocking([&] { return third.line(); }), "ready\n");
    const auto far = n.a.whereis<keeper>("keeper-third").value();
    auto at_a = n.a.group<number>("numbers");
    auto at_b = n.b.group<number>("numbers");
    const listening l;
    EXPECT_TRUE(at_a.monitor(l.who).members.empty());
    EXPECT_TRUE(at_b.join(n.local));
    EXPECT_FALSE(at_b.join(n.local));
    EXPECT_EQ(l.next(), "joined");
    EXPECT_TRUE(at_a.contains(n.there));
    far.tell(join_group{"numbers"});
    EXPECT_EQ(l.next(), "joined");
    EXPECT_EQ(at_a.size(), 2u);
    for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(at_a.publish(number{i}).taken, 2u);
    EXPECT_EQ(n.there.ask(order_kept{}), 1000);
    EXPECT_EQ(far.ask(order_kept{}), 1000);
    // One that opens it later finds who is there.
    cluster late{options_for(server().url(), "late")};
    late.knows<keeper>();
    auto at_late = late.group<number>("numbers");
    while (at_late.size() != 2) this_fiber::sleep_for(1ms);
    EXPECT_TRUE(at_b.leave(n.local));
    EXPECT_FALSE(at_b.leave(n.local));
    EXPECT_EQ(l.next(), "left");
    while (at_late.size() != 1) this_fiber::sleep_for(1ms);
    // Members of a lost node leave.
    third.end(SIGKILL);
    EXPECT_EQ(l.next(), "left");
    EXPECT_EQ(at_a.size(), 0u);
    while (at_late.size() != 0) this_fiber::sleep_for(1ms);
    EXPECT_THROW(static_cast<void>(n.a.group<number>("two words")), invalid_argument);
    cluster knows_nobody{options_for(server().url(), "blank")};
    EXPECT_THROW(knows_nobody.group<number>("numbers").join(n.local), usage_error);
  });
}

TEST(routers, reach_actors_of_other_nodes) {
  run([] {
    two_nodes n;
    router<keeper> all{routing::round_robin};
    std::vector<actor_ref<keeper>> members;
    for (int i = 0; i < 3; ++i) members.push_back(n.there.ask(spawn_bounded{0}));
    for (const auto& m : members) all.add(m);
    for (std::uint64_t i = 0; i < 30; ++i) all.tell(number{i / 3});
    for (const auto& m : members) {
      EXPECT_EQ(m.ask(order_kept{}), 10);
      m.stop();
      m.join();
    }
    EXPECT_EQ(all.tell(number{0}), tell_status::down);
  });
}

}  // namespace
}  // namespace ramie
