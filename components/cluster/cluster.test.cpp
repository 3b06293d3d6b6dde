// Nodes on a real nats-server: what a reference to an actor of another node does.
// Mostly waits.
#include "node.hpp"
#include "test_nodes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ramie {
namespace {

using namespace cluster_tests;

TEST(remote_actors, get_what_they_are_told_in_order_and_answer) {
  run([] {
    two_nodes n;
    EXPECT_NE(n.there, n.local);
    constexpr std::uint64_t count = 20'000;
    for (std::uint64_t i = 0; i < count; ++i) n.there.tell(number{i});
    EXPECT_EQ(n.there.ask(order_kept{}), std::int64_t{count});
    EXPECT_EQ(n.there.ask(text{"hello"}), "hello!");
    EXPECT_EQ(n.there.ask_async(text{"later"}).get(), "later!");
    EXPECT_EQ(n.there.ask(wait_for{1}), 1u);
    EXPECT_EQ(n.there.ask(wait_for{0}), 0u);
    for (int i = 0; i < 100; ++i) {
      n.there.tell_urgent(text{"first"}, 3);
      n.there.tell_urgent(text{"second"}, 1 + i % 3);
    }
    EXPECT_EQ(n.there.ask(order_kept{}), std::int64_t{count});
    EXPECT_TRUE(n.there.alive());
    const auto links = n.a.links();
    ASSERT_EQ(links.size(), 1u);
    EXPECT_EQ(links[0].peer.name, "b");
    EXPECT_TRUE(links[0].open);
    EXPECT_GT(links[0].sent_bytes, count);
    EXPECT_LT(links[0].sent_frames, count / 10);  // tells go together
  });
}

TEST(remote_actors, fail_as_local_ones_do) {
  run([] {
    two_nodes n;
    EXPECT_THROW(static_cast<void>(n.there.ask_for(20ms, wait_for{2000})), timeout_error);
    const exit_reason refused = reason_thrown([&] { n.there.ask(not_for_others{}); });
    EXPECT_EQ(refused.kind(), exit_kind::failed);
    EXPECT_NE(refused.what().find("not_for_others is not among"), std::string::npos) << refused.what();
    EXPECT_EQ(n.there.ask(text{std::string(100'000, 'x')}).size(), 100'001u);
    const exit_reason too_long =
        reason_thrown([&] { static_cast<void>(n.there.ask(text{std::string(2'000'000, 'x')})); });
    EXPECT_NE(too_long.what().find("test.text of 2000"), std::string::npos) << too_long.what();
    const exit_reason why = reason_thrown([&] { n.there.ask(fail{"on purpose"}); });
    EXPECT_EQ(why.kind(), exit_kind::failed);
    EXPECT_NE(why.what().find("on purpose"), std::string::npos) << why.what();
    EXPECT_EQ(n.there.join().kind(), exit_kind::failed);
    EXPECT_EQ(reason_thrown([&] { n.there.ask(order_kept{}); }).kind(), exit_kind::failed);
    EXPECT_EQ(n.there.tell(number{0}), tell_status::down);
  });
}

TEST(remote_actors, are_stopped_killed_and_joined) {
  run([] {
    two_nodes n;
    const auto one = n.there.ask(spawn_bounded{0});
    const auto two = n.there.ask(spawn_bounded{0});
    const auto three = n.there.ask(spawn_bounded{0});
    for (std::uint64_t i = 0; i < 100; ++i) one.tell(number{i});
    one.stop();
    EXPECT_EQ(one.join().kind(), exit_kind::stopped);
    two.tell(wait_for{60'000});  // it is cancelled
    two.kill();
    EXPECT_EQ(two.join().kind(), exit_kind::killed);
    three.stop(exit_reason{exit_kind::shutdown});
    EXPECT_EQ(three.join().kind(), exit_kind::shutdown);
    EXPECT_FALSE(three.alive());
  });
}

class watcher : public actor<watcher> {
 public:
  explicit watcher(std::shared_ptr<channel<down>> to) : to_{std::move(to)} {}
  void on(const down& d) { static_cast<void>(to_->send(d)); }
  void on(const any_actor& who) { monitor(who); }
  std::int64_t on(order_kept) { return 0; }

 private:
  std::shared_ptr<channel<down>> to_;
};

class linked : public actor<linked> {
 public:
  void on(const any_actor& to) { link(to); }
  void on(const fail& f) { throw std::runtime_error{f.why}; }
};

TEST(remote_actors, are_monitored_and_linked) {
  run([] {
    two_nodes n;
    const auto downs = std::make_shared<channel<down>>(10);
    const auto w = spawn_actor<watcher>(downs);
    const auto first = n.there.ask(spawn_bounded{0});
    w.tell(any_actor{first});
    first.tell(end_me{});
    const auto told = downs->recv();
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->who, first);
    EXPECT_EQ(told->reason.kind(), exit_kind::stopped);

    // The end of the one there ends the one here.
    const auto second = n.there.ask(spawn_bounded{0});
    const auto here = spawn_actor<linked>();
    here.tell(any_actor{second});
    second.tell(fail{"bad luck"});
    const exit_reason why = here.join();
    EXPECT_EQ(why.kind(), exit_kind::linked);
    EXPECT_NE(why.what().find("bad luck"), std::string::npos);

    // And the reverse.
    const auto third = n.there.ask(spawn_bounded{0});
    const auto also_here = spawn_actor<linked>();
    also_here.tell(any_actor{third});
    also_here.tell(fail{"worse luck"});
    EXPECT_EQ(third.join().kind(), exit_kind::linked);
    w.stop();
    w.join();
  });
}

TEST(remote_actors, send_references_to_each_other) {
  run([] {
    two_nodes n;
    const auto here = spawn_actor<keeper>();  // at a
    n.there.tell(call_back{here, 500});
    while (here.ask(order_kept{}) < 500) this_fiber::sleep_for(1ms);
    EXPECT_EQ(here.ask(order_kept{}), 500);
    // One that comes home is the actor itself: nothing goes to another node and back.
    EXPECT_EQ(n.there.ask(introduce{}), n.there);
    EXPECT_EQ(n.b.whereis<keeper>("keeper").value(), n.local);
    here.stop();
    here.join();
  });
}

TEST(remote_actors, with_bounded_mailboxes_hold_their_senders_and_nobody_else) {
  run([] {
    two_nodes n;
    const auto small = n.there.ask(spawn_bounded{8});
    small.tell(wait_for{300});
    auto sender = spawn([&] {
      for (std::uint64_t i = 0; i < 200; ++i) small.tell(number{i});
    });
    // The sender gets into the mailbox there, the messages under way, and the one here; no further.
    EXPECT_EQ(n.there.ask(text{"others"}), "others!");
    EXPECT_LE(small.mail_count(), 8u);
    EXPECT_FALSE(sender.has_ended());
    sender.join();
    EXPECT_EQ(small.ask(order_kept{}), 200);
  });
}

TEST(remote_actors, of_a_killed_node_are_lost) {
  run([] {
    far_node n{"victim"};
    EXPECT_EQ(n.there.ask(text{"x"}), "x!");
    const auto downs = std::make_shared<channel<down>>(10);
    const auto w = spawn_actor<watcher>(downs);
    w.tell(any_actor{n.there});
    auto asker = spawn([&] { return reason_thrown([&] { n.there.ask(wait_for{60'000}); }).kind(); });
    EXPECT_EQ(w.ask(order_kept{}), 0);  // it watches
    this_fiber::sleep_for(50ms);        // the asker waits, mostly; otherwise it is told `node_lost` at once
    n.node.end(SIGKILL);
    const auto told = downs->recv();
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->reason.kind(), exit_kind::node_lost);
    EXPECT_EQ(asker.join(), exit_kind::node_lost);
    EXPECT_EQ(n.there.join().kind(), exit_kind::node_lost);
    EXPECT_EQ(n.there.tell(number{0}), tell_status::down);
    EXPECT_TRUE(n.here.links().empty());
    w.stop();
    w.join();
  });
}

TEST(remote_actors, of_a_frozen_node_are_lost) {
  run([] {
    far_node n{"frozen"};
    EXPECT_EQ(n.there.ask(text{"x"}), "x!");
    n.node.signal(SIGSTOP);
    EXPECT_EQ(n.there.join().kind(), exit_kind::node_lost);
    // When it goes on, it is told that the link is over, and can be used again by a new one.
    n.node.signal(SIGCONT);
    for (;;) {
      const auto again = n.here.whereis<keeper>("keeper-frozen").value();
      if (reason_thrown([&] { static_cast<void>(again.ask(text{"y"})); }).kind() == exit_kind::alive) break;
    }
  });
}

TEST(remote_actors, lose_nothing_when_the_server_is_killed_and_comes_back) {
  run([] {
    far_node n{"steady", 60s};  // a busy machine takes seconds to start a server
    constexpr std::uint64_t count = 60'000;
    std::atomic<std::uint64_t> sent{0};
    auto sender = spawn([&] {
      for (std::uint64_t i = 0; i < count; ++i) {
        n.there.tell(number{i});
        sent = i;
        if (i % 50 == 0) this_fiber::sleep_for(1ms);
      }
    });
    for (int kills = 0; kills < 3; ++kills) {
      const std::uint64_t until = sent + count / 5;
      while (sent < until && !sender.has_ended()) this_fiber::sleep_for(1ms);
      server().kill();
      this_fiber::sleep_for(200ms);
      blocking([] { server().start_again(); });
    }
    sender.join();
    EXPECT_EQ(n.there.ask(order_kept{}), std::int64_t{count});
  });
}

/// Sends small messages in front of the largest that there may be, in one turn, and its answer back.
void send_the_largest(const actor_ref<keeper>& there, std::size_t most) {
  for (std::uint64_t i = 0; i < 400; ++i) there.tell(number{i});
  EXPECT_EQ(there.ask(text{std::string(most, 'x')}).size(), most + 1);
  EXPECT_EQ(there.ask(order_kept{}), 400);
  EXPECT_NE(reason_thrown([&] { there.ask(text{std::string(most + 200, 'x')}); }).what().find("at most"),
            std::string::npos);
  EXPECT_EQ(there.ask(text{"on"}), "on!");
}

TEST(remote_actors, take_what_the_server_takes) {
  run([] {
    two_nodes n;
    send_the_largest(n.there, wire_limits::message_bytes - 100);
  });
  // One that takes less.
  nats_server small{[](const std::string& folder) {
    std::ofstream{folder + "/small.conf"} << "max_payload: 100000\n";
    std::vector<std::string> all = nats_server::stored_in(folder);
    all.insert(all.end(), {"-c", folder + "/small.conf"});
    return all;
  }};
  run([&] {
    cluster a{options_for(small.url(), "a")}, b{options_for(small.url(), "b")};
    a.knows<keeper>();
    b.knows<keeper>();
    const auto local = spawn_actor<keeper>();
    EXPECT_TRUE(b.register_name("keeper", local));
    send_the_largest(a.whereis<keeper>("keeper").value(), 100'000 - 16 * 1024 - 100);
    auto jobs = a.queue<text>("small");
    const std::string refused = [&] {
      try {
        jobs.put(text{std::string(200'000, 'x')});
      } catch (const cluster_error& e) {
        return std::string{e.what()};
      }
      return std::string{};
    }();
    EXPECT_NE(refused.find("max_payload"), std::string::npos) << refused;
    local.stop();
    local.join();
  });
}

TEST(remote_actors, are_on_nodes_whose_names_are_words) {
  run([] {
    two_nodes n;
    // A reference from another node, or a name that another program has stored: a subject and a command of its own.
    const auto keys = detail::make_nats_carrier(options_for(server().url(), "forger"));
    for (const char* name : {"b 0\r\n\r\nPUB x 0", "b.7", "b\n", "*", "", "a name of more than thirty-two letters"}) {
      const std::string key = "forged" + std::to_string(std::string_view{name}.size());
      const wire_refs::record forged{name, 7, 1, std::string{type_of<keeper>().name()}, 0};
      static_cast<void>(keys->create("names", key, to_wire(forged)));
      EXPECT_THROW(static_cast<void>(n.a.whereis<keeper>(key)), wire_error) << name;
      EXPECT_THROW(static_cast<void>(n.b.register_name(key, n.local)), wire_error) << name;
    }
    EXPECT_EQ(n.there.ask(text{"on"}), "on!");
  });
}

TEST(nodes, have_names_and_incarnations) {
  run([] {
    two_nodes n;
    EXPECT_EQ(n.a.self().name, "a");
    const auto all = n.a.nodes();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0], n.a.self());
    EXPECT_EQ(all[1], n.b.self());
    EXPECT_THROW(cluster(options_for(server().url(), "a")), cluster_error);
    EXPECT_THROW(cluster(options_for(server().url(), "a b")), invalid_argument);
    EXPECT_FALSE(n.a.whereis<keeper>("nobody").has_value());
    EXPECT_THROW(static_cast<void>(n.a.whereis<watcher>("keeper")), cluster_error);
    // A name is taken as long as the actor lives.
    const auto other = spawn_actor<keeper>();
    EXPECT_FALSE(n.a.register_name("keeper", other));
    EXPECT_THROW(n.a.register_name("others-keeper", n.there), usage_error);
    n.local.stop();
    n.local.join();
    while (!n.a.register_name("keeper", other)) this_fiber::sleep_for(1ms);
    EXPECT_EQ(n.b.whereis<keeper>("keeper").value().ask(text{"new"}), "new!");
    other.stop();
    other.join();
  });
}

TEST(nodes, that_were_killed_lose_their_names) {
  run([] {
    far_node n{"mortal"};
    const auto before = n.here.nodes();
    ASSERT_EQ(before.size(), 2u);
    n.node.end(SIGKILL);
    EXPECT_EQ(n.there.join().kind(), exit_kind::node_lost);
    EXPECT_EQ(n.here.nodes().size(), 1u);
    const auto mine = spawn_actor<keeper>();
    EXPECT_TRUE(n.here.register_name("keeper-mortal", mine));
    // The same name is a new node.
    cluster again{options_for(server().url(), "mortal")};
    EXPECT_GT(again.self().incarnation, before[1].incarnation);
    mine.stop();
    mine.join();
  });
}

TEST(nodes, are_started_by_the_example) {
  process alone{{program("example_cluster_bank"), server().url()}, "-"};
  EXPECT_EQ(alone.line(), "balance: 5\n");
  process bank{{program("example_cluster_bank"), server().url(), "serve"}, "-"};
  for (std::string said = "there is no vault\n"; said != "balance: 7\n";) {
    process customer{{program("example_cluster_bank"), server().url(), "deposit", "7"}, "-"};
    said = customer.line();
    ASSERT_TRUE(said == "there is no vault\n" || said == "balance: 7\n") << said;
  }
}

TEST(nodes, need_a_server) {
  run([] { EXPECT_THROW(cluster(options_for("nats://127.0.0.1:1", "alone")), cluster_error); });
}

}  // namespace
}  // namespace ramie
