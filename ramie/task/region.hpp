// Regions: stretches of a fiber's (or thread's) run with a deadline of their own, or shielded from being stopped.
//
// A region lives on the stack of the code that opened it; regions of one fiber form a chain, innermost first. No timer
// runs for a region (that of a cancel_scope has one of its own): each cancellable wait inside it is bounded by the
// earliest deadline of the chain, and a wait that begins later ends at once. So entering and leaving cost a few
// instructions, and fibers without regions pay nothing. A shield hides all that lies outside it: the stop flag,
// shutdown, outer deadlines.
//
// A scope that fails stops its running children: to the code inside them it is like a region that is over.
//
// While an exception unwinds the stack, destructors must be able to wait without a second one. So each region and each
// scope keeps the number of exceptions in flight when it was made. Code that runs with a higher number is clean-up:
// regions and scopes of that number count, and all that lies further out is hidden, as by a shield. A scope's child
// that is a fiber has the number of its scope. Fork jobs are not stolen from a fiber with exceptions in flight (T5 of
// queue/fork_deque.hpp), and those that are promoted there take the number along (R6 of sched/fork_jobs.cpp). What the
// library destroys (ending_flag, quiet_region) is clean-up, too; so is what waits in a function that lets no exception
// out (task/clean_up.hpp): there a region's fence is the frame of that function.
//
// A strand (a fork job that another worker took, or a scope's child that is a fiber of its own) is in those regions
// of its parent that enclose the fork, or the scope. They are the ones that lie above the frame of the fork, or the
// scope, on the parent's stack: regions and frames of one fiber nest as its calls do. The parent may open and
// close inner ones meanwhile, hence the lock. The parent outlives its strands: it waits for them at the join.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace ramie::detail {

class inspection;
struct stack;
struct task;

struct region {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  region* outer = nullptr;
  std::int64_t deadline_ns = never;  // of the steady clock
  std::int64_t told_ns = never;      // one that others watch (fiber/cancel_scope.hpp): for this_fiber::deadline
  std::uint32_t in_flight = 0;       // exceptions, when it was opened
  bool shield = false;
  bool cancelled = false;       // as a scope is; its deadline has then passed, too
  task* opened_by = nullptr;    // null: a plain thread
  const char* fence = nullptr;  // of clean-up (task/clean_up.hpp): what lies further out than this does not count
};

/// The chain of one fiber or thread.
struct region_chain {
  spin_lock lock;
  atomic<region*> innermost{nullptr};  // written by its fiber, inside the lock
};

/// What bounds a wait.
struct limits {
  std::int64_t deadline_ns = region::never;
  std::int64_t told_ns = region::never;  // of those that others watch
  bool stopped = false;                  // asked to stop, and not shielded
  bool by_scope = false;                 // and only by a scope that failed, or was cancelled
  bool shielded = false;                 // nothing from outside may end it; a deadline, or a scope, that is inside may

  /// Has the deadline passed?
  [[nodiscard]] bool is_late() const noexcept;
};

/// The exceptions in flight on the calling fiber or thread: thrown, and not caught yet.
[[nodiscard]] std::uint32_t exceptions_in_flight() noexcept;

/// The limits of the code that runs as `t`, with that many exceptions in flight. Any thread that keeps `t` alive.
limits limits_of(task& t, std::uint32_t in_flight) noexcept;
/// Those of the wait that `t` is in, by an inspector that holds its stack.
limits limits_of_wait(const void* occupant) noexcept;
/// Ends the cancellable wait that `s` is in, with wake_reason::cancelled, if its occupant is stopped, or late. Any
/// thread; does not suspend.
void cancel_if_over(const inspection& during, stack& s) noexcept;
/// The same for the waits of all strands below the task on `top`.
void cancel_strands_if_over(const inspection& during, const stack& top) noexcept;
/// True if nothing bounds it: no region, no stopped scope, no stop request, no end. A cheaper check for the usual
/// case. As above.
bool is_unlimited(const task& t) noexcept;
/// Where on the parent's stack the strand was forked: its fork frame, or the scope that the frame or the fiber belongs
/// to. Null if that is not known to lie there: then the strand is in the regions that the parent is in at the moment.
const void* fork_place(const task& strand) noexcept;
/// The limits of the calling code, a fiber's or a plain thread's.
limits limits_here() noexcept;
/// Whether a wait of the calling code would be cancelled.
bool is_to_stop() noexcept;

/// A scope whose first child has failed. Known at its owner's stack (family_bucket), which its children's waits look
/// up.
struct stopped_scope {
  const char* place = nullptr;  // the scope itself, on its owner's stack
  std::size_t size = 0;
  std::uint32_t in_flight = 0;                            // exceptions, when it was made
  task* owner = nullptr;                                  // the task on that stack
  bool (*joining)(const void* place) noexcept = nullptr;  // does the owner run, or wait for, children?
  stopped_scope* next = nullptr;
};
/// Makes the scope known, and ends the cancellable waits inside its children with wake_reason::cancelled. Any thread;
/// the scope stays until remove_stopped. Without an owner does nothing. Does not suspend.
void add_stopped(stopped_scope& s) noexcept;
void remove_stopped(stopped_scope& s) noexcept;

/// `t`, or the nearest of the tasks that it is a strand of, on whose stack `place` lies; null if there is none.
task* nearest_owner(task* t, const void* place) noexcept;
/// The fiber on whose stack `place` lies: most often the calling one, or one that it is a strand of; otherwise all
/// stacks are searched. Null if there is none. The caller knows that what lies there stays.
task* owner_of_place(const void* place) noexcept;

/// Opens `r` for the calling fiber or thread. Throws std::bad_alloc at a fiber's first. Does not suspend.
void open_region(region& r);
/// Closes it; it must be the innermost. Does not suspend.
void close_region(region& r) noexcept;

/// The caller's. Throws std::bad_alloc at a fiber's first region.
[[nodiscard]] region_chain& own_regions();
/// Sets the deadline of an open region, for waits that begin later, and the one that it tells. Any thread that keeps it
/// open, in `chain`.
void set_deadline(region_chain& chain, region& r, std::int64_t deadline_ns, std::int64_t told_ns) noexcept;
/// The same, and the waits inside throw `cancelled`, as those of a scope that was cancelled.
void cancel_region(region_chain& chain, region& r) noexcept;
/// Ends the cancellable waits inside the open region that are stopped, or late, but for those of plain threads. Any
/// thread that keeps it open. Does not suspend.
void end_waits_inside(const region& r) noexcept;

/// A shield for clean-up that nobody could catch an exception from. Where there is no memory for it, all goes well
/// without it, unless that clean-up waits, and is asked to stop. Does not suspend.
class quiet_region {
 public:
  quiet_region() noexcept;
  quiet_region(const quiet_region&) = delete;
  quiet_region& operator=(const quiet_region&) = delete;
  ~quiet_region();

 private:
  region shield_;
  bool open_ = false;
};

}  // namespace ramie::detail
