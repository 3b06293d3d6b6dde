// Messages that nobody handles.
#include <ramie/patterns/dead_letters.hpp>

#include <ramie/actor/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <string>

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

}  // namespace
}  // namespace ramie
