// Leaving the running fiber, inlined into the code that waits.
//
// The jump that ends a switch does not disturb the return-stack predictor, but the returns behind it would: each
// function on the way back to the user returns on another fiber's stack than it was called on, and is predicted wrong
// (4-6 ns each; yield between two fibers went from 14 to 7 ns). So what must be done before and after a switch are
// calls that return on the stack they came from, and the switch itself stands in the user's function. Under sanitizers,
// which must be told of each switch by the library's own code, all of it is one call.
#pragma once

#include <ramie/context/context.hpp>
#include <ramie/sched/fork_deque.hpp>
#include <ramie/stack/stack.hpp>

#include <cstdint>

namespace ramie::detail {

/// The layout that the Itanium C++ ABI fixes for a thread's exceptions in flight (__cxa_eh_globals). They belong to the
/// fiber, so they are put aside while others run.
struct exception_state {
  void* caught;
  std::uint64_t uncaught;  // an unsigned int and padding
  [[nodiscard]] bool empty() const noexcept { return caught == nullptr && static_cast<std::uint32_t>(uncaught) == 0; }
};

/// What is to be done about the stack that was left, once its context is complete. Travels in the low bits of its
/// address.
enum class after_switch : std::uintptr_t {
  nothing = 0,
  make_ready = 1,  // it yielded
  release = 2,     // it was a loop's and is free
  park = 3,        // wait_word.hpp, W3
};

/// Before: promotes pending fork jobs, puts exceptions aside, chooses where to go (a ready fiber, else a fresh loop)
/// and makes that `running`. Null, and nothing happened, if there is no stack for a fresh loop.
stack* depart(fork_deque* w, exception_state& aside) noexcept;
/// The same for a fiber that yields. Null if nobody else wants to run.
stack* depart_to_others(fork_deque* w, exception_state& aside) noexcept;
/// After: sees to the stack that was left, brings exceptions back.
void arrive(std::uintptr_t word, void* worker, const exception_state& aside) noexcept;
/// All of it in one call.
bool suspend_out_of_line(fork_deque* w, after_switch what) noexcept;
bool yield_out_of_line(fork_deque* w) noexcept;

RAMIE_ALWAYS_INLINE void switch_and_arrive(fork_deque* w, stack* self, stack* to, after_switch what,
                                           const exception_state& aside) noexcept {
  const transfer back = switch_context(self->saved, to->saved,
                                       {reinterpret_cast<std::uintptr_t>(self) | static_cast<std::uintptr_t>(what), w});
  arrive(back.word, back.worker, aside);
}

/// False, and nothing happened, if there is no stack to run anything else on. Otherwise returns when the fiber is
/// resumed, maybe on another worker.
RAMIE_ALWAYS_INLINE bool suspend_here(fork_deque* w, after_switch what) noexcept {
#if RAMIE_ASAN || RAMIE_TSAN
  return suspend_out_of_line(w, what);
#else
  stack* self = w->running;
  exception_state aside;
  stack* to = depart(w, aside);
  if (to == nullptr) [[unlikely]]
    return false;
  switch_and_arrive(w, self, to, what, aside);
  return true;
#endif
}

RAMIE_ALWAYS_INLINE void yield_here(fork_deque* w) noexcept {
#if RAMIE_ASAN || RAMIE_TSAN
  yield_out_of_line(w);
#else
  stack* self = w->running;
  exception_state aside;
  if (stack* to = depart_to_others(w, aside); to != nullptr)
    switch_and_arrive(w, self, to, after_switch::make_ready, aside);
#endif
}

}  // namespace ramie::detail
