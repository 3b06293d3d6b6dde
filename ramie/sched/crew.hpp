// What the owners of a runtime's parts have in common: what was asked for, who its workers are, how they share, and
// whether the runtime ends. The owners: placement.hpp, stealing.hpp, sleeping.hpp, monitor.hpp; the scheduler has all.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/machine/topology.hpp>
#include <ramie/queue/injector.hpp>
#include <ramie/sched/options.hpp>
#include <ramie/sched/spread.hpp>
#include <ramie/worker/roster.hpp>
#include <ramie/worker/worker.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

struct crew {
  /// Throws what resolve() throws, and std::bad_alloc.
  explicit crew(const runtime_options& given);
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return workers.size(); }
  [[nodiscard]] worker& at(std::size_t i) const noexcept { return workers[i]; }
  /// With all spares, and the reserve.
  [[nodiscard]] std::size_t most() const noexcept {
    return regular + static_cast<std::size_t>(options.spare_workers) + (has_reserve ? 1 : 0);
  }
  /// `w` notes where it is, for thieves and wakers. Its own thread; if near_first.
  void note_place(worker& w) const noexcept;

  const runtime_options options;
  const test_options test;
  const std::uint32_t regular;  // workers, without spares
  const bool steals;            // a worker that has nothing takes from others
  const bool has_reserve;       // a worker may be called that runs only what woke (reserve.cpp)
  topology map;                 // if it is needed at all
  bool near_first = false;      // some workers are nearer to each other than others: thieves and wakers look
  worker_roster workers;
  injector injected;             // work that any worker may take
  spread_way way;                // in which ready work is shared
  atomic<bool> stopping{false};  // nothing new is accepted, what runs is cancelled
  atomic<bool> ending{false};    // workers leave their loops
  atomic<bool> hogged{false};    // no worker but the reserve dispatches anything; written by the monitor
};

// ---- what a worker has to give -------------------------------------------------------------------------------------
//
// When to wake a sleeper for published work, and what a thief takes: two or more new tasks are a surplus
// (unless thefts of them were in vain: theft_judge.hpp), and so is a fork job. Ready fibers and residents are another
// matter. They were woken by code on this worker, and share with it what they exchange; a wake-up costs microseconds,
// their message some nanoseconds. They stay while this worker needs less than `queued_us_most` for all of them,
// judged by how long its dispatches take (`slice`, taken at ticks, and by samples of how long an item that was
// left here waits). If the worker is stuck meanwhile, a thief sees that it dispatches nothing for `still_us`, or the
// monitor does, and then anything may be taken. Where the backlog lasts, the monitor tries what is better (spread.hpp):
// spread, two ready items are a surplus already, but where all that is woken goes home only a worker that has been
// short of work for some time takes from it (stealing.cpp).

/// Are the `queued` ready items of `w` worth waking a sleeper, or a thief its way?
[[nodiscard]] bool worth_moving(const crew& all, const worker& w, std::size_t queued) noexcept;
/// Thefts of its new tasks were in vain (theft_judge.hpp).
[[nodiscard]] bool leaves_new_tasks(const worker& of) noexcept;
/// Anything that a thief would take: fork jobs, ready items, new tasks.
[[nodiscard]] bool has_surplus(const crew& all, const worker& of) noexcept;

// How long its dispatches take (`slice`). The worker's own thread.

/// An item is left to its worker alone: now and then it is measured how long it waits.
void sample_deferral(worker& w) noexcept;
RAMIE_COLD void judge_deferral(worker& w) noexcept;
/// Before dispatching from an own queue.
RAMIE_ALWAYS_INLINE void note_dispatch(worker& w) noexcept {
  if (w.deferred_at != 0) [[unlikely]]
    judge_deferral(w);
}
/// At a tick of `dispatches`.
void measure_tick(worker& w, std::uint32_t dispatches) noexcept;

/// Without a dispatch for this long, a worker stands still: others take what is ready, even a single item. A wake-up
/// costs about as much, on both sides together.
inline constexpr std::uint64_t still_us = 20;

}  // namespace ramie::detail
