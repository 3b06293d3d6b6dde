// Finds out that a runtime waits for itself, or that locks of the C library hold all of its workers. deadlock.cpp says
// when that is so.
#pragma once

#include <cstdint>

namespace ramie::detail {

class scheduler;

/// Tells of the deadlock and ends the process.
using deadlock_reporter = void (*)(const scheduler& of) noexcept;
/// Schedulers made from now on look for deadlocks, if their options say so, and report them by `known`. Any thread.
void set_deadlock_reporter(deadlock_reporter known) noexcept;

/// Tells what holds the workers of a runtime that have all stood still for `since_ns`. False if it found nothing to
/// tell.
using stall_reporter = bool (*)(const scheduler& of, std::int64_t since_ns) noexcept;
/// The same for these.
void set_stall_reporter(stall_reporter known) noexcept;

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

 private:
  std::int64_t asleep_ns_ = 0;       // last time
  std::int64_t stuck_since_ns_ = 0;  // 0: it is not
  std::int64_t look_again_ns_ = 0;
};

}  // namespace ramie::detail
