// What a runtime can be told at its start.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace ramie {

class scheduling_policy;

/// Who runs what. "Home" is the worker that ran a fiber or an actor last.
enum class placement {
  /// Each worker runs what it spawned and woke; idle ones steal. An actor whose state is worth more in its home's
  /// caches than a message's way there costs is run at home; that is measured, for each actor.
  work_stealing,
  /// The same without that: who wakes runs.
  stealing_no_affinity,
  /// One queue for all workers, first in first out.
  shared_queue,
  /// New and woken work goes to the workers in turn. Nobody steals, and no spare worker helps: what is behind a stalled
  /// worker waits.
  round_robin,
  /// New fibers and actors are given to the workers in turn and stay there for ever. Nobody steals, and no spare
  /// worker helps: what is behind a stalled worker waits.
  dedicated,
};

/// Where work_stealing runs what was woken; see spread.hpp. Idle workers take what others have ready if that takes
/// long.
enum class spreading {
  automatic,  // tries the others, and keeps what gets most done
  together,   // one worker runs what talks
  at_home,    // the worker that ran it last does, unless that one sleeps or is stuck; who is short of work takes some
  by_waker,   // whoever wakes it does, but for actors whose home is cheaper (affinity.hpp); idle workers take a half
};

/// For a single fiber or actor, within placements that steal.
enum class affinity {
  automatic,  // as the placement has it
  none,       // no home: whoever wakes it runs it
};

/// What keeps an overflowing stack from its neighbour. `automatic`: MADV_GUARD_INSTALL where the kernel has it
/// (Linux 6.13+), else mprotect, which is bounded by the sysctl vm.max_map_count.
/// `fresh`, for measurements: as mprotect, and every stack is mapped anew each time it is used.
enum class stack_guard { automatic, madvise, mprotect, none, fresh };

struct runtime_options {
  /// Worker threads, 1 to 1024. 0: RAMIE_WORKERS, else one per CPU that the affinity mask and the cgroup's quota allow.
  int workers = 0;
  /// RAMIE_PLACEMENT overrides the default, not a value given here other than the default.
  ramie::placement placement = placement::work_stealing;
  /// For work_stealing with several workers. Anything but `automatic` is for measurements, and for programs that know
  /// better. automatic: RAMIE_SPREADING, else automatic.
  ramie::spreading spreading = ramie::spreading::automatic;
  /// If set, decides instead of `placement`; see policy.hpp.
  std::shared_ptr<scheduling_policy> policy = nullptr;
  /// Each worker's thread may run on one CPU only: worker i on the i-th that the process may use, modulo their number.
  /// Spares are left free. If the kernel refuses, the workers run unpinned. false: RAMIE_PIN_THREADS
  /// (0 or 1), else false.
  bool pin_threads = false;
  /// Which workers are near to each other: "" as the machine has it, else a description such as "2 nodes 8 caches 8
  /// cores 2 threads", whose i-th CPU worker i is then taken to be on (topology.hpp), for tests and experiments. Idle
  /// workers look for work nearby first. "": RAMIE_TOPOLOGY, else the machine's own.
  std::string topology = {};
  /// Bytes of address space for a fiber's stack, 16 KiB to 1 GiB, rounded up to a power of two; only touched pages take
  /// memory. 0: RAMIE_STACK_SIZE, else 256 KiB.
  std::size_t stack_size = 0;
  /// Shows in thread names and reports.
  std::string name = "ramie";
  ramie::stack_guard guard = stack_guard::automatic;
  /// Threads that may stand in for workers which are stalled by blocking calls or long computations. 0: none do.
  int spare_workers = 64;
  /// Threads for `ramie::blocking`, at most; started when needed.
  int blocking_threads = 256;
  /// A worker that has not dispatched for so long counts as stalled.
  std::chrono::milliseconds stall_after{10};
  /// When every fiber waits and nothing is left that could wake one, list them on standard error and end the process
  /// with status 2. Looked for when the runtime has been idle for 50 ms. A timer that runs, a blocking call under way,
  /// or another thread of the process that could wake somebody keep it from being reported (deadlock.cpp says when
  /// exactly). Set to false if a signal handler wakes fibers.
  bool report_deadlocks = true;
  /// For debugging: how much of its stack each fiber uses is measured (stack_use.hpp) and told by dumps. Costs
  /// microseconds for each fiber and each turn of an actor. false: RAMIE_PAINT_STACKS (0 or 1), else false; with that
  /// variable it is also written to standard error when the process exits.
  bool paint_stacks = false;
  /// For tests: every resume is on another worker than the one before, if there is one. Also by RAMIE_MIGRATE_ALWAYS=1.
  bool migrate_always = false;
};

}  // namespace ramie
