// What other threads send a worker to run: woken fibers, residents, new tasks. Many senders, and the owner takes
// all at once (R. K. Treiber, "Systems programming: coping with parallelism", 1986, whose stack needs no protection
// against reuse if it is only ever emptied as a whole). Intrusive, so that a wake-up needs no memory.
//
//  Sender                                   Owner, going to sleep (idle_set.hpp)
//  B1 pushes (release)                      S1 raises `idle`
//  B2 light fence                           S2 heavy fence
//  B3 owner's `idle`? wakes it              S3 inbox not empty? leaves the set again
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/task/ready_item.hpp>

#include <cstdint>

namespace ramie::detail {

class inbox {
 public:
  /// Any thread.
  void push(ready_item item) noexcept {
    std::uintptr_t before = newest_.load(std::memory_order_relaxed);
    do {
      item.set_next(ready_item::from_bits(before));
    } while (!newest_.compare_exchange_weak(before, item.bits(), std::memory_order_release, std::memory_order_relaxed));
  }
  /// All items, oldest first, linked by next(). The owner, or a thief.
  [[nodiscard]] ready_item take_all() noexcept {
    ready_item item = ready_item::from_bits(newest_.exchange(0, std::memory_order_acquire));
    ready_item oldest;
    while (item) {
      const ready_item older = item.next();
      item.set_next(oldest);
      oldest = item;
      item = older;
    }
    return oldest;
  }
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool empty() const noexcept { return newest_.load(std::memory_order_relaxed) == 0; }

 private:
  atomic<std::uintptr_t> newest_{0};
};

}  // namespace ramie::detail
