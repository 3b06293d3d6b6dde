// Regions: stretches of a fiber's (or thread's) run with a deadline of their own, or shielded from being stopped.
//
// A region lives on the stack of the code that opened it; regions of one fiber form a chain, innermost first. No timer
// runs for a region: each cancellable wait inside it is bounded by the earliest deadline of the chain, and one that
// begins later is over at once. So entering and leaving cost a few instructions, and fibers without regions pay
// nothing. A shield hides all that lies outside it: the stop flag, shutdown, outer deadlines.
//
// A scope that fails stops its children that run: for what runs inside them it is like a region that is over.
//
// A strand (a fork job stolen from a fiber) stands in those regions of its parent that enclose the fork. They are the
// ones that lie above the fork's frame on the parent's stack: regions and frames of one fiber are nested as its calls
// are. The parent may open and close inner ones meanwhile, hence the lock.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/spin_lock.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace ramie::detail {

struct task;

struct region {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  region* outer = nullptr;
  std::int64_t deadline_ns = never;  // of the steady clock
  bool shield = false;
};

/// The chain of one fiber or thread.
struct region_chain {
  spin_lock lock;
  atomic<region*> innermost{nullptr};  // written by its fiber, inside the lock
};

/// What bounds a wait.
struct limits {
  std::int64_t deadline_ns = region::never;
  bool stopped = false;   // asked to stop, and not shielded
  bool shielded = false;  // nothing from outside may end it; an inner deadline may
};

/// Of the code that runs, or waits, as `t`. Any thread that keeps `t` alive.
limits limits_of(task& t) noexcept;
/// True if nothing bounds it: no region, no stopped scope, and nobody was asked to stop. A cheaper look for what is so
/// most of the time. As above.
bool is_unlimited(const task& t) noexcept;
/// Of the calling plain thread.
limits limits_of_thread() noexcept;

/// A scope whose first child has failed. Known to the whole process, since its children may be anywhere.
struct stopped_scope {
  const char* place = nullptr;  // the scope itself, on its owner's stack
  std::size_t size = 0;
  task* owner = nullptr;                                  // whose stack that is
  bool (*joining)(const void* place) noexcept = nullptr;  // does the owner run, or wait for, children?
  stopped_scope* next = nullptr;
};
/// Makes the scope known, and ends the cancellable waits inside its children with wake_reason::cancelled. Any thread;
/// the scope stays until remove_stopped. Does not suspend.
void add_stopped(stopped_scope& s) noexcept;
void remove_stopped(stopped_scope& s) noexcept;

/// The fiber on whose stack `place` lies: the calling one, or one that it runs a fork job for. Null if there is none.
task* owner_of_place(const void* place) noexcept;

/// Opens `r` for the calling fiber or thread. Throws std::bad_alloc at a fiber's first. Does not suspend.
void open_region(region& r);
/// Closes it; it must be the innermost. Does not suspend.
void close_region(region& r) noexcept;

}  // namespace ramie::detail
