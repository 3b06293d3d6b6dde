// Tasks that were spawned and have not started. The owner takes the newest (depth first keeps memory flat), thieves
// take the oldest, several at a time. Same protocol as fork_deque.hpp, on a ring that grows:
//
//  Owner, push: grow if full; slots[bottom] = t; bottom += 1 (release)
//  Owner, pop: P0 top < bottom? else P4; P1 bottom -= 1 (release), P2 light fence, P3 top <= bottom? taken : P4
//              P4 take `thieves`; is the newest still there? taken : bottom as before, and the deque is empty
//  Owner, alter the newest: P1, P2, P3 top <= bottom? alter it : leave it; bottom += 1 (release)
//  Thief: T1 take `thieves`, T2 n = half of what is there, T3 top += n, T4 heavy fence,
//         T5 b = bottom; keep the tasks below b; top = the end of those, T6 release `thieves`
//
// P0 spares an empty deque the fence. It does not prove that the deque is empty: `top` is too high between T3 and T5,
// and a thief whose T5 read `bottom` before the latest push takes nothing and sets `top` back below that task. Without
// P4 the owner would then go to sleep with the task in its own deque, where thieves and sleepers do not look for a
// single one. Inside `thieves` no thief is between T3 and T5.
//
// P1 releases because a thief may read what it stores, and then takes tasks that were pushed before: that is of
// importance where both fences are those of their own thread. (What a thread stores after a release is not part of it
// any more in C++20. On x86-64 it is the same instruction.)
//
// T5 acquires what push and P1 release: the tasks below `bottom`. T5's store to `top` releases, and push acquires it:
// a slot is not used again before the thief that had it has read it. T2, T3 and P3 order nothing: a thief that backs
// out has touched neither slot nor task, and all other threads that read `top` do so inside `thieves`.
//
// Growing happens inside `thieves`, so thieves never see a ring that goes away. `top` may be too high between T3 and
// T5, by at most steal_most: the owner's test for room leaves that margin.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace ramie::detail {

struct task;

class spawn_deque {
 public:
  static constexpr std::int64_t steal_most = RAMIE_INTERLEAVE ? 2 : 32;  // at once, for one heavy fence; a guess

  spawn_deque() : slots_{std::make_unique<atomic<task*>[]>(first_size)}, size_{first_size} {}

  /// Owner. Returns how many there are now. Throws std::bad_alloc, and then `t` was not added.
  RAMIE_ALWAYS_INLINE std::size_t push(task* t) {
    const std::int64_t b = bottom_.load(std::memory_order_relaxed);
    const std::int64_t n = b - top_.load(std::memory_order_acquire);
    if (n >= size_ - steal_most) [[unlikely]]
      grow();
    slots_[static_cast<std::size_t>(b & (size_ - 1))].store(t, std::memory_order_relaxed);
    bottom_.store(b + 1, std::memory_order_release);
    return static_cast<std::size_t>(n + 1);
  }

  /// Owner: the newest, or null if there is none and active thieves will leave none.
  RAMIE_ALWAYS_INLINE task* pop() noexcept {
    const std::int64_t b = bottom_.load(std::memory_order_relaxed) - 1;
    if (top_.load(std::memory_order_relaxed) > b) return pop_slowly(b);
    bottom_.store(b, std::memory_order_release);
    light_fence();
    if (top_.load(std::memory_order_relaxed) <= b) [[likely]]
      return slots_[static_cast<std::size_t>(b & (size_ - 1))].load(std::memory_order_relaxed);
    return pop_slowly(b);
  }

  /// Owner: calls `change`, while no thief can take `t`, if that is the newest and no thief is near. Whether it did.
  template <class Change>
  RAMIE_ALWAYS_INLINE bool alter_newest(const task* t, Change&& change) noexcept {
    const std::int64_t b = bottom_.load(std::memory_order_relaxed) - 1;
    if (top_.load(std::memory_order_relaxed) > b ||
        slots_[static_cast<std::size_t>(b & (size_ - 1))].load(std::memory_order_relaxed) != t)
      return false;
    bottom_.store(b, std::memory_order_release);
    light_fence();
    const bool mine = top_.load(std::memory_order_relaxed) <= b || RAMIE_PLANT(alter_newest_unchecked);
    if (mine) [[likely]]
      change();
    bottom_.store(b + 1, std::memory_order_release);
    return mine;
  }

  /// Owner: the oldest, or null. With a test: also null if the oldest fails it.
  task* pop_oldest(bool (*test)(const task& t) = nullptr) noexcept;

  /// Another thread: at most half, oldest first, into `out` (room for steal_most). Returns how many.
  std::size_t steal(task** out) noexcept;

  /// Any thread; may be stale at once, and too small while a thief is between T3 and T5.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::int64_t n = bottom_.load(std::memory_order_relaxed) - top_.load(std::memory_order_relaxed);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

 private:
  friend struct debug_access;
  static constexpr std::int64_t first_size = RAMIE_INTERLEAVE ? 4 : 256;  // a guess

  RAMIE_COLD task* pop_slowly(std::int64_t b) noexcept;
  RAMIE_COLD void grow();

  atomic<std::int64_t> bottom_{0};
  atomic<std::int64_t> top_{0};
  std::unique_ptr<atomic<task*>[]> slots_;
  std::int64_t size_;
  spin_lock thieves_;
};

}  // namespace ramie::detail
