// What a user calls a fiber: the unit that is spawned, named, joined, asked to stop. It costs 64 bytes and its closure;
// it has a stack only once it runs.
//
// Completion, one 64-bit word; the last party writes it last:
//   0           running or queued, a join handle exists
//   reference   (wait.hpp) a waiter waits for the end
//   detached    the result will not be asked for
//   done        result or exception is in place
// The end exchanges in `done`: the old value says whether to wake, to free, or to leave all to the handle.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/config.hpp>
#include <ramie/task/bindings.hpp>
#include <ramie/task/local_table.hpp>
#include <ramie/task/region.hpp>
#include <ramie/task/strands.hpp>
#include <ramie/task/task_memory.hpp>
#include <ramie/task/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace ramie::detail {

struct task;
struct worker_base;

enum class task_kind : std::uint8_t {
  fiber,
  promoted_job,  // sched/fork_jobs.cpp: a fork job taken out of its deque
  resident,      // runs again and again; see scheduling.hpp
};

struct task_type {
  void (*run)(task& self) noexcept;  // calls the closure; leaves result or exception in the storage
  void (*skip)(task& self, std::exception_ptr why) noexcept;  // instead of run: drops the closure, leaves `why`
  void (*drop)(task& self) noexcept;                          // destroys result or exception
  task_kind kind = task_kind::fiber;
  // Residents only, instead of run; see scheduling.hpp. While the runtime shuts down `here` is null.
  bool (*turn)(task& self, stack* here) noexcept = nullptr;
  void (*rest)(task& self) noexcept = nullptr;
};

/// What few fibers need: allocated on first use.
struct task_extras {
  std::string name;
  std::size_t stack_size = 0;        // 0: the runtime's
  const void* spawned_by = nullptr;  // the task that gave the name; may be gone
  int priority = 0;                  // for user-written policies
  int pinned_to = -1;                // pinned_flag: number of the worker
  bool measures_stack = false;       // its stack was painted, see stack_use_table.hpp
  std::optional<std::stop_source> stop;
  region_chain regions;
  binding_chain bindings;
  local_table locals;

  task_extras() = default;
  task_extras(const task_extras&) = delete;
  task_extras& operator=(const task_extras&) = delete;
  ~task_extras() { let_go(bindings.inherited.load(std::memory_order_relaxed)); }
};

struct task {
  static constexpr std::uint64_t detached = 1, done = 2;
  static constexpr std::uint32_t stop_flag = 1;       // asked to stop
  static constexpr std::uint32_t failed_flag = 2;     // storage holds an exception
  static constexpr std::uint32_t strand_flag = 4;     // runs a stolen fork job, or a child of a scope, for `parent`
  static constexpr std::uint32_t own_stack_flag = 8;  // needs a stack of its own size

  static constexpr std::uint32_t region_flag = 32;     // inside a region
  static constexpr std::uint32_t scope_flag = 64;      // a scope of it has failed, and is there yet
  static constexpr std::uint32_t pinned_flag = 128;    // runs on `home` only
  static constexpr std::uint32_t homeless_flag = 256;  // runs on the worker that wakes it
  static constexpr std::uint32_t child_flag = 512;     // a strand that is a scope's child: see scope_child below
  /// Only destructors run that the library calls: no exception may leave them, so their waits are shielded.
  static constexpr std::uint32_t ending_flag = 1024;
  static constexpr std::uint32_t limited =
      strand_flag | region_flag | scope_flag | ending_flag;  // ask limits_of, not only stop_flag

  const task_type* type = nullptr;
  task* next = nullptr;  // link of the injection queue and of the ready queue's overflow
  atomic<std::uint64_t> completion{0};
  atomic<stack*> where{nullptr};         // the stack it runs or waits on; null before its start
  atomic<worker_base*> home{nullptr};    // the worker that ran it last
  task* parent = nullptr;                // strand_flag: the task it runs for
  atomic<task_extras*> extras{nullptr};  // made by the fiber itself, or before it is submitted
  atomic<std::uint32_t> flags{0};
  std::uint8_t list = 0;  // of task_cache; no_list: from operator new with task_alignment_most
  // then the closure, or in its place the result
};
static_assert(sizeof(task) == 64);  // reserve: three bytes

struct fork_frame;
/// The task of a stolen fork job; lives on the stack it runs on.
struct strand_task : task {
  const fork_frame* frame = nullptr;
  std::uint64_t run = 0;        // what the frame's `state` holds until its owner waits
  std::uint32_t in_flight = 0;  // exceptions, when the job was promoted (R6 in sched/fork_jobs.cpp)
  strand_link link;
};

/// What lies right behind a task with child_flag: a scope's child that is a fiber of its own (fiber/scope_child.hpp
/// has the rest).
struct scope_place {
  const void* of_scope;         // on the parent's stack
  std::uint32_t in_flight = 0;  // exceptions, when the scope was made (region.hpp)
  strand_link link;
};
[[nodiscard]] inline scope_place& scope_place_of(task& t) noexcept {
  return *reinterpret_cast<scope_place*>(reinterpret_cast<char*>(&t) + sizeof(task));
}
[[nodiscard]] inline const scope_place& scope_place_of(const task& t) noexcept {
  return scope_place_of(const_cast<task&>(t));
}

inline constexpr std::size_t task_alignment = 16;       // of blocks from the caches
inline constexpr std::size_t task_alignment_most = 64;  // of closures and results

/// Ends a task's life: its storage must be empty already.
void destroy_task(task* t) noexcept;

/// The name given at spawn; a strand without one has its parent's. "" if there is none. Valid while the task is.
[[nodiscard]] const char* name_of(const task* t) noexcept;
/// Made at the first call. Called by the fiber itself and its fork jobs, or before the task is submitted. Throws
/// std::bad_alloc.
task_extras& extras_of(task& t);

/// N1 of strands.hpp, for a strand that has a parent. It ends with unlink_strand.
void begin_strand(task& strand) noexcept;

/// Sets the stop flag and wakes the fiber, and strands that run its fork jobs, where they wait cancellably. The caller
/// keeps `t` alive.
void request_stop(task& t) noexcept;

/// Of several failures that of the highest rank comes out, and the first of these.
enum class failure_rank : std::uint8_t { cancelled, child_cancelled, error };
[[nodiscard]] failure_rank rank_of(const std::exception_ptr& failure) noexcept;
/// Reports on standard error an exception that no join will rethrow, and ends the process if `deadly`. Without a
/// `fiber_name` (null), `how` begins with its subject.
void report_lost_exception(const char* fiber_name, const std::exception_ptr& lost, const char* how,
                           bool deadly) noexcept;

}  // namespace ramie::detail
