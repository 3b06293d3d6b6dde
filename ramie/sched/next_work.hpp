// What runs next. This is the whole order; each worker follows it by itself:
//
//  N1 Every scheduler::tick_every dispatches (a tick) the oldest work comes first: due timers, events from outside, then
//     the injection queue; every 64th tick the oldest spawned task, every 4th the policy's choice, before it
//     (scheduler::look_at_oldest).
//  N2 The newest spawned task, if a fiber has left turns to the spawned tasks (`spawn_turns`), or if the loop runs new
//     tasks in place and has not run tasks_in_a_row of them yet. Turns are left by a fiber that yields while nothing but
//     spawned tasks can run; and by one that went on after a wait for events, and waits for events again: until what it
//     has spawned meanwhile, and what that has spawned, has begun, at most worker::turns_most tasks. So what a server
//     spawns for a new connection begins in its turn, as if woken by the same event. What begins so leaves no turns
//     itself, as it has not waited.
//  N3 The oldest ready fiber or resident.
//  N4 The newest spawned task.
//  N5 What others have sent, what the policy has, what was injected, what a due timer makes ready.
//  N6 Other workers' work (stealing.cpp). Then the worker sleeps.
//
// After N2's exception ready fibers come first, because they hold stacks; new tasks run newest first, depth first,
// because that keeps the memory of a tree flat. The oldest spawned task runs only every oldest_every_ticks ticks, since
// each one opens a new branch near the root: at every tick, sum's 20 million fibers took 967 MB on one worker, so 10
// MB.
//
// The bounds that follow, on a worker with R ready fibers: one that becomes ready runs within
// R * (1 + 1/tick_every) + 1 + tick_every + tasks_in_a_row dispatches (a fiber that yields to spawned tasks lets at
// most tick_every of them go first), and each of the R that leaves turns adds as many; the k-th in the injection queue
// within 2 * (k + 1) * tick_every; the k-th oldest task of a spawn deque within (k + 1) * tick_every *
// oldest_every_ticks, about 4,000 for each older one. fairness.test.cpp and poll/turns.test.cpp count them.
//
// N2 to N4 are `next_own`, inlined where every instruction counts. scheduler::find_work is all of it: it begins with N1
// and takes over wherever `next_own` may not decide, or finds nothing.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/task/ready_item.hpp>
#include <ramie/worker/worker.hpp>

#include <cstdint>

namespace ramie::detail {

/// New tasks that a loop runs before it turns to a fiber that became ready meanwhile. With 0, each task that sends its
/// parent a result costs two switches; skynet with channels: 52 ns a fiber with 0, 45 with 8, 44 with 32; experiment 4,
/// n = 1: 46, 25, 22 ns.
inline constexpr std::uint32_t tasks_in_a_row = 32;

/// What the caller of next_own can run.
enum class runnable_kind : std::uint8_t {
  any,          // the loop, between two pieces of work
  fiber,        // a fiber that leaves: it can only switch to another fiber; for anything else a fresh loop begins
  quick_fiber,  // the same, in the few instructions that the usual case takes: is_usual(w) holds, and an empty result
                // says nothing
  resident      // the loop, right after a resident; likewise
};

/// One of them, or none.
struct own_work {
  ready_item ready;
  task* spawned = nullptr;
};

/// May next_own decide? Not at a tick, nor while this worker still owes a look at how long an item has waited.
[[nodiscard]] RAMIE_ALWAYS_INLINE bool is_usual(const worker& w) noexcept {
  return w.until_tick > 1 && w.spawn_turns == 0 && w.deferred_at == 0;
}

/// N2: are there turns left, and tasks that they are for?
[[nodiscard]] RAMIE_ALWAYS_INLINE bool has_turns(worker& w) noexcept {
  if (w.spawn_turns == 0) [[likely]]
    return false;
  if (w.spawned.size() > w.turns_end_at) return true;
  w.spawn_turns = 0;
  return false;
}

/// N2 to N4. `in_a_row`: how many new tasks the loop may still run in place.
template <runnable_kind Kind>
RAMIE_ALWAYS_INLINE own_work next_own(worker& w, std::uint32_t in_a_row) noexcept {
  if constexpr (Kind == runnable_kind::fiber) {
    return {has_turns(w) ? nullptr : w.ready.pop_stack(), nullptr};
  } else if constexpr (Kind == runnable_kind::quick_fiber) {
    return {w.ready.try_pop_stack(), nullptr};
  } else if constexpr (Kind == runnable_kind::resident) {
    if (w.spawned.size() != 0) return {};
    task* const t = w.ready.try_pop_resident();
    return {t == nullptr ? ready_item{} : ready_item{t}, nullptr};
  } else {
    if (has_turns(w) || (in_a_row != 0 && w.spawned.size() != 0)) {
      if (task* const t = w.spawned.pop(); t != nullptr) {
        if (w.spawn_turns != 0) --w.spawn_turns;
        return {{}, t};
      }
      w.spawn_turns = 0;
    }
    if (const ready_item item = w.ready.pop()) return {item, nullptr};
    return {{}, w.spawned.pop()};
  }
}

}  // namespace ramie::detail
