// What is recorded about a worker while it is observed: events for a trace, times for histograms.
//
// A worker has an observer or none. Each observed place costs a load and a branch when there is none. Only the
// worker writes to its observer; others read:
//  O1 The worker writes an event into the ring, in the slot of the oldest, and then raises `written` (release).
//  O2 A reader takes the observer away from the worker, and reads the events up to `written` (acquire), except the
//     oldest few: one event may still be on its way into the ring.
// Observers are not freed before their scheduler.
#pragma once

#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/task.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>

namespace ramie::detail {

enum class trace_kind : std::uint8_t {
  go,       // the worker leaves `from` (null: its loop) and continues with `task` (null: its loop)
  begin,    // `task` begins, in place; only if every task is recorded
  end,      // `task` has ended; likewise
  spawn,    // `task` was spawned by `from`; likewise
  wake,     // `task` was made ready by `from`
  steal,    // `count` items of worker `task` (its number)
  sleep,    // nothing to do
  wake_up,  // awake again
  message,  // one was sent to `task`; `reason` and `count` are the name of its type
};

struct trace_event {
  std::uint64_t at = 0;  // cycles
  std::uintptr_t task = 0;
  std::uintptr_t from = 0;
  const task_type* type = nullptr;  // of `task`; go: of `from`
  const char* reason = nullptr;     // go: what `from` waits for; null: it yields, or has ended
  std::source_location where;       // and where
  std::uint32_t dispatches = 0;     // of the worker till now, low bits
  std::uint32_t count = 0;
  trace_kind kind = trace_kind::go;
  std::array<char, 23> name{};  // likewise, cut
};

class trace_ring {
 public:
  explicit trace_ring(std::size_t events) : events_{std::make_unique<trace_event[]>(events)}, size_{events} {}
  trace_event& next() noexcept { return events_[written_.load(std::memory_order_relaxed) % size_]; }
  void publish() noexcept { written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t oldest() const noexcept {
    constexpr std::uint64_t margin = 8;
    const std::uint64_t n = written();
    return n > size_ - margin ? n - (size_ - margin) : 0;
  }
  [[nodiscard]] const trace_event& at(std::uint64_t i) const noexcept { return events_[i % size_]; }

 private:
  std::unique_ptr<trace_event[]> events_;
  std::size_t size_;
  std::atomic<std::uint64_t> written_{0};
};

/// Counts by powers of two: counts[i] of what took 2^i to 2^(i+1) ns.
struct time_counts {
  std::array<std::atomic<std::uint64_t>, 48> counts{};
  std::atomic<std::uint64_t> sum{0};
  void add(std::uint64_t value) noexcept {
    const auto i = value == 0 ? 0u : 63u - static_cast<unsigned>(__builtin_clzll(value));
    auto& count = counts[i < counts.size() ? i : counts.size() - 1];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
};

/// The time when an item was made ready, until it runs. A small table; of two items in one slot one is not measured.
class ready_times {
 public:
  void put(const void* who, std::uint64_t at) noexcept {
    slot& s = slot_of(who);
    s.at.store(at, std::memory_order_relaxed);
    s.who.store(who, std::memory_order_release);
  }
  /// 0: not known.
  [[nodiscard]] std::uint64_t take(const void* who) noexcept {
    slot& s = slot_of(who);
    if (s.who.load(std::memory_order_acquire) != who) return 0;
    const std::uint64_t at = s.at.load(std::memory_order_relaxed);
    s.who.store(nullptr, std::memory_order_relaxed);
    return at;
  }

 private:
  struct slot {
    std::atomic<const void*> who{nullptr};
    std::atomic<std::uint64_t> at{0};
  };
  slot& slot_of(const void* who) noexcept {
    return slots_[(reinterpret_cast<std::uintptr_t>(who) >> 6) * 0x9e3779b97f4a7c15u >> 52];
  }
  std::array<slot, 4096> slots_{};
};

struct recording_options {
  std::size_t events = 0;   // kept for each worker; 0: no trace
  bool every_task = false;  // begin, end and spawn of each fiber too
  bool histograms = false;
};

struct observer {
  std::unique_ptr<trace_ring> ring;  // null: no trace
  bool every_task = false;           // begin, end and spawn as well
  ready_times* ready = nullptr;      // null: no histograms
  std::uint64_t went_at = 0;         // the last switch
  std::uint64_t ns_per_cycle = 0;    // times 2^32
  time_counts run, wait;
};

/// Wake-ups by threads that are not workers.
struct outside_observer {
  spin_lock lock;
  observer seen;
};

}  // namespace ramie::detail
