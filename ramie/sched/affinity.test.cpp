// What a resident learns about its home, fed with made-up costs.
#include <ramie/sched/affinity.hpp>

#include <gtest/gtest.h>

namespace ramie::detail {
namespace {

constexpr std::uint64_t hop = 250;

/// An actor whose every message comes from another worker.
struct talker {
  std::uint64_t following;  // cycles a message that way
  std::uint64_t staying;
  home_learner learner{};
  int stayed = 0, timed = 0, messages = 0;

  void message() {
    const bool home = learner.goes_home();
    ++messages;
    if (home) ++stayed;
    if (!learner.is_watching()) return;
    ++timed;
    learner.ran(home ? staying : following, 1, hop);
  }
  bool after(int n) {
    for (int i = 0; i < n; ++i) message();
    const int before = stayed;
    for (int i = 0; i < 10; ++i) message();
    return stayed - before == 10;
  }
};

TEST(home_learner, follows_at_first) {
  talker t{1000, 100};
  for (int i = 0; i < 60; ++i) t.message();
  EXPECT_EQ(t.stayed, 0);
  EXPECT_EQ(t.timed, 0);
}

TEST(home_learner, stays_where_that_saves_more_than_the_hop) {
  talker t{2000, 600};
  EXPECT_TRUE(t.after(500));
}

TEST(home_learner, follows_where_it_does_not) {
  talker small{600, 590};
  EXPECT_FALSE(small.after(500));
  talker nearly{600, 400};
  EXPECT_FALSE(nearly.after(500));
  talker colder{600, 900};
  EXPECT_FALSE(colder.after(500));
}

TEST(home_learner, asks_ever_less_often) {
  talker t{600, 590};
  t.after(200'000);
  EXPECT_LT(t.timed, t.messages / 200);
  EXPECT_LT(t.stayed, t.messages / 200);
}

TEST(home_learner, changes_its_mind) {
  talker t{2000, 600};
  ASSERT_TRUE(t.after(500));
  t.staying = 2500;
  EXPECT_FALSE(t.after(2000));
  t.staying = 600;
  EXPECT_TRUE(t.after(2000));
}

TEST(home_learner, is_not_misled_by_an_interruption) {
  talker t{2000, 600};
  for (int i = 0; i < 500; ++i) {
    // Each tenth message takes a time slice.
    const std::uint64_t calm = t.staying;
    if (i % 10 == 0) t.staying = 10'000'000;
    t.message();
    t.staying = calm;
  }
  EXPECT_TRUE(t.after(1));
}

TEST(home_learner, counts_messages_handled_at_once) {
  home_learner learner;
  for (int i = 0; i < 64; ++i) EXPECT_FALSE(learner.goes_home());
  while (learner.is_watching() && !learner.goes_home()) learner.ran(4000, 4, hop);  // 1000 a message
  EXPECT_TRUE(learner.goes_home());
  while (learner.is_watching()) learner.ran(2000, 4, hop);  // 500 a message
  EXPECT_TRUE(learner.goes_home());
}

TEST(home_learner, learns_nothing_where_it_has_no_choice) {
  talker t{2000, 600};
  int calls_off = 0;
  for (int i = 0; i < 2000; ++i) {
    t.message();
    if (!t.learner.is_watching()) continue;
    t.learner.call_off();
    ++calls_off;
    EXPECT_FALSE(t.learner.is_watching());
  }
  EXPECT_EQ(t.stayed, 0);
  EXPECT_LT(calls_off, 6);  // asks ever less often
  EXPECT_TRUE(t.after(5000));
  for (int i = 0; i < 100'000 && !t.learner.is_watching(); ++i) t.message();
  ASSERT_TRUE(t.learner.is_watching());
  t.learner.call_off();
  EXPECT_TRUE(t.after(1));  // what was known stays
}

TEST(home_learner, is_small) { EXPECT_LE(sizeof(home_learner), 12u); }

}  // namespace
}  // namespace ramie::detail
