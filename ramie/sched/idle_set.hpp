// Which workers sleep, and who is to be woken. At most half of the workers search for work at a time; a wake-up goes
// out only when nobody searches, and a worker that found work while searching hands the search on.
//
//  Publisher                                 Sleeper
//  I1 puts work into a queue                 S1 enters the set, raises `hint` (and takes away the others' fork limit)
//  I2 light fence                            S2 heavy fence
//  I3 hint == 0? done                        S3 looks at all queues once more; work? leaves the set again
//  I4 else wakes one (wake_one)              S4 sleeps on its token
//
// I1..I3 and S1..S3 cannot both miss each other.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/spin_lock.hpp>

#include <cstdint>
#include <vector>

namespace ramie::detail {

struct worker;

class idle_set {
 public:
  void reserve(std::size_t workers) { sleeping_.reserve(workers); }

  /// Nonzero: somebody sleeps and nobody searches. Any thread.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool hint() const noexcept { return hint_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] std::uint32_t sleeping() const noexcept { return count_.load(std::memory_order_acquire); }

  /// S1. Ends the worker's search, if it was searching.
  void enter(worker& w) noexcept;
  /// Takes itself out again, as a searcher. False: a waker did so before, and the token is set or will be.
  bool leave(worker& w) noexcept;
  /// Wakes the worker that fell asleep last, as a searcher, unless one searches already or `even_if_searched`; of the
  /// last few one that shares a cache with `near`, if there is any. False if nobody was woken.
  bool wake_one(bool even_if_searched = false, const worker* near = nullptr) noexcept;
  /// Wakes this one, not as a searcher, if it sleeps: something was sent to it.
  void wake(worker& w) noexcept;
  /// Wakes all: the runtime shuts down.
  void wake_all() noexcept;
  /// Becomes a searcher unless too many are. `workers`: how many are on duty.
  bool begin_search(worker& w, std::uint32_t workers) noexcept;
  /// Ends the search. True if it was the last one and somebody sleeps: then hand it on where more work is in sight.
  bool end_search(worker& w) noexcept;

 private:
  void update_hint() noexcept {
    hint_.store(!sleeping_.empty() && searching_ == 0 ? 1 : 0, std::memory_order_relaxed);
    count_.store(static_cast<std::uint32_t>(sleeping_.size()), std::memory_order_release);
  }
  spin_lock lock_;
  std::vector<worker*> sleeping_;
  std::uint32_t searching_ = 0;
  alignas(64) atomic<std::uint32_t> hint_{0};
  atomic<std::uint32_t> count_{0};
};

}  // namespace ramie::detail
