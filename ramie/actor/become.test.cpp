// Actors that change their handlers, and those that put messages aside.
#include <ramie/actor/become.hpp>

#include <ramie/actor/supervisor.hpp>
#include <ramie/actor/testing.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct greet {};
struct get_angry {};
struct calm_down {};
struct count {};

class moody : public actor<moody> {
 public:
  std::string on(greet) { return "hello"; }
  int on(count) { return count_; }
  void on(get_angry) {
    become([this](greet) -> std::string { return "go away " + std::to_string(++count_); },
           [this](get_angry) {
             count_ += 100;
             become([](greet) { return std::string{"..."}; });  // replaces the handler that runs just now
             count_ += 100;
           });
  }
  void on(calm_down) { unbecome(); }

 private:
  int count_ = 0;
};

class behaviours : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, behaviours, few_and_many());

TEST_P(behaviours, change_and_change_back) {
  in_runtime([] {
    auto m = spawn_actor<moody>();
    EXPECT_EQ(m.ask(greet{}), "hello");
    m.tell(get_angry{});
    EXPECT_EQ(m.ask(greet{}), "go away 1");
    EXPECT_EQ(m.ask(greet{}), "go away 2");
    EXPECT_EQ(m.ask(count{}), 2);  // not among the new ones
    m.tell(get_angry{});
    EXPECT_EQ(m.ask(greet{}), "...");
    EXPECT_EQ(m.ask(count{}), 202);
    m.tell(calm_down{});
    EXPECT_EQ(m.ask(greet{}), "hello");
    stop_and_join(m);
  });
}

struct open_up {};
struct item {
  std::unique_ptr<int> value;
};
struct word {
  std::string text;
};
struct question {
  std::string text;
};

/// Puts everything aside until it is opened.
class door : public actor<door> {
 public:
  void on(open_up) {
    open_ = true;
    unstash_all();
  }
  void on(item i) {
    if (!open_) {
      stash(std::move(i));
      return;
    }
    seen_.push_back(std::to_string(*i.value));
  }
  void on(const word& w) {
    if (!open_) {
      stash();
      return;
    }
    seen_.push_back(w.text);
  }
  std::string on(const question& q) {
    if (!open_) {
      stash();
      return "never seen";
    }
    return q.text + "!";
  }
  std::vector<std::string> on(count) { return seen_; }
  void on(get_angry) { throw std::runtime_error{"angry"}; }
  void on(calm_down) {
    // Aside and back at once: comes again, and then it is open.
    if (open_) return;
    stash();
    unstash_all();
    open_ = true;
  }

 private:
  bool open_ = false;
  std::vector<std::string> seen_;
};

TEST_P(behaviours, stashed_messages_come_back_first_and_in_order) {
  in_runtime([] {
    auto d = spawn_actor<door>();
    auto asker = spawn([d] { return d.ask(question{"a question, and long enough to need memory"}); });
    d.tell(item{std::make_unique<int>(1)});
    d.tell(word{"two"});
    d.tell(item{std::make_unique<int>(3)});
    d.tell(word{"four, which is long enough to need memory"});
    EXPECT_TRUE(d.ask(count{}).empty());
    while (d.mail_count() != 0) this_fiber::yield();  // the asker's question may just have come
    d.tell(open_up{});
    d.tell(word{"five"});
    EXPECT_EQ(d.ask(count{}),
              (std::vector<std::string>{"1", "two", "3", "four, which is long enough to need memory", "five"}));
    EXPECT_EQ(asker.join(), "a question, and long enough to need memory!");
    stop_and_join(d);
  });
}

TEST_P(behaviours, what_is_stashed_at_the_end_is_given_back) {
  in_runtime([] {
    auto d = spawn_actor<door>();
    auto asker = spawn([d] { EXPECT_THROW(d.ask(question{"?"}), actor_down); });
    d.tell(item{std::make_unique<int>(1)});
    d.tell(word{"two, which is long enough to need memory"});
    EXPECT_TRUE(d.ask(count{}).empty());
    d.stop();
    d.join();
    asker.join();

    auto e = spawn_actor<door>();
    e.tell(calm_down{});
    EXPECT_TRUE(e.ask(count{}).empty());
    stop_and_join(e);
  });
}

TEST_P(behaviours, what_is_stashed_outlasts_a_restart) {
  in_runtime([] {
    supervisor sup{{.max_restarts = 100, .within = 1h}};
    auto d = sup.spawn_actor<door>();
    d.tell(item{std::make_unique<int>(1)});
    d.tell(get_angry{});
    d.tell(open_up{});
    await([&] { return ask_patiently(d, count{}).size() == 1; });
  });
}

TEST_P(behaviours, only_what_is_handled_can_be_stashed) {
  class confused : public actor<confused> {
   public:
    bool on(word w) {
      EXPECT_THROW(stash(question{w.text}), usage_error);
      return true;
    }
  };
  in_runtime([] {
    auto c = spawn_actor<confused>();
    EXPECT_TRUE(c.ask(word{"x"}));
    c.stop();
    c.join();
  });
}

}  // namespace
}  // namespace ramie
