// Recordings: whether the workers of one scheduler are observed, and what was seen.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/task/ready_item.hpp>
#include <ramie/task/timer_queue.hpp>
#include <ramie/worker/observer.hpp>
#include <ramie/worker/observing.hpp>
#include <ramie/worker/roster.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ramie::detail {

class recorder {
 public:
  explicit recorder(worker_roster& of) noexcept : workers_{of} {}
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  /// Has the workers observed from now on. False if that is so already. Throws std::bad_alloc. Any thread.
  bool start(const recording_options& options);
  /// Ends that. What was seen stays until the next `start`. Any thread.
  void stop() noexcept;
  /// What was seen in the latest recording, worker by worker, and last by all other threads: visit(context, number,
  /// observer), with the recorder's lock held. Any thread.
  void for_each(void (*visit)(void* context, std::size_t number, const observer& seen), void* context);

  /// Adds `w` to the workers; it is observed if they are. Throws std::bad_alloc, and then did nothing.
  void admit(worker& w);

  /// `item` was made ready by a thread that is no worker.
  RAMIE_ALWAYS_INLINE void woken_outside(ready_item item) noexcept {
    if (observes_outside_.load(std::memory_order_relaxed)) [[unlikely]]
      observe_outside(outside_, item);
  }

  /// Of the processor's clock, as measured since the start. Takes 100 us at first. Any thread.
  [[nodiscard]] double cycles_per_us() const noexcept;

 private:
  void observe(worker& w);  // under the lock; throws std::bad_alloc

  worker_roster& workers_;
  const std::uint64_t started_cycles_ = cycles();
  const std::int64_t started_ns_ = now_ns();
  outside_observer outside_;
  std::atomic<bool> observes_outside_{false};
  std::mutex lock_;
  // Under the lock:
  bool runs_ = false;
  recording_options options_;
  std::unique_ptr<ready_times> ready_times_;
  std::vector<std::unique_ptr<observer>> earlier_;  // of earlier recordings: a worker may not have noticed their end
};

}  // namespace ramie::detail
