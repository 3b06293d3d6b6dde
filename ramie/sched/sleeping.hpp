// How workers fall asleep, and who wakes them: the idle set, the marks on fork deques, the event source that one of
// them sleeps in. The steps S1 to S4, I1 to I4 and R1 to R4 are those of idle_set.hpp.
#pragma once

#include <ramie/machine/fence.hpp>
#include <ramie/sched/crew.hpp>
#include <ramie/worker/event_source.hpp>
#include <ramie/worker/idle_set.hpp>

#include <cstddef>

namespace ramie::detail {

class sleeper {
 public:
  /// Throws std::bad_alloc.
  sleeper(const crew& all, event_desk& events) : all_{all}, events_{events} { idle_.reserve(all.most()); }

  // Publishers, after they have put work somewhere (I1): I2 to I4.

  /// Into a queue of `w`, which now holds `queued`: wakes a sleeper if that pays. Owner of `w`.
  RAMIE_ALWAYS_INLINE void published(worker* w, std::size_t queued) noexcept {
    light_fence();
    if (hint()) [[unlikely]]
      published_slowly(w, queued);
  }
  /// Into the ready queue of `w`, whose items talk to each other more often than not. Owner of `w`.
  RAMIE_ALWAYS_INLINE void published_ready(worker* w) noexcept {
    light_fence();
    if (hint()) [[unlikely]]
      published_ready_slowly(w);  // last, with nothing to save before: in switches
  }
  /// Where any worker finds it. Any thread.
  void published_to_all() noexcept;
  /// Into the inbox of `to`. Any thread.
  void published_to(worker& to) noexcept;
  /// Given to the user's policy. Any thread.
  void published_to_policy() noexcept;
  /// A worker sleeps, and none searches. Any thread.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool hint() const noexcept { return idle_.hint(); }
  /// Wakes one, unless one searches. Any thread.
  void wake_one() noexcept { idle_.wake_one(); }
  /// One more, for what the workers that are awake may not take. Any thread.
  void wake_another() noexcept { idle_.wake_one(true); }
  void wake_all() noexcept { idle_.wake_all(); }

  // Workers, each for itself.

  /// False: enough others search.
  bool begin_search(worker& w) noexcept { return idle_.begin_search(w, static_cast<std::uint32_t>(all_.size())); }
  /// No other worker is awake, so there is nobody to take work from.
  [[nodiscard]] bool is_alone(const worker& w) const noexcept;
  /// R1 to R4: it has found something, or stops searching.
  void end_search(worker& w) noexcept;
  /// S1 to S4. Returns when it is woken, a timer is due, or there is work in sight.
  void sleep(worker& w) noexcept;
  /// The reserve's sleep: until it is called, a timer of its own is due, or there is an event. It may end for nothing.
  void rest(worker& reserve) noexcept;
  /// Ends the reserve's rest, or its next one: it sees what the caller has done before. Any thread.
  void call(worker& reserve) noexcept { set_token(reserve); }

 private:
  RAMIE_COLD void published_slowly(worker* w, std::size_t queued) noexcept;
  RAMIE_NOINLINE void published_ready_slowly(worker* w) noexcept;
  [[nodiscard]] const worker* near(const worker& w) const noexcept { return all_.near_first ? &w : nullptr; }
  void mark_fork_deques() noexcept;
  [[nodiscard]] bool work_in_sight(const worker& w) const noexcept;
  void sleep_in_set(worker& w) noexcept;
  void give_memory_back(worker& w) noexcept;

  const crew& all_;
  event_desk& events_;  // in which one of them sleeps
  idle_set idle_;
};

}  // namespace ramie::detail
