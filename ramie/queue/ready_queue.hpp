// The ready queue of a worker: fibers and residents that are ready, first in first out. The owner adds at the tail and
// takes from the head under a biased lock (a handful of plain instructions); thieves take half from the head.
//
// A ring of fixed size, and behind it an intrusive list for what does not fit: a wake-up must never fail for lack of
// memory. Order is kept: while the list is not empty all additions go to it, until the ring has taken it up. Each take
// from the ring at once moves one item up from the list, so while there is a list the ring is full.
//
// Ring, head, tail and list are written inside the lock, which orders them (O5 and T4 of biased_lock.hpp). Outside,
// head and tail are read by size() alone, as numbers; so they carry no order of their own, and the difference of an old
// tail and a newer head, which would be negative, counts as none: what was there at that tail has been taken.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/queue/biased_lock.hpp>
#include <ramie/task/ready_item.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace ramie::detail {

class ready_queue {
 public:
  static constexpr std::size_t ring_size = RAMIE_INTERLEAVE ? 4 : 512;  // a guess; larger rings only cost cache
  // Bounds how long the owner may be kept out; a guess.
  static constexpr std::size_t steal_most = RAMIE_INTERLEAVE ? 3 : 128;
  // For prefetch_next: the frames of an echo server from its read on. For others a guess.
  static constexpr std::size_t frames_size = 640;

  /// Owner. Returns how many are queued now.
  std::size_t push(ready_item item) noexcept {
    return lock_.as_owner([&]() RAMIE_LAMBDA_INLINE { return add(item); });
  }

  /// The same if it takes only a few instructions. False: nothing was done; call push.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool try_push(ready_item item) noexcept {
    if (!lock_.try_enter()) [[unlikely]]
      return false;
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    const bool room = tail - head_.load(std::memory_order_relaxed) < ring_size;
    if (room) [[likely]] {
      ring_[tail % ring_size] = item;
      tail_.store(tail + 1, std::memory_order_relaxed);
    }
    lock_.leave();
    return room;
  }

  /// Owner. Empty if there is none.
  RAMIE_ALWAYS_INLINE ready_item pop() noexcept {
    if (tail_.load(std::memory_order_relaxed) == head_.load(std::memory_order_relaxed)) return {};
    return lock_.as_owner([&]() RAMIE_LAMBDA_INLINE { return take(); });
  }

  /// The same if a fiber is next and nothing else is to be done; null if a resident is next, the queue is empty, or it
  /// takes more than a few instructions: then call pop_stack.
  RAMIE_ALWAYS_INLINE stack* try_pop_stack() noexcept {
    stack* s = nullptr;
    if (!lock_.try_enter()) [[unlikely]]
      return s;
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    const std::uint32_t n = tail_.load(std::memory_order_relaxed) - head;
    if (n - 1 < ring_size - 1) [[likely]] {  // neither empty nor full, so there is no list
      const ready_item item = ring_[head % ring_size];
      if (!item.is_resident()) [[likely]] {
        head_.store(head + 1, std::memory_order_relaxed);
        s = item.as_stack();
      }
    }
    lock_.leave();
    return s;
  }

  /// As try_pop_stack, for residents.
  RAMIE_ALWAYS_INLINE task* try_pop_resident() noexcept {
    task* t = nullptr;
    if (!lock_.try_enter()) [[unlikely]]
      return t;
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    const std::uint32_t n = tail_.load(std::memory_order_relaxed) - head;
    if (n - 1 < ring_size - 1) [[likely]] {  // neither empty nor full, so there is no list
      const ready_item item = ring_[head % ring_size];
      if (item.is_resident()) [[likely]] {
        head_.store(head + 1, std::memory_order_relaxed);
        t = item.as_resident();
      }
    }
    lock_.leave();
    return t;
  }

  /// The same if a fiber is next; null if a resident is, or the queue is empty.
  stack* pop_stack() noexcept {
    if (tail_.load(std::memory_order_relaxed) == head_.load(std::memory_order_relaxed)) return nullptr;
    return lock_.as_owner([&]() RAMIE_LAMBDA_INLINE -> stack* {
      const std::uint32_t head = head_.load(std::memory_order_relaxed);
      if (head == tail_.load(std::memory_order_relaxed) || ring_[head % ring_size].is_resident()) return nullptr;
      return take().as_stack();
    });
  }

  /// Owner: brings what the next fiber touches first nearer to the processor. A fiber that waited outside of the
  /// process is cold by the time it runs: the kernel has worked meanwhile.
  RAMIE_ALWAYS_INLINE void prefetch_next() noexcept {
    if (!lock_.try_enter()) [[unlikely]]
      return;
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    const std::uint32_t n = tail_.load(std::memory_order_relaxed) - head;
    if (n > 1 && n <= ring_size) __builtin_prefetch(reinterpret_cast<void*>(ring_[(head + 1) % ring_size].bits()), 1);
    if (n > 0 && !ring_[head % ring_size].is_resident()) {
      const stack& s = *ring_[head % ring_size].as_stack();
      __builtin_prefetch(s.occupant.load(std::memory_order_relaxed), 1);
      for (std::size_t i = 0; i < frames_size; i += 64) __builtin_prefetch(static_cast<const char*>(s.saved.sp) + i, 1);
    }
    lock_.leave();
  }

  /// Another thread: at most half, and `most`, oldest first, into `out` (room for steal_most). What must stay is passed
  /// over, and keeps its order. Returns how many.
  std::size_t steal_half(ready_item* out, std::size_t most = steal_most) noexcept {
    std::size_t taken = 0;
    if (size() == 0) return 0;
    lock_.try_as_thief([&] {
      const std::uint32_t head = head_.load(std::memory_order_relaxed);
      const auto n = static_cast<std::uint32_t>(size());
      const std::size_t want = std::min({(std::size_t{n} + 1) / 2, most, steal_most});
      std::uint32_t seen = 0;
      for (; taken < want && seen < n; ++seen)
        if (const ready_item item = ring_[(head + seen) % ring_size]; is_movable(item)) out[taken++] = item;
      if (taken == 0) return;
      if (taken != seen) close_gaps(head, seen);
      head_.store(head + static_cast<std::uint32_t>(taken), std::memory_order_relaxed);
      for (std::size_t i = 0; i < taken && overflow_first_; ++i) refill();
    });
    return taken;
  }

  /// Another thread: is there anything that another worker may run? True, too, if that cannot be told now.
  [[nodiscard]] bool has_movable() noexcept {
    if (size() == 0) return false;
    bool found = true;
    lock_.try_as_thief([&] {
      const std::uint32_t head = head_.load(std::memory_order_relaxed);
      const auto n = static_cast<std::uint32_t>(size());
      std::uint32_t i = 0;
      while (i < n && !is_movable(ring_[(head + i) % ring_size])) ++i;
      found = i < n || overflow_first_;
    });
    return found;
  }

  /// Any thread; may be stale at once. Does not count the overflow list, which exists only while the ring is full.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::uint32_t n = tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_relaxed);
    return static_cast<std::int32_t>(n) > 0 ? n : 0;
  }

 private:
  friend struct debug_access;
  std::size_t add(ready_item item) noexcept {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    const std::uint32_t n = tail - head_.load(std::memory_order_relaxed);
    if (n >= ring_size) [[unlikely]]
      return push_overflow(item);
    ring_[tail % ring_size] = item;
    tail_.store(tail + 1, std::memory_order_relaxed);
    return std::size_t{n} + 1;
  }

  RAMIE_ALWAYS_INLINE ready_item take() noexcept {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_relaxed)) return {};
    const ready_item item = ring_[head % ring_size];
    head_.store(head + 1, std::memory_order_relaxed);
    if (overflow_first_) [[unlikely]]
      refill();
    return item;
  }

  RAMIE_COLD std::size_t push_overflow(ready_item item) noexcept {
    item.set_next({});
    if (!overflow_first_) overflow_first_ = item;
    else overflow_last_.set_next(item);
    overflow_last_ = item;
    return ring_size;
  }

  // Of the first `seen`, what is movable was taken: what must stay moves up to those that were not looked at.
  RAMIE_COLD void close_gaps(std::uint32_t head, std::uint32_t seen) noexcept {
    std::uint32_t to = head + seen;
    for (std::uint32_t from = to; from-- != head;)
      if (const ready_item item = ring_[from % ring_size]; !is_movable(item)) ring_[--to % ring_size] = item;
  }

  // The ring is not full any more.
  RAMIE_COLD void refill() noexcept {
    const ready_item item = overflow_first_;
    overflow_first_ = item.next();
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    ring_[tail % ring_size] = item;
    tail_.store(tail + 1, std::memory_order_relaxed);
  }

  biased_lock lock_;
  atomic<std::uint32_t> head_{0};  // both written inside the lock only
  atomic<std::uint32_t> tail_{0};
  ready_item overflow_first_;
  ready_item overflow_last_;
  std::array<ready_item, ring_size> ring_{};
};

}  // namespace ramie::detail
