// Actors that change their handlers, and those that put messages aside.
#include <ramie/actor/become.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

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

// ---- what a message's type is --------------------------------------------------------------------------------------

struct base {
  virtual ~base() = default;
  [[nodiscard]] virtual int number() const { return 1; }
};
struct derived : base {
  [[nodiscard]] int number() const override { return 2; }
};
struct say_all {};
struct change {};
struct turn_the_key {};

/// Takes messages that are seldom sent as what it takes.
class lenient : public actor<lenient> {
 public:
  void on(long n) { add("long " + std::to_string(n)); }
  void on(std::string s) {
    if (shut_) {
      stash(std::move(s));
      return;
    }
    add("string " + s);
  }
  void on(const base& b) { add("base " + std::to_string(b.number())); }
  void on(std::unique_ptr<base> b) { add("pointer " + std::to_string(b->number())); }
  void on(change) {
    become([this](long n) { add("other long " + std::to_string(n)); },
           [this](std::string s) { add("other string " + s); },
           [this](const base& b) { add("other base " + std::to_string(b.number())); });
  }
  void on(turn_the_key) {
    shut_ = !shut_;
    unstash_all();
  }
  std::vector<std::string> on(say_all) { return std::exchange(all_, {}); }

 private:
  void add(std::string s) { all_.push_back(std::move(s)); }
  std::vector<std::string> all_;
  bool shut_ = false;
};

static_assert(std::is_same_v<detail::message_for<lenient, int>, long>);
static_assert(std::is_same_v<detail::message_for<lenient, const char*>, std::string>);
static_assert(std::is_same_v<detail::message_for<lenient, const char (&)[3]>, std::string>);
static_assert(std::is_same_v<detail::message_for<lenient, derived&>, derived>);
static_assert(std::is_same_v<detail::message_for<lenient, std::unique_ptr<derived>>, std::unique_ptr<base>>);

class viewer : public actor<viewer> {
 public:
  void on(std::string_view s) { seen_ += s; }
  std::string on(say_all) { return seen_; }

 private:
  std::string seen_;
};
static_assert(std::is_same_v<detail::message_for<viewer, const char*>, std::string>);
static_assert(std::is_same_v<detail::message_for<viewer, std::string>, std::string>);

class several : public actor<several> {
 public:
  int on(int) { return 1; }
  int on(double) { return 2; }
  int on(const std::vector<int>&) { return 3; }
  int on(say_all&) { return 4; }
};
static_assert(std::is_same_v<detail::message_for<several, int>, int>);
static_assert(std::is_same_v<detail::message_for<several, double>, double>);
static_assert(std::is_same_v<detail::message_for<several, short>, short>);  // the handler's choice: int
static_assert(std::is_same_v<detail::message_for<several, say_all>, say_all>);

TEST_P(behaviours, take_what_is_converted) {
  in_runtime([] {
    auto l = spawn_actor<lenient>();
    std::string s(100, 's');
    const auto tell_all = [&] {
      l.tell(5);
      auto text = std::make_unique<std::string>(s);
      l.tell(text->c_str());
      text.reset();  // whatever it pointed to is gone
      l.tell(derived{});
      l.tell(std::make_unique<derived>());
    };
    tell_all();
    EXPECT_EQ(l.ask(say_all{}), (std::vector<std::string>{"long 5", "string " + s, "base 2", "pointer 2"}));
    l.tell(change{});
    tell_all();
    EXPECT_EQ(l.ask(say_all{}),
              (std::vector<std::string>{"other long 5", "other string " + s, "other base 2", "pointer 2"}));
    stop_and_join(l);
    auto v = spawn_actor<viewer>();
    v.tell(std::string(40, 'v'));
    v.tell(std::string(40, 'w').c_str());
    EXPECT_EQ(v.ask(say_all{}), std::string(40, 'v') + std::string(40, 'w'));
    stop_and_join(v);
    auto w = spawn_actor<several>();
    EXPECT_EQ(w.ask(short{1}), 1);
    EXPECT_EQ(w.ask(1.0F), 2);
    EXPECT_EQ(w.ask(std::vector<int>{1}), 3);
    EXPECT_EQ(w.ask(say_all{}), 4);
    stop_and_join(w);
  });
}

TEST_P(behaviours, stash_what_is_converted) {
  in_runtime([] {
    auto l = spawn_actor<lenient>();
    l.tell(turn_the_key{});
    l.tell("y");
    EXPECT_TRUE(l.ask(say_all{}).empty());
    l.tell(turn_the_key{});
    EXPECT_EQ(l.ask(say_all{}), (std::vector<std::string>{"string y"}));
    stop_and_join(l);
  });
}

TEST_P(behaviours, lose_what_was_stashed_by_a_handler_that_failed) {
  class poisoned : public actor<poisoned> {
   public:
    explicit poisoned(int& times) : times_{times} { unstash_all(); }
    void on(int) {
      ++times_;
      stash();
      if (times_ % 2 == 0) unstash_all();  // or put back already
      throw std::runtime_error{"poison"};
    }
    int on(count) {
      unstash_all();
      return times_;
    }

   private:
    int& times_;
  };
  in_runtime([] {
    int times = 0;
    supervisor sup{{.max_restarts = 10, .within = 1h}};
    auto p = sup.spawn_actor<poisoned>(child_options{.actor = {.asks_wait_for_restart = true}}, std::ref(times));
    p.tell(1);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(p.ask(count{}), 1);
    p.tell(1);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(p.ask(count{}), 2);
  });
}

TEST_P(behaviours, stash_no_more_than_they_may) {
  class collector : public actor<collector> {
   public:
    void on(int n) {
      try {
        stash();
        last_ = n;
      } catch (const stash_full&) {
        ++refused_;
      }
    }
    int on(count) { return last_ * 100 + refused_; }
    void on(turn_the_key) { refused_ = 0; }

   private:
    int last_ = 0;
    int refused_ = 0;
  };
  in_runtime([] {
    for (const actor_options& options : {actor_options{.mailbox_capacity = 4}, actor_options{.stash_capacity = 4}}) {
      auto c = spawn_actor<collector>(options);
      for (int i = 1; i <= 7; ++i) c.tell(i);
      EXPECT_EQ(c.ask(count{}), 403);
      stop_and_join(c);
    }
  });
}

}  // namespace
}  // namespace ramie
