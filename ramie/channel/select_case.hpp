// The cases of a select, and how they are tried and waited for, apart from the types of their elements.
//
//  S1 Glance at all cases without locks; one of those that look ready is picked at random, locked and tried. Each ready
//     case is equally likely. If the glance was wrong, all are tried under their locks, from a random one on. With
//     `otherwise`, "none is ready" must be true of one instant: two glances, between which no count has changed (C8).
//     If one has, it looks again; each further round was caused by another party's operation.
//  S2 None is ready: arm a wait, and add an operation to every channel, one lock at a time. Under each lock look again:
//     if the case has become ready, withdraw the wait and try it. If the wait cannot be withdrawn, a counterpart has
//     served another case already. A counterpart serves the first of the cases on its channel, so they are added from a
//     random one on, forwards or backwards: of any two, each comes first as often as the other.
//  S3 Suspend. One counterpart wins the wait, so at most one case is served, however many channels have it in line.
//  S4 Take the other operations out, each under its lock.
// A select never serves itself: its own operations do not count as ready (has_other_than) and cannot be claimed, since
// their wait is over when they are met (S2). If two selects meet that are both at S2, each may withdraw its own wait
// and then find the other's over: both begin again. They pick their next case at random, so this does not go on for
// ever.
#pragma once

#include <ramie/channel/core.hpp>

#include <cstddef>
#include <limits>

namespace ramie::detail {

class waitable_case;  // waitable.hpp

class select_case {
 public:
  select_case(channel_core& core, bool sends, channel_status (*how)(select_case&, operation*&),
              void* (*slot)(select_case&) noexcept) noexcept
      : core_{&core}, sends_{sends}, attempt_{how}, slot_{slot} {}

  [[nodiscard]] bool may_be_ready() const noexcept { return sends_ ? core_->may_send() : core_->may_receive(); }
  [[nodiscard]] bool may_be_ready(std::uint64_t& increases) const noexcept {
    return sends_ ? core_->may_send(increases) : core_->may_receive(increases);
  }
  [[nodiscard]] channel_status status() const noexcept { return status_; }

  /// Performs it, if that is possible now. Throws what moving the element throws.
  bool attempt();

  enum class step { added, done, again, claimed };
  /// S2. `again`: the wait was withdrawn for nothing. `claimed`: a counterpart has served another case.
  step add(wait& pause);
  /// S4. True if it was this case that was served. Does nothing if it was not added.
  bool take_out() noexcept;
  /// C6, of the case that was served.
  [[nodiscard]] bool must_retry() const noexcept { return must_retry_; }

 private:
  [[nodiscard]] waiting_line& line() const noexcept { return sends_ ? core_->senders : core_->receivers; }
  [[nodiscard]] bool is_ready_for(const stack* self) const noexcept;
  bool attempt_locked(channel_guard& guard);

  channel_core* core_;
  bool sends_;
  bool must_retry_ = false;
  bool in_line_ = false;  // the selecting side's own knowledge: `mine_` is its counterparts' until it is taken out
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
  if constexpr (requires { typename Cases::in_order; }) {
    for (std::size_t i = 0; i < n; ++i)
      if (cases[i].may_be_ready() && cases[i].attempt()) return i;
    return no_case;
  }
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

/// S1 with `otherwise`: no_case if all were seen not ready at one instant.
template <class Cases>
std::size_t select_poll(Cases& cases, std::size_t n) {
  const auto glance = [&](std::uint64_t& increases) {
    bool hope = false;
    for (std::size_t i = 0; i < n; ++i) hope |= cases[i].may_be_ready(increases);
    return hope;
  };
  for (;;) {
    std::uint64_t before = 0, after = 0;
    if (glance(before) || (!RAMIE_PLANT(otherwise_glances_once) && glance(after))) {
      if (const std::size_t ready = select_ready(cases, n); ready != no_case) return ready;
    } else if (before == after || RAMIE_PLANT(otherwise_glances_once) || RAMIE_PLANT(otherwise_counts_ignored)) {
      return no_case;
    }
  }
}

/// S4 for all cases. Returns the index of the case that was served, or no_case.
template <class Cases>
std::size_t select_take_out(Cases& cases, std::size_t n) noexcept {
  std::size_t served = no_case;
  for (std::size_t i = 0; i < n; ++i)
    if (cases[i].take_out()) served = i;
  return served;
}

/// S2. Returns `added` if all are, or `claimed`, and the caller must suspend, or the result of `served`.
template <class Cases>
select_case::step select_add(Cases& cases, std::size_t n, wait& pause, std::size_t& served) {
  std::size_t at = 0, step = 1;
  if (n > 1 && !requires { typename Cases::in_order; }) {
    const std::uint32_t turn = random_below(static_cast<std::uint32_t>(2 * n));
    at = turn / 2;
    if (turn % 2 != 0) step = n - 1;
  }
  for (std::size_t added = 0; added < n; ++added) {
    select_case::step what;
    try {
      what = cases[at].add(pause);
    } catch (...) {
      select_take_out(cases, n);
      throw;
    }
    if (what != select_case::step::added) [[unlikely]] {
      if (what == select_case::step::claimed) return what;
      select_take_out(cases, n);
      served = at;
      return what;
    }
    at += step;
    if (at >= n) at -= n;
  }
  return select_case::step::added;
}

/// Of several ready cases the first is taken, and a counterpart serves the first of those on its channel.
template <class Cases>
struct cases_in_order : Cases {
  using in_order = void;
};

/// For most selects: pointers to cases of different types.
struct case_pointers {
  select_case* const* first;
  select_case& operator[](std::size_t i) const noexcept { return *first[i]; }
};
extern template std::size_t select_ready(case_pointers&, std::size_t);
extern template std::size_t select_poll(case_pointers&, std::size_t);
extern template std::size_t select_take_out(case_pointers&, std::size_t) noexcept;
extern template select_case::step select_add(case_pointers&, std::size_t, wait&, std::size_t&);

}  // namespace ramie::detail
