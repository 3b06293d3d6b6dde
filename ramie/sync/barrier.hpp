// A meeting point that is used again and again, as std::barrier.
//
//  B1 The number holds the phase and what is still missing in it (31 bits each). An arrival lowers what is missing.
//  B2 The last arrival runs the completion function with the lock free, because it may suspend. Nothing is missing
//     meanwhile, so a further arrival is an error, and waiters of this phase queue up.
//  B3 Then it takes the lock again, starts the next phase with what is expected by then, and wakes all waiters. All of
//     them are of the phase that ends: no arrival in the next one was possible.
// The rest as in wait_queue.hpp.
#pragma once

#include <ramie/fiber/cancellation.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <cstddef>
#include <limits>
#include <source_location>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

struct no_completion {
  void operator()() const noexcept {}
};

/// All of a barrier but its completion function.
class barrier_core {
 public:
  explicit barrier_core(std::ptrdiff_t expected);
  barrier_core(const barrier_core&) = delete;
  barrier_core& operator=(const barrier_core&) = delete;

  /// B1. True for the last arrival, which has to call `finish`. Throws usage_error.
  bool arrive(std::ptrdiff_t n, bool drop, std::uint32_t& phase);
  /// B3.
  void finish() noexcept;

  RAMIE_ALWAYS_INLINE void wait(std::uint32_t phase, const std::source_location& where) {
    const std::uint64_t value = queue_.lock();
    if (phase_of(value) != phase) queue_.unlock(value);
    else queue_.unlock_and_wait(value, {"barrier", where}, [this, phase, where] { wait(phase, where); });
  }

 private:
  static constexpr std::uint32_t phase_of(std::uint64_t value) noexcept {
    return static_cast<std::uint32_t>(value >> 31 & 0x7fff'ffff);
  }
  wait_queue queue_;
  std::uint64_t expected_;  // of each phase from the next on; under the lock
};

}  // namespace detail

/// A number of fibers, plain threads, or both meet here in each phase. The completion function runs once a phase, in
/// the last to arrive, before any of them continues. It may suspend; its waits are shielded (ramie::shield), since the
/// phase belongs to all. An exception from it ends the process.
template <class Completion = detail::no_completion>
class barrier {
  static_assert(std::is_invocable_v<Completion&>, "ramie::barrier: the completion function takes no arguments");

 public:
  /// Proof of an arrival, to wait with.
  class [[nodiscard]] arrival_token {
   public:
    arrival_token(arrival_token&&) noexcept = default;
    arrival_token& operator=(arrival_token&&) noexcept = default;

   private:
    friend barrier;
    explicit arrival_token(std::uint32_t phase) noexcept : phase_{phase} {}
    std::uint32_t phase_;
  };

  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return std::numeric_limits<std::int32_t>::max(); }

  /// For `expected` arrivals a phase. Throws invalid_argument if that is negative or more than max().
  explicit barrier(std::ptrdiff_t expected, Completion completion = Completion{})
      : core_{expected}, completion_{std::move(completion)} {}

  /// Arrives `n` times, without waiting. Suspends only if the completion function does. Throws usage_error, and changes
  /// nothing, if fewer than `n` arrivals are still expected in this phase.
  arrival_token arrive(std::ptrdiff_t n = 1) {
    std::uint32_t phase = 0;
    if (core_.arrive(n, false, phase)) complete();
    return arrival_token{phase};
  }

  /// Suspends until the phase of the token is over. Throws `cancelled`, resource_error; the arrival still counts.
  RAMIE_ALWAYS_INLINE void wait(arrival_token&& arrival, std::source_location where = std::source_location::current()) {
    detail::ready_point();
    core_.wait(arrival.phase_, where);
  }

  /// wait(arrive()).
  RAMIE_ALWAYS_INLINE void arrive_and_wait(std::source_location where = std::source_location::current()) {
    std::uint32_t phase = 0;
    const bool is_last = core_.arrive(1, false, phase);
    if (is_last) complete();
    detail::ready_point();  // the arrival counts
    if (!is_last) core_.wait(phase, where);
  }

  /// Arrives and leaves: later phases expect one less. Suspends only if the completion function does. Throws
  /// usage_error if no arrival is expected any more in this phase.
  void arrive_and_drop() {
    std::uint32_t phase = 0;
    if (core_.arrive(1, true, phase)) complete();
  }

 private:
  void complete() noexcept {
    if constexpr (!std::is_same_v<Completion, detail::no_completion>) detail::call_quietly(completion_);
    core_.finish();
  }

  detail::barrier_core core_;
  [[no_unique_address]] Completion completion_;
};

}  // namespace ramie
