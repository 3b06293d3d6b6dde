// What others do to an actor whose constructor or destructor is at work, and waits meanwhile: at the start, at the end,
// at a restart. Each is told what is so in the end, once, and nobody waits for ever.
#include <ramie/fiber/testing.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

struct work {};
struct crash {};
struct leave {};
struct how_many {};
struct seen {};

/// Where a constructor or a destructor waits, and until when.
struct gate {
  ramie::event reached;
  ramie::event open;
  std::atomic<int> handled{0};
  std::atomic<int> alive{0};
  std::atomic<int> incarnations{0};
  actor_ref<class subject>* self = nullptr;
};
enum class waits_in { constructor, destructor, second_constructor };

class subject : public actor<subject> {
 public:
  subject(std::shared_ptr<gate> g, waits_in where) : gate_{std::move(g)}, where_{where} {
    const int mine = ++gate_->incarnations;
    if (gate_->self != nullptr && mine == 1) *gate_->self = self();
    if ((where_ == waits_in::constructor && mine == 1) || (where_ == waits_in::second_constructor && mine == 2)) {
      gate_->reached.set();
      gate_->open.wait();
    }
    ++gate_->alive;
  }
  ~subject() {
    --gate_->alive;
    if (where_ != waits_in::destructor || gate_->incarnations.load() != 1) return;
    gate_->reached.set();
    gate_->open.wait();
  }
  void on(work) { ++gate_->handled; }
  int on(how_many) { return gate_->handled.load(); }
  void on(crash) { throw cancelled{}; }
  void on(leave) { stop(); }

 private:
  std::shared_ptr<gate> gate_;
  const waits_in where_;
};

struct tie_to {
  any_actor whom;
  bool link;
};
class listener : public actor<listener> {
 public:
  void on(const tie_to& t) {
    if (t.link) link(t.whom);
    else monitor(t.whom);
  }
  void on(const down& d) { note("down ", d.reason); }
  void on(const exit_signal& s) { note("exit ", s.reason); }
  std::vector<std::string> on(seen) { return seen_; }

 private:
  void note(const char* what, const exit_reason& why) { seen_.push_back(what + std::string{to_string(why.kind())}); }
  std::vector<std::string> seen_;
};
using texts = std::vector<std::string>;
texts after_first(const actor_ref<listener>& l) {
  await([&] { return !l.ask(seen{}).empty(); });
  return l.ask(seen{});
}
void end(const any_actor& a) {
  a.stop();
  a.join();
}

/// What is done to one while it is not there yet, or not there any more.
struct outsider {
  actor_ref<subject> to;
  actor_ref<listener> watching = spawn_actor<listener>();
  actor_ref<listener> linked = spawn_actor<listener>();
  future<int> asked{};
  tell_status told{};

  explicit outsider(actor_ref<subject> a) : to{std::move(a)} {
    watching.tell(tie_to{to, false});
    linked.tell(tie_to{to, true});
    watching.ask(seen{});
    linked.ask(seen{});
    told = to.tell(work{});
    asked = to.ask_async(how_many{});
  }
  ~outsider() {
    end(watching);
    end(linked);
  }
  /// The answer, -1 for actor_down.
  int answer() {
    try {
      return asked.get();
    } catch (const actor_down&) {
      return -1;
    }
  }
};

class actor_edges : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, actor_edges, few_and_many());

TEST_P(actor_edges, while_it_is_constructed) {
  in_runtime([] {
    for (const std::string how : {"nothing", "stop", "kill", "exit", "leave"}) {
      const auto g = std::make_shared<gate>();
      actor_ref<subject> early;
      g->self = &early;
      auto spawning = spawn([&] { return spawn_actor<subject>(g, waits_in::constructor); });
      g->reached.wait();
      outsider o{early};
      EXPECT_EQ(o.told, tell_status::ok) << how;
      if (how == "stop") early.stop();
      if (how == "kill") early.kill();
      if (how == "exit") early.exit(exit_reason::of("out"));
      if (how == "leave") early.tell(leave{});
      EXPECT_TRUE(early.alive()) << how;
      EXPECT_EQ(g->handled.load(), 0) << how;
      g->open.set();
      auto a = spawning.join();
      EXPECT_EQ(a, early);
      const bool handles = how != "kill" && how != "exit";
      EXPECT_EQ(o.answer(), handles ? 1 : -1) << how;
      if (how == "nothing") a.stop();
      a.join();
      const char* const kind = how == "kill" ? "killed" : how == "exit" ? "custom" : "stopped";
      EXPECT_STREQ(to_string(a.reason().kind()), kind) << how;
      EXPECT_EQ(after_first(o.watching), texts{std::string{"down "} + kind}) << how;
      EXPECT_EQ(after_first(o.linked), texts{std::string{"exit "} + kind}) << how;
      EXPECT_EQ(g->alive.load(), 0) << how;
    }
  });
}

TEST_P(actor_edges, while_it_is_destroyed) {
  in_runtime([] {
    for (const std::string how : {"stop", "kill", "crash", "exit"}) {
      const auto g = std::make_shared<gate>();
      auto a = spawn_actor<subject>(g, waits_in::destructor);
      register_name("the subject", a);
      outsider before{a};
      await([&] { return g->handled.load() == 1; });
      EXPECT_EQ(before.answer(), 1);
      if (how == "stop") a.stop();
      if (how == "kill") a.kill();
      if (how == "crash") a.tell(crash{});
      if (how == "exit") a.exit(exit_reason::of(1));
      g->reached.wait();
      outsider o{a};
      EXPECT_EQ(o.told, tell_status::down) << how;
      EXPECT_EQ(o.answer(), -1) << how;
      a.kill();
      a.stop();
      a.exit(exit_reason::of(2));
      EXPECT_FALSE(register_name("another", a)) << how;
      EXPECT_FALSE(a.join_for(0ns)) << how;
      EXPECT_TRUE(before.watching.ask(seen{}).empty()) << how;
      EXPECT_TRUE(o.watching.ask(seen{}).empty()) << how;
      auto other = spawn_actor<listener>();
      EXPECT_FALSE(register_name("the subject", other)) << how;  // it is not gone yet
      g->open.set();
      const char* const kind = how == "stop"    ? "stopped"
                               : how == "kill"  ? "killed"
                               : how == "crash" ? "failed"
                                                : "custom";
      EXPECT_STREQ(to_string(a.join().kind()), kind) << how;
      for (outsider* at : {&before, &o}) {
        EXPECT_EQ(after_first(at->watching), texts{std::string{"down "} + kind}) << how;
        EXPECT_EQ(after_first(at->linked), texts{std::string{"exit "} + kind}) << how;
      }
      EXPECT_TRUE(register_name("the subject", other)) << how;
      end(other);
    }
  });
}

/// The same between two incarnations: a link ends with the first, a monitor of the actor goes on.
TEST_P(actor_edges, while_it_is_destroyed_for_a_restart) {
  in_runtime([] {
    for (const std::string how : {"restart", "stop_child", "end"}) {
      const auto g = std::make_shared<gate>();
      outsider* left = nullptr;
      std::unique_ptr<outsider> o;
      {
        supervisor sup{{.max_restarts = 10, .within = 1h, .report = [](const child_report&) {}}};
        auto a = sup.spawn_actor<subject>(child_options{.id = "a"}, g, waits_in::destructor);
        a.tell(crash{});
        g->reached.wait();
        o = std::make_unique<outsider>(a);
        left = o.get();
        EXPECT_EQ(o->told, tell_status::ok);
        EXPECT_EQ(o->answer(), -1);
        EXPECT_TRUE(a.alive());
        auto doing = spawn([&] {
          if (how == "stop_child") {
            EXPECT_TRUE(sup.stop_child("a"));
          }
          if (how == "end") sup.kill();
        });
        this_fiber::yield();
        g->open.set();
        doing.join();
        EXPECT_EQ(after_first(o->linked), texts{"exit failed"}) << how;
        if (how == "restart") {
          await([&] { return g->handled.load() == 1; });
          EXPECT_EQ(sup.restarts(), 1u);
        } else if (how == "stop_child") {
          EXPECT_TRUE(sup.restart_child("a"));
          await([&] { return g->handled.load() == 1; });  // what was told meanwhile
        }
      }
      EXPECT_EQ(after_first(left->watching).size(), 1u) << how;
      EXPECT_EQ(g->alive.load(), 0) << how;
    }
  });
}

/// The supervisor constructs it anew, and waits with it: what is sent meanwhile waits, requests are refused, and the
/// supervisor's end ends the wait.
TEST_P(actor_edges, while_it_is_constructed_for_a_restart) {
  in_runtime([] {
    for (const std::string how : {"nothing", "kill", "stop", "kill the supervisor"}) {
      const auto g = std::make_shared<gate>();
      supervisor sup{{.max_restarts = 10, .within = 1h, .report = [](const child_report&) {}}};
      auto a = sup.spawn_actor<subject>(child_options{.id = "a"}, g, waits_in::second_constructor);
      a.tell(crash{});
      g->reached.wait();
      {
        outsider o{a};
        EXPECT_EQ(o.told, tell_status::ok) << how;
        EXPECT_EQ(o.answer(), -1) << how;
        EXPECT_TRUE(a.alive()) << how;
        if (how == "kill") a.kill();
        if (how == "stop") a.stop();
        if (how == "kill the supervisor") {
          sup.kill();
          EXPECT_EQ(sup.join().kind(), exit_kind::killed);
          EXPECT_FALSE(a.alive());
          EXPECT_EQ(after_first(o.watching).size(), 1u);
          EXPECT_EQ(g->handled.load(), 0);
        } else {
          g->open.set();
          await([&] { return g->handled.load() == 1; });
          // A kill before it was alive, and a stop behind the letter, each end an incarnation.
          await([&] { return g->incarnations.load() == (how == "nothing" ? 2 : 3); });
          EXPECT_EQ(sup.count_children().running, 1u) << how;
          EXPECT_TRUE(o.watching.ask(seen{}).empty()) << how;
        }
      }
    }
  });
}

}  // namespace
}  // namespace ramie
