// The ready queue of a worker: fibers and residents that are ready, first in first out. The owner adds at the tail and
// takes from the head under a biased lock (a handful of plain instructions); thieves take half from the head.
//
// A ring of fixed size, and behind it an intrusive list for what does not fit: a wake-up must never fail for lack of
// memory. Order is kept: while the list is not empty all additions go to it, until the ring has taken it up. Each take
// from the ring at once moves one item up from the list, so while there is a list the ring is full.
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
      tail_.store(tail + 1, std::memory_order_release);
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
        head_.store(head + 1, std::memory_order_release);
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
        head_.store(head + 1, std::memory_order_release);
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
      head_.store(head + static_cast<std::uint32_t>(taken), std::memory_order_release);
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
    const std::uint32_t head = head_.load(std::memory_order_acquire);  // first: never more than tail
    return tail_.load(std::memory_order_acquire) - head;
  }

 private:
  friend struct debug_access;
  std::size_t add(ready_item item) noexcept {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    const std::uint32_t n = tail - head_.load(std::memory_order_relaxed);
    if (n >= ring_size) [[unlikely]]
      return push_overflow(item);
    ring_[tail % ring_size] = item;
    tail_.store(tail + 1, std::memory_order_release);
    return std::size_t{n} + 1;
  }

  RAMIE_ALWAYS_INLINE ready_item take() noexcept {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_relaxed)) return {};
    const ready_item item = ring_[head % ring_size];
    head_.store(head + 1, std::memory_order_release);
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
    tail_.store(tail + 1, std::memory_order_release);
  }

  biased_lock lock_;
  atomic<std::uint32_t> head_{0};  // both written inside the lock only
  atomic<std::uint32_t> tail_{0};
  ready_item overflow_first_;
  ready_item overflow_last_;
  std::array<ready_item, ring_size> ring_{};
};

}  // namespace ramie::detail
