// A stack as the scheduler sees it: a descriptor that lives outside the stack's own memory.
//
// Descriptors are never unmapped and never reused for anything else (they are type-stable), so a waker
// that comes late may always read one: the epoch in `wait_word` tells it that its wait is over.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/context/context.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

class stack_class;  // all stacks of one size and one kind of guard, see pool.hpp
class wait;         // task/wait.hpp

struct alignas(64) stack {
  context saved;                    // where to resume; complete only after the switch away
  atomic<std::uint32_t> wait_word;  // task/wait_word.hpp: epoch, reason, state
  atomic<std::uint32_t> parked;     // the same: for which wait it was left
  atomic<void*> occupant;           // the task that runs or waits here, null while pooled
  union {
    stack* next;          // link of the pool's free lists and of the run queues
    const wait* waiting;  // while it waits: for what, and where
  };
  stack_class* owner;
  char* top;  // one past the highest usable byte, 64-byte aligned (colour included)
};

static_assert(sizeof(stack) == 64);

}  // namespace ramie::detail
