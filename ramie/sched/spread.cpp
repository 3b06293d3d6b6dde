#include <ramie/sched/spread.hpp>

#include <algorithm>

namespace ramie::detail {

namespace {
// Guesses; above and below 1, so that two ways that are alike do not take turns.
constexpr double clear_gain = 1.1;  // for a second processor, and to leave home, where fibers meet no thief
constexpr double no_loss = 0.97;    // to free a processor, to stay at home, to spread fibers that do not communicate
constexpr double much_worse = 0.7;
constexpr std::int64_t apart_ns = 8000;  // between two crossings: then these cost some percent at most
}  // namespace

spread_control::mode spread_control::observe(const observation& seen) noexcept {
  const std::int64_t passed_ns = seen.now_ns - last_ns_;
  const bool first = last_ns_ == 0 || passed_ns <= 0;
  // A lock held for nothing may be uncounted after a look: then it is less than before.
  const auto done = std::max<std::int64_t>(0, static_cast<std::int64_t>(seen.progress - last_progress_));
  const double rate = first ? 0 : static_cast<double>(done) / static_cast<double>(passed_ns);
  const auto crossed = static_cast<std::int64_t>(seen.crossed - last_crossed_);
  apart_ = !first && crossed * apart_ns < passed_ns;
  last_ns_ = seen.now_ns;
  last_progress_ = seen.progress;
  last_crossed_ = seen.crossed;
  if (first) return mode_;
  if (passed_ns > wait_least_ns) {
    // All workers slept: that says nothing about any way.
    without_ = static_cast<int>(std::min<std::int64_t>(without_ + passed_ns / round_ns, rounds_forgotten));
    if (without_ == rounds_forgotten) return forget(seen);
    return break_off();
  }

  backlog_ = seen.backlog ? std::min(backlog_ + 1, rounds_forgotten) : 0;
  without_ = seen.backlog ? 0 : std::min(without_ + 1, rounds_forgotten);
  if (seen.other_work) return break_off();  // whatever is measured now says nothing
  if (without_ == rounds_forgotten) return forget(seen);

  ++rounds_;
  switch (phase_) {
    case phase::settled:
      if (!seen.backlog) {
        rounds_ = 0;  // it had less to do than it could
        usual_ = 0;
        break;
      }
      usual_ = usual_ == 0 ? rate : (3 * usual_ + rate) / 4;
      if (backlog_ >= rounds_measured && rounds_ >= rounds_measured) {
        is_as_ = mode_ != mode::undecided ? mode_ : seen.alone ? mode::together : mode::spread;
        if (const mode m = next_trial(seen); m != is_as_) begin_trial(m);
      }
      break;
    case phase::warming:
      if ((seen.settling || (seen.alone && mode_ != mode::together)) && rounds_ < rounds_settling) break;
      phase_ = phase::measuring;
      rounds_ = 0;
      trial_ = 0;
      break;
    case phase::measuring:
      trial_ += rate;
      if (rounds_ == rounds_measured || rate < much_worse * usual_) end_trial(seen, trial_ / rounds_);
      break;
  }
  return mode_;
}

/// A trial ends without a result.
spread_control::mode spread_control::break_off() noexcept {
  if (phase_ != phase::settled) mode_ = before_;
  phase_ = phase::settled;
  rounds_ = 0;
  usual_ = 0;
  return mode_;
}

spread_control::mode spread_control::forget(const observation& seen) noexcept {
  *this = spread_control{homes_};
  last_ns_ = seen.now_ns;
  last_progress_ = seen.progress;
  last_crossed_ = seen.crossed;
  return mode_;
}

/// The one that is due, and has waited for least; `is_as_` if there is none.
spread_control::mode spread_control::next_trial(const observation& seen) const noexcept {
  const bool is_spread = is_as_ != mode::together;
  if (is_spread && apart_ && !seen.alone) return is_as_;
  mode best = is_as_;
  const candidate* of_best = nullptr;
  // Of those that are to be tried for the first time the one that does least harm if it is wrong.
  for (const mode m : {mode::together, mode::at_home, mode::spread}) {
    if (m == is_as_ || (m == mode::at_home && !homes_)) continue;
    const candidate& c = candidates_[static_cast<std::size_t>(m)];
    if (seen.now_ns < c.next_ns || (of_best != nullptr && of_best->wait_ns <= c.wait_ns)) continue;
    best = m;
    of_best = &c;
  }
  return best;
}

void spread_control::begin_trial(mode m) noexcept {
  before_ = mode_;
  mode_ = m;
  phase_ = phase::warming;
  rounds_ = 0;
}

void spread_control::end_trial(const observation& seen, double rate) noexcept {
  const bool spreads = is_as_ == mode::together;
  const bool is_modest = spreads ? apart_ : mode_ != mode::spread;
  const bool better = rate > usual_ * (is_modest ? no_loss : clear_gain);
  const mode loser = better ? is_as_ : mode_;
  if (!better) mode_ = is_as_;
  candidate& c = of(loser);
  // Also for one that was the usual until now: two that are alike must not take turns forever.
  // Without a backlog it may have had less to do than it could, and that is not its fault.
  const int longer = !seen.backlog || rate >= much_worse * usual_ ? 2 : 8;
  c.wait_ns = std::min(longer * c.wait_ns, wait_most_ns);
  c.next_ns = seen.now_ns + c.wait_ns;
  // What loses by one way to be spread hardly gains by the other.
  if (spreads && !better)
    for (const mode m : {mode::at_home, mode::spread}) of(m).next_ns = std::max(of(m).next_ns, c.next_ns);
  phase_ = phase::settled;
  rounds_ = 0;
  usual_ = 0;
}

}  // namespace ramie::detail
