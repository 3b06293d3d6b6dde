// Whether a woken resident is better run by its waker's worker or at its home: learned, for each by itself, where not
// everything goes home (spread.hpp).
//
// At home its state lies in the caches, but the message has to go there (some 100 ns between two workers that are
// awake). By its waker the message costs nothing, but the state comes along. Which is cheaper depends on how large the
// state is, how much of it a message touches, and how warm it would be at home anyway. None of that can be known, and
// comparing a message after a move with one at home does not tell either: where actors wander, they find half of their
// state elsewhere even at home. So each resident that other workers wake often is run both ways for a while:
//
//   follows    until it was woken from elsewhere 2^wait times; then timed for `measured` messages,
//   goes home  for `warmed` messages, until its state has gathered there; then timed for `measured` more.
//
// The cheaper way stays, and is looked at again after twice as many wake-ups (from 64 to 32,768 of them). So an actor
// that talks little never pays for the question, and one that talks much pays less than a hundredth.
//
// Times are averaged as rates (the harmonic mean), so that an interruption in the middle of a message counts as one
// slow message, not as a thousand.
#pragma once

#include <cstdint>

namespace ramie::detail {

/// For who makes the resident ready, or runs it: never both at once.
class home_learner {
 public:
  static constexpr std::uint16_t measured = 16;
  static constexpr std::uint16_t warmed = 32;

  /// It was woken by another worker than its home. True: send it home.
  [[nodiscard]] bool goes_home() noexcept {
    if (phase_ == phase::follows || phase_ == phase::stays) {
      if (++count_ >> wait_ != 0) enter(phase_ == phase::follows ? phase::follows_timed : phase::follows_warming);
    }
    return phase_ >= phase::stays;
  }
  /// It was woken by another worker than its home, and there is no choice: its home sleeps, or all are kept together.
  /// What comes next is neither way, so a comparison that is under way ends without a result.
  void call_off() noexcept {
    if (!is_watching()) return;
    wait_ = static_cast<std::uint8_t>(wait_ < wait_most ? wait_ + 1 : wait_most) & 0x7f;
    enter(stayed_ ? phase::stays : phase::follows);
  }
  /// Does it want to know what its next run costs?
  [[nodiscard]] bool is_watching() const noexcept { return phase_ != phase::follows && phase_ != phase::stays; }
  /// A run has handled `messages` (at least one) in `cycles`, and a hop to another worker costs `hop` of them.
  void ran(std::uint64_t cycles, std::uint32_t messages, std::uint64_t hop) noexcept;

 private:
  // In this order: from `stays` on it goes home.
  enum class phase : std::uint8_t { follows, follows_warming, follows_timed, stays, stays_warming, stays_timed };
  static constexpr std::uint8_t wait_least = 6, wait_most = 15;

  void enter(phase p) noexcept {
    phase_ = p;
    count_ = 0;
    rates_ = 0;
  }

  float rates_ = 0;         // sum of messages a cycle, over runs
  float follows_cost_ = 0;  // cycles a message
  std::uint16_t count_ = 0;
  phase phase_ = phase::follows;
  std::uint8_t wait_ : 7 = wait_least;
  bool stayed_ : 1 = false;  // what the last comparison said
};

}  // namespace ramie::detail
