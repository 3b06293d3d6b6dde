// Which workers sleep, and which one to wake. At most half of the workers search for work at a time; a wake-up is
// sent only when none searches, and a worker that found work while searching passes the search on.
//
//  Publisher                                 Sleeper
//  I1 puts work into a queue                 S1 enters the set, raises `hint`, and marks the fork deques
//  I2 light fence                            S2 heavy fence
//  I3 hint == 0? done                        S3 looks at all queues once more; work? leaves the set again
//  I4 else wakes one (wake_one)              S4 sleeps on its token
//
//  The last searcher, when it has found work while others sleep
//  R1 raises `hint`                          R3 heavy fence
//  R2 marks the fork deques                  R4 looks at all queues, its own too; work? wakes one
//
// I1..I3 and S1..S3 cannot both miss each other, and neither can I1..I3 and R1..R4: a publisher that finds the hint low
// relies on the searcher, which may by then have looked where the work is now, or be content with other work.
//
// A worker that forks does not look at the hint but at its deque's limit (fork_deque.hpp). A mark serves once: the
// worker takes it away, and then wakes one. A worker that raises the hint marks the deques of all workers, its own too,
// so that while the hint is up, each is marked, or its worker is on its way to wake_one. If that wakes nobody because
// another worker searches, then R1 and R2, or S1, are still to come; and since they come under the lock that wake_one
// has held, after the job was pushed and the mark taken away, the new mark stays, and their looks see the job.
//
// Counts and flags (`count`, `hint`, a worker's `idle`) publish nothing: a thread that acts on them takes the lock, or
// has a fence of the pairs above. The token releases and acquires: it carries what a waker has done for the sleeper.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <cstdint>
#include <vector>

namespace ramie::detail {

struct worker;

/// Wakes a worker that sleeps on its token, or in the event source (E3). Any thread.
void set_token(worker& w) noexcept;

class idle_set {
 public:
  void reserve(std::size_t workers) { sleeping_.reserve(workers); }

  /// Nonzero: a worker sleeps and none searches. Any thread.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool hint() const noexcept { return hint_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] std::uint32_t sleeping() const noexcept { return count_.load(std::memory_order_relaxed); }

  /// S1. Ends the worker's search, if it was searching.
  void enter(worker& w) noexcept;
  /// Leaves the set again, as a searcher. False: a waker removed it before, and the token is set or will be.
  bool leave(worker& w) noexcept;
  /// Wakes the worker that fell asleep last, as a searcher, unless one searches already (and not `even_if_searched`);
  /// of the last few it prefers one that shares a cache with `near`. False if none was woken.
  bool wake_one(bool even_if_searched = false, const worker* near = nullptr) noexcept;
  /// Wakes this one, not as a searcher, if it sleeps: something was sent to it. False: it is awake, or on its way.
  bool wake(worker& w) noexcept;
  /// Wakes all: the runtime shuts down.
  void wake_all() noexcept;
  /// Becomes a searcher unless too many are. `workers`: how many are on duty.
  bool begin_search(worker& w, std::uint32_t workers) noexcept;
  /// R1, if it was the last search and a worker sleeps: then true, and R2 to R4 are to follow.
  bool end_search(worker& w) noexcept;

 private:
  void update_hint() noexcept {
    hint_.store(!sleeping_.empty() && searching_ == 0 ? 1 : 0, std::memory_order_relaxed);
    count_.store(static_cast<std::uint32_t>(sleeping_.size()), std::memory_order_relaxed);
  }
  spin_lock lock_;
  std::vector<worker*> sleeping_;
  std::uint32_t searching_ = 0;
  alignas(64) atomic<std::uint32_t> hint_{0};
  atomic<std::uint32_t> count_{0};
};

}  // namespace ramie::detail
