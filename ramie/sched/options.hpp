// What a runtime can be told at its start.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace ramie {

class scheduling_policy;

/// Which worker runs a fiber or an actor. "Home" is the worker that ran it last.
enum class placement {
  /// Each worker runs what it spawned; idle ones steal. A woken fiber or actor runs on the worker that woke it, or,
  /// while the ready queues stay long, in whichever of three ways has the highest throughput: all on one worker, each
  /// on its home, each on the worker that woke it.
  work_stealing,
  /// The same, but never at its home.
  stealing_no_affinity,
  /// New fibers and actors are given to the workers in turn and stay there. There is no stealing, and no spare worker
  /// helps: what is queued on a stalled worker waits for it.
  dedicated,
};

/// For a single fiber or actor, within placements that steal.
enum class affinity {
  automatic,  // as the placement decides
  none,       // no home: the worker that wakes it runs it
};

/// What keeps an overflowing stack from its neighbour. `automatic`: MADV_GUARD_INSTALL where the kernel has it
/// (Linux 6.13+), else mprotect, which is bounded by the sysctl vm.max_map_count.
enum class stack_guard { automatic, madvise, mprotect, none };

struct runtime_options {
  /// Worker threads, 1 to 1024. 0: RAMIE_WORKERS, else one per CPU that the affinity mask and the cgroup's quota allow.
  int workers = 0;
  /// RAMIE_PLACEMENT applies if this is work_stealing.
  ramie::placement placement = placement::work_stealing;
  /// If set, it replaces `placement`; see policy.hpp.
  std::shared_ptr<scheduling_policy> policy = nullptr;
  /// Each worker's thread may run on one CPU only: worker i on the i-th that the process may use, modulo their number.
  /// Spare workers are not pinned. If the kernel refuses, the workers run unpinned. If false, RAMIE_PIN_THREADS (0 or
  /// 1) decides.
  bool pin_threads = false;
  /// Bytes of address space for a fiber's stack, 16 KiB to 1 GiB, rounded up to a power of two; only touched pages take
  /// memory. 0: RAMIE_STACK_SIZE, else 256 KiB.
  std::size_t stack_size = 0;
  /// Shows in thread names and reports.
  std::string name = "ramie";
  ramie::stack_guard guard = stack_guard::automatic;
  /// Threads that may stand in for workers which are stalled by blocking calls or long computations. One more may run
  /// what timers, input and output, and other threads wake while all workers are held up. 0: none do.
  int spare_workers = 64;
  /// Threads for `ramie::blocking`, at most; started when needed.
  int blocking_threads = 256;
  /// A worker that has not dispatched for so long counts as stalled; one that is blocked in the kernel, after a
  /// millisecond.
  std::chrono::milliseconds stall_after{10};
  /// When every fiber waits and nothing is left that could wake one, list them on standard error and end the process
  /// with status 2. Looked for when the runtime has been idle for some 20 ms. A timer that runs, a blocking call under
  /// way, or another thread of the process that could wake a fiber keep it from being reported (deadlock.cpp says when
  /// exactly).
  bool report_deadlocks = true;
  /// For debugging: how much of its stack each fiber uses is measured (stack_use.hpp) and told by dumps. Costs
  /// microseconds for each fiber and each turn of an actor. false: RAMIE_PAINT_STACKS (0 or 1), else false; with that
  /// variable it is also written to standard error when the process exits.
  bool paint_stacks = false;
  /// One line on standard error, once for each place, about what is seldom meant: handles that stop a fiber, fibers
  /// that outlive their program, `cancelled` swallowed, an end of the runtime that takes long (docs/debugging.md). Set
  /// to false, or with RAMIE_NOTICES=0 in the environment, the whole process tells none from then on.
  bool notices = true;
};

}  // namespace ramie
