// The cases of a select, and how they are tried and waited for, apart from the types of their elements.
//
//  S1 Glance at all cases without locks; of those that look ready one is picked at random, locked and tried. Each ready
//     case is equally likely. If it was a false hope, all are tried under their locks, from a random one on.
//  S2 None is ready: arm a wait, and add an operation to every channel, one lock at a time. Under each lock look again:
//     if the case has become ready, take the wait back and try it. If the wait cannot be taken back, somebody has served
//     another case already.
//  S3 Suspend. One counterpart wins the wait, so one case at most is served, however many channels find it in their lines.
//  S4 Take the other operations out, each under its lock.
// A select never serves itself: its own operations count neither as ready (has_other_than) nor can they be claimed,
// since their wait is over when they are met (S2). If two selects meet that are both at S2, each may take its own wait
// back and then find the other's over: both begin again. They pick their next case at random, so they do not go on like
// this.
#pragma once

#include <ramie/channel/core.hpp>

#include <cstddef>
#include <limits>

namespace ramie::detail {

class select_case {
 public:
  select_case(channel_core& core, bool sends, channel_status (*how)(select_case&, operation*&),
              void* (*slot)(select_case&) noexcept) noexcept
      : core_{&core}, sends_{sends}, attempt_{how}, slot_{slot} {}

  [[nodiscard]] bool may_be_ready() const noexcept { return sends_ ? core_->may_send() : core_->may_receive(); }
  [[nodiscard]] channel_status status() const noexcept { return status_; }

  /// Does it, if that is possible now. Throws what moving the element throws.
  bool attempt();

  enum class step { added, done, again, claimed };
  /// S2. `again`: the wait was taken back for nothing. `claimed`: somebody has served another case.
  step add(wait& pause);
  /// S4. True if it was this case that was served.
  bool take_out() noexcept;
  [[nodiscard]] bool must_retry() const noexcept { return mine_.result == operation::outcome::retry; }

 private:
  [[nodiscard]] waiting_line& line() const noexcept { return sends_ ? core_->senders : core_->receivers; }
  [[nodiscard]] bool is_ready_for(const stack* self) const noexcept;
  bool attempt_locked(channel_guard& guard);

  channel_core* core_;
  bool sends_;
  channel_status status_ = channel_status::ok;
  channel_status (*attempt_)(select_case&, operation*& served);
  void* (*slot_)(select_case&) noexcept;
  operation mine_;
};

inline constexpr std::size_t no_case = std::numeric_limits<std::size_t>::max();

/// A number below `bound`, from the worker's or the thread's own sequence.
[[nodiscard]] std::uint32_t random_below(std::uint32_t bound) noexcept;

/// S1. `cases[i]` is a select_case&. Returns its index, or no_case. Throws what moving an element throws.
template <class Cases>
std::size_t select_ready(Cases& cases, std::size_t n) {
  std::size_t picked = no_case;
  std::uint32_t hopeful = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!cases[i].may_be_ready()) continue;
    ++hopeful;
    // Reservoir sampling: the k-th replaces the pick with probability 1/k.
    if (hopeful == 1 || random_below(hopeful) == 0) picked = i;
  }
  if (picked == no_case || cases[picked].attempt()) return picked;
  const std::size_t start = random_below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = start + i < n ? start + i : start + i - n;
    if (cases[at].attempt()) return at;
  }
  return no_case;
}

/// S4 for the first `n`. Returns the index of the case that was served, or no_case.
template <class Cases>
std::size_t select_take_out(Cases& cases, std::size_t n) noexcept {
  std::size_t served = no_case;
  for (std::size_t i = 0; i < n; ++i)
    if (cases[i].take_out()) served = i;
  return served;
}

/// S2. Returns `added` if all are, and the caller must suspend (as after `claimed`, with `n` less), or what `served`
/// tells.
template <class Cases>
select_case::step select_add(Cases& cases, std::size_t& n, wait& pause, std::size_t& served) {
  for (std::size_t i = 0; i < n; ++i) {
    select_case::step step;
    try {
      step = cases[i].add(pause);
    } catch (...) {
      select_take_out(cases, i);
      throw;
    }
    if (step == select_case::step::added) continue;
    if (step == select_case::step::claimed) {
      n = i;
    } else {
      select_take_out(cases, i);
      served = i;
    }
    return step;
  }
  return select_case::step::added;
}

/// What most selects use: pointers to cases of different types.
struct case_pointers {
  select_case* const* first;
  select_case& operator[](std::size_t i) const noexcept { return *first[i]; }
};
extern template std::size_t select_ready(case_pointers&, std::size_t);
extern template std::size_t select_take_out(case_pointers&, std::size_t) noexcept;
extern template select_case::step select_add(case_pointers&, std::size_t&, wait&, std::size_t&);

}  // namespace ramie::detail
