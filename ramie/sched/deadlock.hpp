// Finds out that a runtime waits for itself. deadlock.cpp says when that is so.
#pragma once

#include <cstdint>

namespace ramie::detail {

class scheduler;

/// Tells of the deadlock and ends the process.
using deadlock_reporter = void (*)(const scheduler& of) noexcept;
/// Schedulers made from now on look for deadlocks, if their options say so, and report them by `known`. Any thread.
void set_deadlock_reporter(deadlock_reporter known) noexcept;

/// Of one scheduler's monitor; its thread alone.
class deadlock_detector {
 public:
  /// `of` has been idle for so long that its monitor is about to sleep. Reports a deadlock if that is one. Returns for
  /// how many nanoseconds it may sleep; negative: until it is woken. `still_idle(context)`: it has not been woken
  /// since.
  [[nodiscard]] std::int64_t before_sleep(scheduler& of, bool (*still_idle)(const void* context), const void* context);
  /// A worker is awake again.
  void reset() noexcept { asleep_ns_ = 0; }

 private:
  std::int64_t asleep_ns_ = 0;  // last time
};

}  // namespace ramie::detail
