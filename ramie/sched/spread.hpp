// Are ready fibers and actors better spread over the workers, or kept together on one?
//
// New tasks and fork jobs are spread, unless that is found to be in vain (theft.hpp): nobody talks to them yet. What is
// ready again after a wait is another matter. If it computes for itself, two workers do twice as much; if it talks,
// each message between two workers costs some hundred nanoseconds that it does not cost within one. Where the balance
// lies depends on the program and on the machine, so it is tried, as the .NET thread pool tries numbers of threads (J.
// L. Hellerstein, V. Morrison, E. Eilebrecht, "Applying control theory in the real world", 2009): the monitor looks
// once a millisecond at what gets done, dispatches and locks taken, and when there has been a backlog for some time, it
// has the other way tried for three milliseconds (longer while what has moved settles). What does more stays; the next
// trial comes after twice the time.
#pragma once

#include <cstdint>

namespace ramie::detail {

/// The decision alone, without workers. Used by the monitor's thread only.
class spread_control {
 public:
  enum class mode : std::uint8_t {
    undecided,  // nothing has been tried: workers keep what they have, and take nothing that is ready
    together,   // one worker runs all that is ready
    spread,     // idle workers take half of what others have ready
  };

  struct observation {
    std::int64_t now_ns;
    std::uint64_t progress;  // dispatches and locks taken so far, of all workers
    bool backlog;            // some worker has two or more ready
    bool alone;              // no more than one worker is awake
    bool other_work;         // new tasks or fork jobs wait, which change the figures by themselves
    bool settling;           // many locks changed hands: what moved to another worker pays for that once
  };

  /// Once a round. Returns what is to be from now on.
  mode observe(const observation& seen) noexcept;
  [[nodiscard]] mode now() const noexcept { return mode_; }

 private:
  enum class phase : std::uint8_t { settled, warming, measuring };
  static constexpr std::int64_t wait_least_ns = 4'000'000;
  static constexpr std::int64_t wait_most_ns = 1'000'000'000;
  static constexpr int rounds_before = 2;      // of backlog, and of figures, before a trial
  static constexpr int rounds_measured = 2;    // of a trial, after one to warm up
  static constexpr int rounds_settling = 16;   // at most, before those
  static constexpr int rounds_forgotten = 50;  // without backlog: start anew

  void begin_trial(bool alone) noexcept;
  void end_trial(std::int64_t now_ns, double rate) noexcept;

  mode mode_ = mode::undecided;
  mode before_ = mode::undecided;  // while a trial runs
  phase phase_ = phase::settled;
  int rounds_ = 0;    // in this phase
  int backlog_ = 0;   // rounds with one, in a row
  int without_ = 0;   // rounds without one, in a row
  double usual_ = 0;  // progress a nanosecond, while settled
  double trial_ = 0;  // sum of the same, while measuring
  std::int64_t last_ns_ = 0;
  std::uint64_t last_progress_ = 0;
  std::int64_t wait_ns_ = wait_least_ns;
  std::int64_t next_ns_ = 0;
};

}  // namespace ramie::detail
