// The decision whether ready work is spread or kept together, fed with figures by hand.
#include <ramie/sched/spread.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace ramie::detail {
namespace {

using mode = spread_control::mode;

constexpr std::int64_t round_ns = 1'000'000;

/// A program that gets `together_rate` done a round when one worker runs it and `spread_rate` when all do.
class program {
 public:
  program(std::uint64_t together_rate, std::uint64_t spread_rate, bool born_spread = false)
      : together_rate_{together_rate}, spread_rate_{spread_rate}, is_spread_{born_spread} {}

  mode round(bool backlog = true, bool other_work = false) {
    now_ns_ += round_ns;
    const bool settling = is_spread_ && settling_left_ > 0;
    if (settling) --settling_left_;
    progress_ += settling ? together_rate_ / 2 : is_spread_ ? spread_rate_ : together_rate_;
    const mode m = control_.observe({now_ns_, progress_, backlog, !is_spread_, other_work, settling});
    if (m == mode::spread && !is_spread_) settling_left_ = settling_for_;
    if (m != mode::undecided) is_spread_ = m == mode::spread;
    if (is_spread_) ++spread_rounds_;
    return m;
  }
  mode rounds(int n) {
    for (int i = 1; i < n; ++i) round();
    return round();
  }
  void change(std::uint64_t together_rate, std::uint64_t spread_rate) {
    together_rate_ = together_rate;
    spread_rate_ = spread_rate;
  }
  /// Each change from one worker to several costs half the speed for so many rounds.
  void settles_for(int rounds) { settling_for_ = rounds; }
  int spread_rounds() const { return spread_rounds_; }

 private:
  spread_control control_;
  std::uint64_t together_rate_, spread_rate_;
  bool is_spread_;
  std::int64_t now_ns_ = 1;
  std::uint64_t progress_ = 0;
  int spread_rounds_ = 0;
  int settling_for_ = 0, settling_left_ = 0;
};

TEST(spread_control, is_undecided_without_a_backlog) {
  program p{1000, 2000};
  for (int i = 0; i < 200; ++i) EXPECT_EQ(p.round(false), mode::undecided);
}

TEST(spread_control, waits_until_what_has_moved_is_settled) {
  for (const int rounds : {1, 5, 12}) {
    program p{1000, 1900};
    p.settles_for(rounds);
    EXPECT_EQ(p.rounds(30), mode::spread) << rounds;
  }
  // But not for ever: some take locks from each other without end.
  program p{1000, 1900};
  p.settles_for(1'000'000);
  p.rounds(40);
  const int before = p.spread_rounds();
  p.rounds(1000);
  EXPECT_LT(p.spread_rounds() - before, 300);
}

TEST(spread_control, spreads_what_two_workers_do_faster) {
  program p{1000, 1900};
  EXPECT_EQ(p.rounds(20), mode::spread);
  // And stays so, but for a look now and then.
  const int before = p.spread_rounds();
  p.rounds(1000);
  EXPECT_GT(p.spread_rounds() - before, 950);
}

TEST(spread_control, keeps_together_what_two_workers_do_more_slowly) {
  program p{1000, 600};
  EXPECT_EQ(p.rounds(20), mode::together);
  p.rounds(2000);
  EXPECT_LT(p.spread_rounds(), 60) << "trials must become rare";
}

TEST(spread_control, gathers_what_was_born_spread) {
  program p{3000, 1000, true};
  EXPECT_EQ(p.rounds(20), mode::together);
  program q{1000, 1900, true};
  EXPECT_EQ(q.rounds(20), mode::spread);
}

TEST(spread_control, wants_a_gain_for_a_second_processor) {
  program p{1000, 1050};
  EXPECT_EQ(p.rounds(20), mode::together);
}

TEST(spread_control, notices_that_the_program_has_changed) {
  program p{1000, 600};
  p.rounds(50);
  p.change(1000, 1900);
  p.rounds(200);
  EXPECT_EQ(p.round(), mode::spread);
  p.change(1000, 600);
  p.rounds(1100);  // the longest wait is a second
  EXPECT_EQ(p.round(), mode::together);
}

TEST(spread_control, learns_nothing_while_there_is_other_work) {
  program p{1000, 1900};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(p.round(true, true), mode::undecided);
}

TEST(spread_control, breaks_a_trial_off_for_other_work) {
  program p{1000, 1900};
  mode m = mode::undecided;
  int until_trial = 0;
  while (m == mode::undecided && until_trial < 100) {
    m = p.round();
    ++until_trial;
  }
  ASSERT_EQ(m, mode::spread);
  EXPECT_EQ(p.round(true, true), mode::undecided);
}

TEST(spread_control, forgets_when_there_has_been_no_backlog_for_long) {
  program p{1000, 600};
  ASSERT_EQ(p.rounds(20), mode::together);
  mode m = mode::together;
  for (int i = 0; i < 60; ++i) m = p.round(false);
  EXPECT_EQ(m, mode::undecided);
}

}  // namespace
}  // namespace ramie::detail
