// Are ready fibers and actors better spread over the workers, or kept together on one?
//
// New tasks and fork jobs are spread, unless that is found not to pay (theft_judge.hpp): nothing communicates with them
// yet. What is ready again after a wait is another matter. If it computes for itself, two workers do twice as much; if
// it talks, each message between two workers costs some hundred nanoseconds that it does not cost within one. Where the
// balance lies depends on the program and on the machine, so it is tried, as the .NET thread pool tries numbers of
// threads (J. L. Hellerstein, V. Morrison, E. Eilebrecht, "Applying control theory in the real world", 2009): the
// monitor looks once a millisecond at what gets done, dispatches and locks taken, and when there has been a backlog for
// some time, it has another way tried for some milliseconds (longer while what has moved settles). There are three:
//
//   together   one worker runs all that is ready
//   at_home    what is woken goes to the worker that ran it last; a worker that is short of work for some time takes a part
//   spread     what is woken stays with its waker; idle workers take a half at once
//
// The way that gets most done stays. The others are tried again later: after twice the time if they did less, after
// eight times if they did much less. Fibers that hardly wake each other across workers lose nothing by being spread, so
// they are not gathered for a trial: thousands of actors take many milliseconds to move to and fro.
#pragma once

#include <ramie/base/atomic.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

struct worker;

/// The decision alone, without workers. Used by the monitor's thread only.
class spread_control {
 public:
  /// The monitor looks this often while a worker is awake. A guess.
  static constexpr std::int64_t round_ns = 1'000'000;

  enum class mode : std::uint8_t { together, at_home, spread, undecided };

  struct observation {
    std::int64_t now_ns;
    std::uint64_t progress;  // dispatches and locks taken so far, of all workers
    std::uint64_t crossed;   // wake-ups from one worker to another so far, and locks that changed hands
    bool backlog;            // some worker has two or more ready
    bool alone;              // no more than one worker is awake
    bool other_work;         // new tasks or fork jobs wait, which change the figures by themselves
    bool settling;  // much was moved, or many locks changed hands: what moved to another worker pays for that once
  };

  /// Without `homes`, `at_home` is never tried.
  explicit spread_control(bool homes = true) noexcept : homes_{homes} {}

  /// Once a round. Returns what is to be from now on; undecided: workers keep what they have, and take nothing that is
  /// ready.
  mode observe(const observation& seen) noexcept;
  [[nodiscard]] mode now() const noexcept { return mode_; }

 private:
  enum class phase : std::uint8_t { settled, warming, measuring };
  struct candidate {
    std::int64_t wait_ns = wait_least_ns;
    std::int64_t next_ns = 0;
  };
  static constexpr std::size_t modes = 3;
  // Guesses, but for rounds_settling: twenty rings of fifty actors take 4 ms to move, on two processors.
  static constexpr std::int64_t wait_least_ns = 4'000'000;  // until a way that lost is tried again
  static constexpr std::int64_t wait_most_ns = 1'000'000'000;
  static constexpr int rounds_measured = 2;    // before a trial, and of one, after a round to warm up
  static constexpr int rounds_settling = 16;   // at most, before those
  static constexpr int rounds_forgotten = 50;  // without backlog: start again

  [[nodiscard]] mode next_trial(const observation& seen) const noexcept;
  void begin_trial(mode m) noexcept;
  void end_trial(const observation& seen, double rate) noexcept;
  mode break_off() noexcept;
  mode forget(const observation& seen) noexcept;
  candidate& of(mode m) noexcept { return candidates_[static_cast<std::size_t>(m)]; }

  bool homes_;
  mode mode_ = mode::undecided;
  mode before_ = mode::undecided;  // while a trial runs
  mode is_as_ = mode::undecided;   // the same: what `before_` amounted to
  phase phase_ = phase::settled;
  bool apart_ = false;  // in the latest round there were hardly any wake-ups across workers
  int rounds_ = 0;      // in this phase
  int backlog_ = 0;     // rounds with one, in a row
  int without_ = 0;     // rounds without one, in a row
  double usual_ = 0;    // progress a nanosecond, while settled
  double trial_ = 0;    // sum of the same, while measuring
  std::int64_t last_ns_ = 0;
  std::uint64_t last_progress_ = 0;
  std::uint64_t last_crossed_ = 0;
  std::array<candidate, modes> candidates_{};
};

/// The way that is in force, as workers and wakers read it: any thread. Set by one thread at a time.
class spread_way {
 public:
  /// `one`: the worker that runs all that is ready, if that is kept together.
  void set(spread_control::mode m, worker* one) noexcept {
    at_home_.store(m == spread_control::mode::at_home, std::memory_order_relaxed);
    pairs_move_.store(m == spread_control::mode::at_home || m == spread_control::mode::spread,
                      std::memory_order_relaxed);
    together_.store(m == spread_control::mode::together ? one : nullptr, std::memory_order_relaxed);
  }
  [[nodiscard]] bool at_home() const noexcept { return at_home_.load(std::memory_order_relaxed); }
  /// Spread or at home: two ready items on one worker are worth a wake-up, whatever they take.
  [[nodiscard]] bool pairs_move() const noexcept { return pairs_move_.load(std::memory_order_relaxed); }
  /// The worker that runs all that is ready; null: there is none.
  [[nodiscard]] worker* together() const noexcept { return together_.load(std::memory_order_relaxed); }

 private:
  atomic<bool> at_home_{false};
  atomic<bool> pairs_move_{false};
  atomic<worker*> together_{nullptr};
};

}  // namespace ramie::detail
