// What the code on a worker asks of the scheduler: where to switch when a fiber waits, and where what was woken goes.
// The floors below the scheduler include this instead of the scheduler itself. Implemented in sched/: switches in
// loop.cpp, all that makes something ready in make_ready.cpp, the fork deque's slow path in fork_jobs.cpp.
#pragma once

#include <ramie/task/current.hpp>

#include <cstdint>

namespace ramie::detail {

struct fork_deque;
struct fork_frame;
struct stack;
struct task;

// ---- leaving the running fiber (suspend.hpp) -----------------------------------------------------------------------

/// The layout that the Itanium C++ ABI fixes for a thread's exceptions in flight (__cxa_eh_globals). They belong to the
/// fiber, so they are put aside while others run.
struct exception_state {
  void* caught;
  std::uint64_t uncaught;  // an unsigned int and padding

  /// Thrown, and not caught yet.
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return static_cast<std::uint32_t>(uncaught); }
  /// The thread's own; a thief may look meanwhile, or just before.
  void set(const exception_state& to) noexcept {
    caught = to.caught;
    __atomic_store_n(&uncaught, to.uncaught, __ATOMIC_RELAXED);
  }
  /// in_flight, by a thief (T5 of queue/fork_deque.hpp).
  [[nodiscard]] std::uint32_t in_flight_elsewhere() const noexcept {
    return static_cast<std::uint32_t>(__atomic_load_n(&uncaught, __ATOMIC_RELAXED));
  }
};

/// What to do with the stack that was left, once its context is complete. Travels in the low bits of its
/// address.
enum class after_switch : std::uintptr_t {
  nothing = 0,
  make_ready = 1,  // it yielded
  release = 2,     // it was a loop's and is free
  park = 3,        // wait_word.hpp, W3
};

/// Before: promotes pending fork jobs, puts exceptions aside, chooses the destination (a ready fiber, else a fresh
/// loop) and makes that `running`. Null, without effect, if there is no stack for a fresh loop.
stack* depart(worker_base* w, exception_state& aside) noexcept;
/// The same for a fiber that yields. Null if nothing else is ready.
stack* depart_to_others(worker_base* w, exception_state& aside) noexcept;
/// After: handles the stack that was left, restores exceptions.
void arrive(std::uintptr_t word, void* worker, const exception_state& aside) noexcept;
/// All of it in one call.
bool suspend_out_of_line(worker_base* w, after_switch what) noexcept;
bool yield_out_of_line(worker_base* w) noexcept;

// ---- waking --------------------------------------------------------------------------------------------------------

/// A fiber resumes: `s` is parked and claimed. Any thread; does not suspend.
void make_ready(stack* s) noexcept;

/// Residents: tasks that run again and again, such as actors. A resident is idle, ready (in a queue) or running;
/// the code that makes it ready must know that it is idle, so it is never in two queues or run twice at once.
///  R1 It runs like a new task, in place on the loop's stack (`type->turn`), and may suspend like any fiber.
///  R2 When that returns, the worker takes the stack away from it: the occupant becomes null.
///  R3 `type->rest` is called as the last thing: it makes the resident ready again, leaves it idle, or ends its life.
/// If `turn` is given the stack, it may do R2 and R3 itself, in this order, and return true; then the resident
/// may already run elsewhere.
/// Any thread; does not suspend.
void make_resident_ready(task& t) noexcept;
/// The same for `me`, the calling worker; quicker where `t` ran here last.
void make_resident_ready_from(task& t, worker_base* me) noexcept;

// ---- fork jobs: queue/fork_deque.hpp ------------------------------------------------------------------------------

/// F3 found the attention mark or a full deque: wakes a sleeper, makes room. Owner.
void fork_attention(fork_deque& d) noexcept;
/// The frame of the calling fiber is not its youngest job: promotes all of them, unless they are already, so that each
/// can be taken back in any order.
void fork_uncover(const fork_frame& f) noexcept;

}  // namespace ramie::detail
