// Finds out that a runtime waits for itself, or that locks of the C library hold all of its workers. deadlock.cpp says
// when that is so.
#pragma once

#include <cstdint>

namespace ramie::detail {

class scheduler;

/// What is told of a scheduler, by the floors that can describe fibers.
struct reporters {
  /// Of a deadlock; ends the process. The monitor's thread.
  void (*deadlock)(const scheduler& of) noexcept;
  /// It was asked to end, and for `end_is_slow_ns` nothing of it has ended. The thread that asked.
  void (*slow_end)(scheduler& of) noexcept;
  /// Looks for fibers that wait for each other. The monitor's thread, about once in `circles_every_ns`.
  void (*circles)(scheduler& of) noexcept;
  /// Tells what holds the workers, which have all stood still for `since_ns`. False if it found nothing to tell. The
  /// monitor's thread.
  bool (*stall)(const scheduler& of, std::int64_t since_ns) noexcept;
  /// Writes what a signal handler has asked for, if it has. The monitor's thread, at each of its rounds.
  void (*requested)() noexcept;
};
/// Guesses.
inline constexpr std::int64_t end_is_slow_ns = 1'000'000'000;
inline constexpr std::int64_t circles_every_ns = 1'000'000'000;
/// `known` lives for ever. Any thread.
void set_reporters(const reporters& known) noexcept;
/// Null: none are known.
[[nodiscard]] const reporters* known_reporters() noexcept;

/// Of one scheduler's monitor; its thread alone.
class deadlock_detector {
 public:
  /// `of` has been idle for so long that its monitor is about to sleep. Reports a deadlock if that is one. Returns for
  /// how many nanoseconds it may sleep; negative: until it is woken. `still_idle(context)`: it has not been woken
  /// since.
  [[nodiscard]] std::int64_t before_sleep(scheduler& of, bool (*still_idle)(const void* context), const void* context);
  /// One look of the monitor. `stuck`: work waits, every worker is stalled, and no more can be called. Where that
  /// lasts, tells once what holds them.
  void look_at_stall(const scheduler& of, bool stuck, std::int64_t now);
  /// A worker is awake again.
  void reset() noexcept { asleep_ns_ = 0; }
  /// Has reporters::circles called when it is time: once in `circles_every_ns` at most, and for half a per cent of the
  /// time at most.
  void look_for_circles(scheduler& of);

 private:
  std::int64_t circles_next_ns_ = 0;
  std::int64_t asleep_ns_ = 0;       // last time
  std::int64_t stuck_since_ns_ = 0;  // 0: it is not
  std::int64_t look_again_ns_ = 0;
};

}  // namespace ramie::detail
