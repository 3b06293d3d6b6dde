// Events from outside the process's memory (sockets, pipes, children): what a worker checks besides the queues,
// and what it sleeps on when there is nothing to run. A runtime gets its source when a fiber first waits for such an
// event; until then this costs a null pointer.
//
// At most one thread uses the source at a time: it holds the *role*.
//  E1 A worker that runs out of work, searches, or is at a tick, takes the role if it is free, polls, and releases it.
//  E2 A worker about to sleep enters the idle set (idle_set.hpp S1 to S3), and then tries to take the role. With it, it
//     sets `sleeps_in`, issues a full fence, looks at its wake token once more, and sleeps in the source.
//     Without it, it sleeps on the token's futex.
//  E3 A waker sets the token, issues a full fence, and looks at `sleeps_in`: if set, it interrupts the source,
//     else it wakes the futex. E2 and E3 are a Dekker pair: either the sleeper sees the token, or the waker the flag.
//     `sleeps_in` is released and acquired: the waker uses a source that it may never have seen installed.
//     An interrupt that comes too early or too late makes one sleep end spuriously.
//  E4 The sleeper leaves the idle set before it makes anything ready, so what it makes ready wakes others by the usual
//     rules.
//  E5 If all workers sleep, one sleeps in the source: each tries for the role last, and if another holds it,
//     that one sleeps in the source or is awake.
//  E6 While workers are awake but none polls (all compute), the monitor takes the role once a millisecond. The last
//     worker may fall asleep without the role then. So once the monitor has given it back, it wakes a sleeper, which tries
//     again: one that entered the idle set before is seen there, and one that enters later finds the role free, for both
//     take the set's lock.
#pragma once

#include <ramie/base/atomic.hpp>

#include <cstdint>

namespace ramie::detail {

struct worker;

/// `polls` and `events` since its start; `descriptors` now.
struct event_counts {
  std::uint64_t polls = 0, events = 0, descriptors = 0;
};

/// How files are read and written that have to wait for the disk.
struct file_facts {
  enum class by : std::uint8_t { nothing, ring, helpers };  // nothing: no fiber has had to wait yet
  by how = by::nothing;
  int refused = 0;  // why by helpers: the errno of io_uring_setup
};

class event_source {
 public:
  event_source() = default;
  event_source(const event_source&) = delete;
  event_source& operator=(const event_source&) = delete;

  /// Looks for events for at most `timeout_ns`; 0: does not block; -1: until there is one, or `interrupt`. Returns how
  /// many it found; they wait for `dispatch`. With the role.
  virtual int look(std::int64_t timeout_ns) noexcept = 0;
  /// Makes the waiters for the events found ready. With the role.
  virtual void dispatch() noexcept = 0;
  /// Hands the kernel what fibers have left for the next poll. Each worker calls it when it runs out of work, so
  /// nothing is left behind when it sleeps. Any thread.
  virtual void flush() noexcept {}
  /// Ends a `look` under way, or the next. Any thread.
  virtual void interrupt() noexcept = 0;
  /// Does a fiber wait for an event? For the deadlock report, so it may be slow. Any thread.
  [[nodiscard]] virtual bool is_waited_for() noexcept = 0;
  /// Any thread.
  [[nodiscard]] virtual event_counts counts() noexcept { return {}; }
  /// Any thread, signal handlers too.
  [[nodiscard]] virtual file_facts files() noexcept { return {}; }
  /// The runtime has ended and no longer uses it.
  virtual void end() noexcept = 0;

 protected:
  virtual ~event_source() = default;
};

/// A runtime's source, if it has one, and the role.
class event_desk {
 public:
  event_desk() = default;
  event_desk(const event_desk&) = delete;
  event_desk& operator=(const event_desk&) = delete;

  /// Null: there is none. Any thread.
  [[nodiscard]] event_source* source() const noexcept { return source_.load(std::memory_order_acquire); }
  /// Installs `fresh` unless there is a source by now; returns the one installed. Any thread.
  event_source& install(event_source& fresh) noexcept;
  /// E1. True if something was made ready. Any worker, or the monitor.
  RAMIE_ALWAYS_INLINE bool poll() noexcept { return source() != nullptr && poll_now(); }
  /// E1 at a tick: unless a worker polled a moment ago, for ticks may be short.
  RAMIE_ALWAYS_INLINE void poll_at_tick(std::uint64_t now_cycles) noexcept {
    if (source() != nullptr) [[unlikely]]
      poll_if_late(now_cycles, tick_us);
  }
  /// E6. True if it has polled.
  bool poll_if_late(std::uint64_t now_cycles, std::uint64_t after_us) noexcept;
  /// E2, for a worker in the idle set: false if it must sleep on its futex. Otherwise it slept, at most `timeout_ns`;
  /// if it found events, `left_idle_set` is what `leave(w)` returned before they were dispatched.
  template <class Leave>
  bool sleep(worker& w, std::int64_t timeout_ns, bool& left_idle_set, Leave leave) noexcept {
    if (source() == nullptr || !take_role()) return false;
    if (look_asleep(w, timeout_ns) != 0) {
      left_idle_set = leave(w);
      source()->dispatch();
    }
    give_role();
    return true;
  }
  /// For the deadlock report. Any thread.
  [[nodiscard]] bool is_waited_for() noexcept { return source() != nullptr && source()->is_waited_for(); }
  /// Any thread.
  [[nodiscard]] event_counts counts() noexcept { return source() == nullptr ? event_counts{} : source()->counts(); }
  /// Any thread, signal handlers too.
  [[nodiscard]] file_facts files() noexcept { return source() == nullptr ? file_facts{} : source()->files(); }
  /// The runtime has ended.
  void end() noexcept;

 private:
  static constexpr std::uint64_t tick_us = 50;  // a poll takes 0.16 us, a tick of tiny tasks 1 us; a guess
  bool take_role() noexcept;
  void give_role() noexcept {
    if (!RAMIE_PLANT(source_role_kept)) role_.store(false, std::memory_order_release);
  }
  bool poll_now() noexcept;
  bool poll_with_role() noexcept;
  int look_asleep(worker& w, std::int64_t timeout_ns) noexcept;

  atomic<event_source*> source_{nullptr};
  atomic<bool> role_{false};
  atomic<std::uint64_t> polled_at_{0};  // cycle count
};

}  // namespace ramie::detail
