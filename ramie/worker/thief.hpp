// What a worker knows as a thief: whether it is short of work, what the others were doing when it last looked, how long
// it searches, from which worker it last stole and whether that was worth it. What it takes from which victim:
// sched/stealing.cpp.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/queue/ready_queue.hpp>
#include <ramie/task/ready_item.hpp>
#include <ramie/worker/theft_judge.hpp>
#include <ramie/worker/victims.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace ramie::detail {

struct worker;

/// One for each worker. Only its own thread, except `searched`. Times are cycle counts.
class thief {
 public:
  // A worker is short of work when it has searched for so much longer than the other within a window. Guesses: eight
  // actors on two workers are then moved when they are divided as five and three, and not when one worker loses some
  // tens of microseconds to the monitor.
  static constexpr std::uint64_t window_us = 2000;
  static constexpr std::uint64_t want_us = 200;

  // How long a search lasts.
  static constexpr std::uint64_t search_us = 40;  // long enough to see a worker stand still for still_us
  static constexpr std::uint64_t search_at_home_us =
      RAMIE_INTERLEAVE ? 40 : 200;  // the same, for still_at_home_us, and to wake up in. A guess

  // Where work is rare, searches find nothing: a timer every 10 ms paid more for its search than for its work. So a
  // worker that has slept for `rare_us`, and has run what it was woken for, gives up after `search_rare_us`. If the
  // next work comes sooner than that sleep lasted, the next search is a whole one. Guesses; what two workers send each
  // other takes some tens of microseconds, with two wake-ups a hundred.
  static constexpr std::uint64_t rare_us = 1000;
  static constexpr std::uint64_t search_rare_us = RAMIE_INTERLEAVE ? 40 : 5;

  /// For this many workers. Throws std::bad_alloc.
  void reserve(std::size_t workers, bool near_first) {
    looks_ = std::make_unique<look[]>(workers);
    if (near_first) victims.reserve(workers);
  }

  /// A search begins among `workers`: what the search before saw is forgotten.
  void begin_search(std::uint64_t now, std::size_t workers) noexcept {
    began_ = now;
    for (std::size_t i = 0; i < workers; ++i) looks_[i].forget();
  }
  void end_search(std::uint64_t now) noexcept {
    searched_.store(searched() + (now - began_), std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t began() const noexcept { return began_; }
  /// How long this search has lasted.
  [[nodiscard]] std::uint64_t searching_for(std::uint64_t now) const noexcept { return now - began_; }
  /// How long it has searched in all, without the search under way. Any thread.
  [[nodiscard]] std::uint64_t searched() const noexcept { return searched_.load(std::memory_order_relaxed); }

  /// It has slept for so long.
  void slept(std::uint64_t cycles) noexcept { work_is_rare_ = cycles > cycles_in_us(rare_us); }
  /// A search has found something.
  void found() noexcept { work_is_rare_ = false; }

  /// How long a worker searches before it sleeps. `woken`: just now, and it has run nothing since. Where work goes to
  /// one worker (`sends`: at home, or nobody steals), a worker that has sent work to a sleeping one waits for its
  /// answer, and should not fall asleep meanwhile: else two that send each other work sleep in turns, forever.
  [[nodiscard]] std::uint64_t patience(bool sends, bool woken) const noexcept {
    return cycles_in_us(work_is_rare_ && !woken ? search_rare_us : sends ? search_at_home_us : search_us);
  }

  /// For how long, in this search, a worker has not been seen to do anything.
  struct standstill {
    std::uint64_t still;  // to dispatch
    std::uint64_t idle;   // to dispatch or to spawn
  };
  /// Worker `number` has dispatched and spawned this many so far.
  [[nodiscard]] standstill look_at(std::size_t number, std::uint64_t dispatches, std::uint64_t spawned,
                                   std::uint64_t now) noexcept {
    look& last = looks_[number];
    if (std::exchange(last.dispatches, dispatches) != dispatches) last.since = now;
    if (std::exchange(last.spawned, spawned) != spawned) last.spawned_since = now;
    return {now - last.since, now - std::max(last.since, last.spawned_since)};
  }

  /// Has it searched longer than worker `number`, in the latest window, by more than chance or a short preemption
  /// explains? Among equals some inequality must stay: none of eight actors can be moved where a worker has only
  /// half an actor too much. `searched_of(i)`: `searched` of worker i.
  template <class SearchedOf>
  [[nodiscard]] bool is_short_of_work(std::size_t number, std::uint64_t now, std::size_t workers,
                                      SearchedOf searched_of) noexcept {
    if (now - window_began_ > cycles_in_us(window_us)) {
      begin_window(now, workers, searched_of);
      return false;
    }
    const std::uint64_t own = searched() + searching_for(now) - searched_before_;
    const std::uint64_t other = searched_of(number) - looks_[number].searched_before;
    return own > other + cycles_in_us(want_us);
  }
  /// A window begins: it has just been given work, or the window has not been looked at for long.
  template <class SearchedOf>
  void begin_window(std::uint64_t now, std::size_t workers, SearchedOf searched_of) noexcept {
    window_began_ = now;
    searched_before_ = searched() + searching_for(now);
    for (std::size_t i = 0; i < workers; ++i) looks_[i].searched_before = searched_of(i);
  }

  victim_order victims;           // the order in which it looks, where some are nearer than others
  std::uint32_t searches = 0;     // in that order
  theft_judge judge;              // of new tasks that it stole
  worker* last_victim = nullptr;  // of these
  /// Items of one theft; here to keep the loop's stack small.
  std::array<ready_item, ready_queue::steal_most> stolen{};

 private:
  struct look {
    std::uint64_t dispatches = ~std::uint64_t{0};
    std::uint64_t since = 0;  // when that was first seen
    std::uint64_t spawned = ~std::uint64_t{0};
    std::uint64_t spawned_since = 0;
    std::uint64_t searched_before = 0;  // when the window began; outlives the search

    void forget() noexcept { *this = {.searched_before = searched_before}; }
  };
  std::unique_ptr<look[]> looks_;  // by number
  std::uint64_t began_ = 0;        // of the search
  bool work_is_rare_ = false;
  atomic<std::uint64_t> searched_{0};
  std::uint64_t window_began_ = 0;
  std::uint64_t searched_before_ = 0;  // `searched` then, with the search under way
};

}  // namespace ramie::detail
