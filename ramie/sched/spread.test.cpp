// The decision whether ready work is spread or kept together, fed with figures by hand.
#include <ramie/sched/spread.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {
namespace {

using mode = spread_control::mode;

constexpr std::int64_t round_ns = spread_control::round_ns;

/// A program that gets so much done a round when one worker runs it, when all do, and when all do with everything at
/// its home (as much as when spread, if that is not said).
class program {
 public:
  struct rates {
    std::uint64_t together, spread, at_home = 0;
  };
  explicit program(rates r, bool born_spread = false, bool homes = true)
      : rates_{r}, control_{homes}, now_{born_spread ? mode::spread : mode::together} {}
  program(std::uint64_t together_rate, std::uint64_t spread_rate, bool born_spread = false)
      : program{rates{together_rate, spread_rate}, born_spread} {}

  mode round(bool backlog = true, bool other_work = false) {
    now_ns_ += round_ns;
    const bool settling = is_spread() && settling_left_ > 0;
    if (settling) --settling_left_;
    progress_ += settling ? rates_.together / 2 : rate(now_);
    if (is_spread()) crossed_ += crossed_a_round_;
    const mode m = control_.observe({.now_ns = now_ns_,
                                     .progress = progress_,
                                     .crossed = crossed_,
                                     .backlog = backlog,
                                     .alone = !is_spread(),
                                     .other_work = other_work,
                                     .settling = settling});
    if (m != now_ && m != mode::undecided) {
      ++changes_;
      if (now_ == mode::together) settling_left_ = settling_for_;
      now_ = m;
    }
    ++rounds_in_[static_cast<std::size_t>(now_)];
    return m;
  }
  mode rounds(int n) {
    for (int i = 1; i < n; ++i) round();
    return round();
  }
  void change(rates r) { rates_ = r; }
  /// Each change from one worker to several costs half the speed for so many rounds.
  void settles_for(int rounds) { settling_for_ = rounds; }
  /// Wake-ups from worker to worker, a round, while spread.
  void crosses(std::uint64_t times) { crossed_a_round_ = times; }
  int rounds_in(mode m) const { return rounds_in_[static_cast<std::size_t>(m)]; }
  /// Nobody looks meanwhile.
  void sleeps(int rounds) { now_ns_ += rounds * round_ns; }
  mode now() const { return now_; }
  int spread_rounds() const { return rounds_in(mode::spread) + rounds_in(mode::at_home); }
  int changes() const { return changes_; }

 private:
  bool is_spread() const { return now_ != mode::together; }
  std::uint64_t rate(mode m) const {
    if (m == mode::together) return rates_.together;
    return m == mode::at_home && rates_.at_home != 0 ? rates_.at_home : rates_.spread;
  }

  rates rates_;
  spread_control control_;
  mode now_;
  std::int64_t now_ns_ = 1;
  std::uint64_t progress_ = 0;
  std::uint64_t crossed_ = 0;
  std::uint64_t crossed_a_round_ = 10'000;
  std::array<int, 4> rounds_in_{};
  int changes_ = 0;
  int settling_for_ = 0, settling_left_ = 0;
};

bool is_spread(mode m) { return m == mode::spread || m == mode::at_home; }

TEST(spread_control, is_undecided_without_a_backlog) {
  program p{1000, 2000};
  for (int i = 0; i < 200; ++i) EXPECT_EQ(p.round(false), mode::undecided);
}

TEST(spread_control, waits_until_what_has_moved_is_settled) {
  for (const int rounds : {1, 5, 12}) {
    program p{1000, 1900};
    p.settles_for(rounds);
    EXPECT_TRUE(is_spread(p.rounds(30))) << rounds;
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
  EXPECT_TRUE(is_spread(p.rounds(20)));
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
  EXPECT_TRUE(is_spread(q.rounds(20)));
}

TEST(spread_control, wants_a_gain_for_a_second_processor) {
  program p{1000, 1050};
  p.rounds(300);
  EXPECT_LT(p.spread_rounds(), 50) << "but for trials";
}

TEST(spread_control, notices_that_the_program_has_changed) {
  program p{1000, 600};
  p.rounds(50);
  p.change({.together = 1000, .spread = 1900});
  p.rounds(1100);  // the longest wait is a second
  EXPECT_TRUE(is_spread(p.round()));
  p.change({.together = 1000, .spread = 600});
  p.rounds(1100);
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
  ASSERT_TRUE(is_spread(m));
  EXPECT_EQ(p.round(true, true), mode::undecided);
}

TEST(spread_control, forgets_when_there_has_been_no_backlog_for_long) {
  program p{1000, 600};
  ASSERT_EQ(p.rounds(20), mode::together);
  mode m = mode::together;
  for (int i = 0; i < 60; ++i) m = p.round(false);
  EXPECT_EQ(m, mode::undecided);
}

TEST(spread_control, finds_the_best_of_three) {
  const struct {
    program::rates r;
    mode best;
  } cases[] = {{{.together = 1000, .spread = 400, .at_home = 1400}, mode::at_home},
               {{.together = 1000, .spread = 1700, .at_home = 1300}, mode::spread},
               {{.together = 1000, .spread = 1300, .at_home = 1700}, mode::at_home},
               {{.together = 1000, .spread = 300, .at_home = 800}, mode::together},
               {{.together = 1000, .spread = 1500, .at_home = 900}, mode::spread}};
  for (const auto& c : cases)
    for (const bool born_spread : {false, true}) {
      program p{c.r, born_spread};
      p.rounds(1500);
      const int before = p.rounds_in(c.best);
      p.rounds(500);
      EXPECT_GT(p.rounds_in(c.best) - before, 480) << c.r.spread << ", " << c.r.at_home << ", " << born_spread;
    }
}

TEST(spread_control, tries_no_homes_where_there_are_none) {
  program p{{.together = 1000, .spread = 400, .at_home = 1900}, false, false};
  p.rounds(3000);
  EXPECT_EQ(p.rounds_in(mode::at_home), 0);
}

TEST(spread_control, tries_less_often_what_is_much_worse) {
  const auto tried = [](std::uint64_t rate) {
    program p{{.together = 1000, .spread = rate, .at_home = rate}};
    p.rounds(200);
    return p.spread_rounds();
  };
  EXPECT_LT(tried(600), tried(900));
}

TEST(spread_control, does_not_gather_those_who_have_nothing_to_say_to_each_other) {
  program p{1000, 1900, true};
  p.crosses(10);
  p.rounds(3000);
  EXPECT_EQ(p.changes(), 0);
  // Nor must they gain much to be spread: only not lose.
  program q{1000, 1000};
  q.crosses(10);
  EXPECT_TRUE(is_spread(q.rounds(20)));
  program r{1000, 900};
  r.crosses(10);
  r.rounds(300);
  EXPECT_LT(r.spread_rounds(), 50) << "but for trials";
}

TEST(spread_control, does_not_change_for_ever_between_two_that_are_alike) {
  program p{{.together = 500, .spread = 1000, .at_home = 1000}};
  p.rounds(2000);
  const int before = p.changes();
  p.rounds(2000);
  EXPECT_LT(p.changes() - before, 20);
}

TEST(spread_control, judges_nothing_by_a_time_in_which_everybody_slept) {
  // Bursts of some milliseconds, with pauses of 20: a trial that a pause falls into must not count as lost.
  program p{{.together = 1000, .spread = 700, .at_home = 1800}};
  int trials = 0;
  for (int burst = 0; burst < 400; ++burst) {
    for (int i = 0; i < 3 + burst % 5; ++i) p.round();
    p.sleeps(20);
    trials += p.now() == mode::at_home;
  }
  EXPECT_GT(trials, 20) << "the better way was hardly ever tried";
  p.rounds(100);
  EXPECT_EQ(p.now(), mode::at_home);
}

TEST(spread_control, starts_anew_after_a_long_sleep) {
  program p{1000, 600};
  ASSERT_EQ(p.rounds(20), mode::together);
  p.sleeps(100);
  EXPECT_EQ(p.round(), mode::undecided);
}

}  // namespace
}  // namespace ramie::detail
