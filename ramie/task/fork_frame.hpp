// A fork job as its fiber and its thief see it. queue/fork_deque.hpp has the protocol.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/word.hpp>

#include <cstdint>

namespace ramie::detail {

struct fork_deque;
struct promoted_job;

/// A fork job, on the stack of the fiber that forked it. `state` holds the function to run until a worker other than
/// the owner has run it (`done`) or the owner waits for that (a waiter reference). A thief reads the function before
/// the owner can find out about the theft: inside `thieves`.
struct fork_frame {
  using function = void (*)(fork_frame&) noexcept;
  static constexpr std::uint64_t done = 1;

  word<std::uint64_t> state;
  word<fork_deque*> deque;
  word<promoted_job*> promoted;  // set with deque == dead_forks; null there: stolen before that. R6: see keep_in_flight

  /// For waiters and wakers.
  [[nodiscard]] atomic_ref<std::uint64_t> shared_state() noexcept {
    return atomic_ref<std::uint64_t>{*reinterpret_cast<std::uint64_t*>(&state)};
  }

  /// In place of `promoted`, once another worker has claimed the job: exceptions in flight where it was promoted or, if
  /// they are fewer, where it is joined (R6 in sched/fork_jobs.cpp). By the parent.
  void keep_in_flight(std::uint32_t n) noexcept {
    promoted.store_relaxed(reinterpret_cast<promoted_job*>(in_flight_unit * n + in_flight_mark));
  }
  /// What was kept, or `otherwise`. The parent's strand, and whoever looks at it.
  [[nodiscard]] std::uint32_t in_flight_or(std::uint32_t otherwise) const noexcept {
    const auto kept = reinterpret_cast<std::uintptr_t>(promoted.load_relaxed());
    return (kept & in_flight_mark) == 0 ? otherwise : static_cast<std::uint32_t>(kept / in_flight_unit);
  }

 private:
  static constexpr std::uintptr_t in_flight_mark = 1, in_flight_unit = 2;  // jobs have even addresses
};

/// A frame that need not lie on its fiber's stack, but belongs to something that does (a scope).
struct owned_frame : fork_frame {
  void* owner;
};

}  // namespace ramie::detail
