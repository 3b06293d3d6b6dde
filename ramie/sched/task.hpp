// What a user calls a fiber: the unit that is spawned, named, joined, asked to stop. It costs 64 bytes and its closure;
// a stack comes into it only when it runs.
//
// Completion, one 64-bit word, written last by whoever is last:
//   0           running or queued, a join handle exists
//   reference   (wait.hpp) somebody waits for the end
//   detached    nobody will ask for the result
//   done        result or exception is in place
// The end exchanges in `done`: what it finds there says whether to wake, to free, or to leave all to the handle.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/config.hpp>
#include <ramie/sched/local_table.hpp>
#include <ramie/sched/region.hpp>
#include <ramie/sched/task_memory.hpp>
#include <ramie/sched/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace ramie::detail {

struct task;
struct worker;

enum class task_kind : std::uint8_t {
  fiber,
  promoted_job,  // fork_deque.cpp: a fork job taken out of its deque
  resident,      // runs again and again; see worker.hpp
};

struct task_type {
  void (*run)(task& self) noexcept;  // calls the closure; leaves result or exception in the storage
  void (*skip)(task& self, std::exception_ptr why) noexcept;  // instead of run: drops the closure, leaves `why`
  void (*drop)(task& self) noexcept;                          // destroys result or exception
  task_kind kind = task_kind::fiber;
  // Residents only, instead of run; see worker.hpp. While the runtime shuts down `here` is null.
  bool (*turn)(task& self, stack* here) noexcept = nullptr;
  void (*rest)(task& self) noexcept = nullptr;
};

/// What few fibers have: allocated when first asked for.
struct task_extras {
  std::string name;
  std::size_t stack_size = 0;        // 0: the runtime's
  const void* spawned_by = nullptr;  // the task that gave the name; may be gone
  int priority = 0;                  // for policies of the user's own
  int pinned_to = -1;                // pinned_flag: number of the worker
  bool measures_stack = false;       // its stack was painted, see stack_use_table.hpp
  std::optional<std::stop_source> stop;
  region_chain regions;
  local_table locals;
};

struct task {
  static constexpr std::uint64_t detached = 1, done = 2;
  static constexpr std::uint32_t stop_flag = 1;       // asked to stop
  static constexpr std::uint32_t failed_flag = 2;     // storage holds an exception
  static constexpr std::uint32_t strand_flag = 4;     // runs a stolen fork job for `parent`
  static constexpr std::uint32_t own_stack_flag = 8;  // needs a stack of its own size

  static constexpr std::uint32_t forked_flag = 16;     // a fork job of it ran, or runs, as a strand elsewhere
  static constexpr std::uint32_t region_flag = 32;     // inside a region
  static constexpr std::uint32_t scope_flag = 64;      // a scope of it failed once
  static constexpr std::uint32_t pinned_flag = 128;    // runs on `home` only
  static constexpr std::uint32_t homeless_flag = 256;  // runs on the worker that wakes it
  static constexpr std::uint32_t timed_flag = 512;     // a resident whose runs are timed (affinity.hpp)
  static constexpr std::uint32_t limited = strand_flag | region_flag | scope_flag;  // ask limits_of, not only stop_flag

  const task_type* type = nullptr;
  task* next = nullptr;  // link of the injection queue and of the ready queue's overflow
  atomic<std::uint64_t> completion{0};
  atomic<stack*> where{nullptr};         // the stack it runs or waits on; null before its start
  atomic<worker*> home{nullptr};         // the worker that ran it last
  task* parent = nullptr;                // strand_flag: whose job this is
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
};

inline constexpr std::size_t task_alignment = 16;       // of blocks from the caches
inline constexpr std::size_t task_alignment_most = 64;  // of closures and results

/// Memory for a task, 16-byte aligned, from the calling worker's cache; `list` as task_cache::list_of says. Throws
/// std::bad_alloc.
void* allocate_task(std::uint8_t list);
void free_task_memory(void* memory, std::uint8_t list) noexcept;

/// Ends a task's life: storage must be empty already.
void destroy_task(task* t) noexcept;

/// The name given at spawn, or "". Valid while the task is.
[[nodiscard]] const char* name_of(const task* t) noexcept;
/// Made at the first call. The fiber itself and its fork jobs, or who made the task and has not submitted it. Throws
/// std::bad_alloc.
task_extras& extras_of(task& t);

/// Sets the stop flag and wakes the fiber, and strands that run its fork jobs, where they wait cancellably. The caller
/// keeps `t` alive.
void request_stop(task& t) noexcept;

/// An exception has nobody to go to: says so on standard error, and ends the process if `deadly`.
void report_lost_exception(const char* fiber_name, const std::exception_ptr& lost, const char* how,
                           bool deadly) noexcept;

}  // namespace ramie::detail
