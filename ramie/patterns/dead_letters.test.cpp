// Messages that nobody handles.
#include <ramie/patterns/dead_letters.hpp>

#include <ramie/actor/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct news {
  std::string text;
};

class reader : public actor<reader> {
 public:
  void on(const news&) {}
};

class letters : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, letters, few_and_many());

TEST_P(letters, are_counted_and_shown) {
  static std::atomic<int> shown{0};
  static std::atomic<bool> right{true};
  shown = 0;
  in_runtime([] {
    auto a = spawn_actor<reader>();
    const dead_letter_counts before = dead_letters();
    on_dead_letter([a](const dead_letter& l) {
      ++shown;
      if (!(l.to == a) || !(*l.type == type_of<news>()) || l.cause != dead_letter_cause::down) right = false;
    });
    a.tell(news{});
    a.stop();
    a.tell(news{"late"});
    a.join();
    a.tell(news{"too late"});
    on_dead_letter({});
    a.tell(news{"nobody looks"});
    EXPECT_EQ(shown.load(), 2);
    EXPECT_TRUE(right.load());
    EXPECT_EQ(dead_letters().down - before.down, 3u);
  });
}

struct amount {
  int cents;
  friend std::string to_string(const amount& a) { return std::to_string(a.cents) + " cents"; }
};
struct password {
  std::string text;
};
class till : public actor<till> {
 public:
  void on(amount) {}
  int on(int x) { return x; }
  void on(const password&) {}
};

TEST_P(letters, show_what_they_say_if_it_can_be_printed) {
  static std::mutex lock;
  std::vector<std::string> texts;
  runtime rt{options()};
  rt.run([&] {
    auto t = spawn_actor<till>();
    const dead_letter_watch watch{
        rt, [&](const dead_letter& l) {
          const std::lock_guard guard{lock};
          texts.push_back(std::string{l.type->name().substr(l.type->name().rfind(':') + 1)} + ' ' + l.text());
        }};
    t.stop();
    t.join();
    t.tell(amount{17});
    EXPECT_THROW(t.ask(5), actor_down);
    t.tell(password{"secret"});
  });
  EXPECT_EQ(texts, (std::vector<std::string>{"amount 17 cents", "int 5", "password "}));
}

TEST_P(letters, are_watched_by_runtime_until_the_watch_ends) {
  std::atomic<int> of_first{0};
  std::atomic<int> of_both{0};
  on_dead_letter([&of_both](const dead_letter&) { ++of_both; });
  const auto lose_one = [] {
    auto t = spawn_actor<till>();
    t.stop();
    t.join();
    t.tell(1);
    return t;
  };
  actor_ref<till> orphan;
  {
    runtime first{options()};
    runtime second{options()};
    {
      const dead_letter_watch watch{first, [&of_first](const dead_letter&) { ++of_first; }};
      orphan = first.run(lose_one);
      second.run(lose_one);
      orphan.tell(2);  // by a plain thread
      EXPECT_EQ(of_first, 2);
      EXPECT_EQ(of_both, 3);
    }
    first.run(lose_one);
    EXPECT_EQ(of_first, 2);
  }
  orphan.tell(3);  // its runtime has ended
  EXPECT_EQ(of_first, 2);
  EXPECT_EQ(of_both, 5);
  on_dead_letter({});
  orphan.tell(4);
  EXPECT_EQ(of_both, 5);
}

}  // namespace
}  // namespace ramie
