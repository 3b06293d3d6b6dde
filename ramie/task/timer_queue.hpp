// A worker's timers: a 4-ary heap of (deadline, node), nodes on the waiters' stacks, or in objects. Start and cancel
// take O(log n).
//
// The owner adds; others announce it (sleeping.published_to). The thread that finds timers due fires them: the owner,
// or the monitor when the owner is stalled. A node that fires is removed under the lock and not touched afterwards, so
// its waiter may go away as soon as it runs.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ramie::detail {

class timer_queue;

/// Wakes `waiter`, or calls `call` if that is set: then the node belongs to the callee, which may free or re-add it.
struct timer_node {
  waiter_ref waiter;
  void (*call)(timer_node& fired) noexcept = nullptr;  // short; does not suspend; on the thread that fires
  timer_queue* queue = nullptr;
  std::size_t place = absent;
  static constexpr std::size_t absent = std::numeric_limits<std::size_t>::max();
};

class timer_queue {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  /// Starts a timer. Deadlines are nanoseconds of the steady clock. Throws std::bad_alloc. Any thread.
  void add(timer_node& node, std::int64_t deadline_ns);
  /// True if the timer was still there, and now is not; false if it fired. Any thread.
  bool remove(timer_node& node) noexcept;
  /// Wakes all that are due. Returns how many. Any thread.
  std::size_t fire(std::int64_t now_ns) noexcept;
  /// Deadline of the earliest timer, or `never`. Any thread.
  [[nodiscard]] std::int64_t next_ns() const noexcept { return next_ns_.load(std::memory_order_relaxed); }
  /// How many have been started and have not fired. Any thread.
  [[nodiscard]] std::size_t size() noexcept;

 private:
  struct entry {
    std::int64_t deadline_ns;
    timer_node* node;
  };
  void place(std::size_t at, entry e) noexcept;
  void up(std::size_t at, entry e) noexcept;
  void down(std::size_t at, entry e) noexcept;
  void take_out(std::size_t at) noexcept;

  spin_lock lock_;
  atomic<std::int64_t> next_ns_{never};
  std::vector<entry> heap_;
};

[[nodiscard]] inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(os_now().time_since_epoch()).count();
}

/// Deadline in nanoseconds for a time point, saturating.
[[nodiscard]] inline std::int64_t to_ns(steady::time_point t) noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
}

}  // namespace ramie::detail
