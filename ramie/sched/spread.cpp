#include <ramie/sched/spread.hpp>

#include <algorithm>

namespace ramie::detail {

namespace {
constexpr double gain_to_spread = 1.1;   // a second processor must bring something
constexpr double gain_to_gather = 1.02;  // to free one is worth something by itself
}  // namespace

spread_control::mode spread_control::observe(const observation& seen) noexcept {
  const std::int64_t passed_ns = seen.now_ns - last_ns_;
  const bool first = last_ns_ == 0 || passed_ns <= 0;
  // What was held in vain may be taken back after a look: then it is less than before.
  const auto done = std::max<std::int64_t>(0, static_cast<std::int64_t>(seen.progress - last_progress_));
  const double rate = first ? 0 : static_cast<double>(done) / static_cast<double>(passed_ns);
  last_ns_ = seen.now_ns;
  last_progress_ = seen.progress;
  if (first) return mode_;

  backlog_ = seen.backlog ? std::min(backlog_ + 1, rounds_forgotten) : 0;
  without_ = seen.backlog ? 0 : std::min(without_ + 1, rounds_forgotten);
  if (seen.other_work) {
    // Whatever is measured now says nothing.
    if (phase_ != phase::settled) mode_ = before_;
    phase_ = phase::settled;
    rounds_ = 0;
    usual_ = 0;
    return mode_;
  }
  if (without_ == rounds_forgotten) {
    *this = spread_control{};
    last_ns_ = seen.now_ns;
    last_progress_ = seen.progress;
    return mode_;
  }

  ++rounds_;
  switch (phase_) {
    case phase::settled:
      usual_ = usual_ == 0 ? rate : (3 * usual_ + rate) / 4;
      if (backlog_ >= rounds_before && rounds_ >= rounds_before && seen.now_ns >= next_ns_) begin_trial(seen.alone);
      break;
    case phase::warming:
      if (seen.settling && rounds_ < rounds_settling) break;
      phase_ = phase::measuring;
      rounds_ = 0;
      trial_ = 0;
      break;
    case phase::measuring:
      trial_ += rate;
      if (rounds_ == rounds_measured) end_trial(seen.now_ns, trial_ / rounds_measured);
      break;
  }
  return mode_;
}

void spread_control::begin_trial(bool alone) noexcept {
  before_ = mode_;
  // Undecided, they may be spread all the same, by the way they came into being.
  const bool is_spread = mode_ == mode::spread || (mode_ == mode::undecided && !alone);
  mode_ = is_spread ? mode::together : mode::spread;
  phase_ = phase::warming;
  rounds_ = 0;
}

void spread_control::end_trial(std::int64_t now_ns, double rate) noexcept {
  const bool better = rate > usual_ * (mode_ == mode::spread ? gain_to_spread : gain_to_gather);
  if (!better) mode_ = mode_ == mode::spread ? mode::together : mode::spread;
  const bool as_before = mode_ == before_ || before_ == mode::undecided;
  wait_ns_ = as_before ? std::min(2 * wait_ns_, wait_most_ns) : wait_least_ns;
  next_ns_ = now_ns + wait_ns_;
  phase_ = phase::settled;
  rounds_ = 0;
  usual_ = 0;
}

}  // namespace ramie::detail
