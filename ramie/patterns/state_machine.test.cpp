// State machines: changes, what is postponed, timeouts of a state, enter.
#include <ramie/patterns/state_machine.hpp>

#include <ramie/actor/testing.hpp>

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;
using namespace std::chrono_literals;

class state_machines : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, state_machines, few_and_many());

struct push {};
struct coin {};
struct read_log {};
struct passes {};
struct relock {};
struct unlock_for {
  std::chrono::nanoseconds time;
};
struct again {};
enum class gate { locked, open };

/// The turnstile of the textbooks.
class turnstile : public state_machine<turnstile, gate> {
 public:
  turnstile() : state_machine{gate::locked} {}

  int on(push) {
    if (state() == gate::locked) {
      postpone();
      return 0;
    }
    next_state(gate::locked);
    return ++passed_;
  }
  void on(coin) { next_state(gate::open); }
  void on(unlock_for u) {
    next_state(gate::open);
    state_timeout(u.time, relock{});
  }
  void on(relock) {
    EXPECT_EQ(state(), gate::open);
    log_.emplace_back("timeout");
    next_state(gate::locked);
  }
  void on(again) { repeat_state(); }
  void enter(gate from) {
    log_.emplace_back(from == state() ? "repeated" : state() == gate::open ? "opened" : "closed");
  }
  std::vector<std::string> on(read_log) { return log_; }
  int on(passes) { return passed_; }

 private:
  std::vector<std::string> log_;
  int passed_ = 0;
};

using texts = std::vector<std::string>;

TEST_P(state_machines, postpone_until_the_state_changes) {
  in_runtime([] {
    auto t = spawn_actor<turnstile>();
    auto first = t.ask_async(push{});
    auto second = t.ask_async(push{});
    EXPECT_EQ(t.ask(passes{}), 0);
    t.tell(coin{});
    EXPECT_EQ(first.get(), 1);
    EXPECT_EQ(t.ask(passes{}), 1);  // the second found it locked again
    t.tell(coin{});
    EXPECT_EQ(second.get(), 2);
    EXPECT_EQ(t.ask(read_log{}), (texts{"opened", "closed", "opened", "closed"}));
    stop_and_join(t);
  });
}

TEST_P(state_machines, do_not_take_the_same_state_for_a_change) {
  in_runtime([] {
    auto t = spawn_actor<turnstile>();
    t.tell(coin{});
    t.tell(coin{});
    EXPECT_EQ(t.ask(read_log{}), texts{"opened"});
    t.tell(again{});
    EXPECT_EQ(t.ask(read_log{}), (texts{"opened", "repeated"}));
    stop_and_join(t);
  });
}

TEST_P(state_machines, have_timeouts_of_a_state) {
  in_runtime([] {
    auto t = spawn_actor<turnstile>();
    t.tell(unlock_for{1ms});
    await([&] { return t.ask(read_log{}).size() == 3; });
    EXPECT_EQ(t.ask(read_log{}), (texts{"opened", "timeout", "closed"}));
    stop_and_join(t);
  });
}

TEST_P(state_machines, end_a_timeout_with_its_state) {
  in_runtime([] {
    for (int i = 0; i < scaled(200); ++i) {
      auto t = spawn_actor<turnstile>();
      t.tell(unlock_for{std::chrono::microseconds{i % 20}});
      static_cast<void>(t.ask_async(push{}));  // locks it again, or is postponed if the timeout came first
      t.tell(unlock_for{1h});
      t.tell(coin{});  // the same state: the timeout goes on
      const texts log = t.ask(read_log{});
      // A timeout of the first state is never heard in the second: `relock` would have found the gate locked, or have
      // closed the one that is open for an hour.
      EXPECT_EQ(log.back(), "opened") << i;
      stop_and_join(t);
    }
  });
}

struct dial {
  std::string to;
};
struct answered {};
struct hang_up {};
struct about {};

struct idle_line {};
struct ringing {
  std::string to;
};
struct talking {
  std::string with;
};
using line = std::variant<idle_line, ringing, talking>;

/// States that have data.
class telephone : public state_machine<telephone, line> {
 public:
  telephone() : state_machine{line{idle_line{}}} {}
  void on(const dial& d) {
    if (std::holds_alternative<idle_line>(state())) next_state(ringing{d.to});
    else postpone();
  }
  void on(answered) {
    if (auto* r = std::get_if<ringing>(&state())) next_state(talking{std::move(r->to)});
  }
  void on(hang_up) { next_state(idle_line{}); }
  std::string on(about) {
    struct texts_of {
      std::string operator()(const idle_line&) const { return "idle"; }
      std::string operator()(const ringing& r) const { return "ringing " + r.to; }
      std::string operator()(const talking& t) const { return "talking with " + t.with; }
    };
    return std::visit(texts_of{}, state());
  }
};

TEST_P(state_machines, have_states_with_data) {
  in_runtime([] {
    auto t = spawn_actor<telephone>();
    EXPECT_EQ(t.ask(about{}), "idle");
    t.tell(dial{"Ann"});
    t.tell(dial{"Bob"});
    EXPECT_EQ(t.ask(about{}), "ringing Ann");
    t.tell(answered{});
    EXPECT_EQ(t.ask(about{}), "talking with Ann");  // Bob has come again, and is postponed again
    t.tell(hang_up{});
    EXPECT_EQ(t.ask(about{}), "ringing Bob");
    stop_and_join(t);
  });
}

}  // namespace
}  // namespace ramie
