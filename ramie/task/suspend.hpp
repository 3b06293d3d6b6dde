// Leaving the running fiber, inlined into the code that waits.
//
// The jump that ends a switch does not disturb the return-stack predictor, but the returns after it would: each
// function on the way back to the user returns on a different stack from the one that it was called on, and is
// mispredicted (4-6 ns each; yield between two fibers went from 14 to 7 ns). So the work before and after a switch is
// in calls that return on the stack they came from, and the switch itself stands in the user's function. Under
// sanitizers, which must be told of each switch by the library's own code, all of it is one call.
#pragma once

#include <ramie/context/context.hpp>
#include <ramie/stack/stack.hpp>
#include <ramie/task/scheduling.hpp>

#include <cstdint>

namespace ramie::detail {

RAMIE_ALWAYS_INLINE void switch_and_arrive(worker_base* w, stack* self, stack* to, after_switch what,
                                           const exception_state& aside) noexcept {
  const transfer back = switch_context(self->saved, to->saved,
                                       {reinterpret_cast<std::uintptr_t>(self) | static_cast<std::uintptr_t>(what), w});
  arrive(back.word, back.worker, aside);
}

/// False, without effect, if there is no stack to run anything else on. Otherwise returns when the fiber is
/// resumed, maybe on another worker.
RAMIE_ALWAYS_INLINE bool suspend_here(worker_base* w, after_switch what) noexcept {
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

RAMIE_ALWAYS_INLINE void yield_here(worker_base* w) noexcept {
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
