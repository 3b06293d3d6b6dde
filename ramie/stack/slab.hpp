// A slab: equal slots of address space in one mapping, each aligned to its size, and their descriptors in another.
//
// All slabs of the process are in one list that only grows, so that a signal handler can walk it at any time:
//  S1 map_slab maps both parts; no other thread knows of the slab.
//  S2 publish puts it into the list (release); find_stack and for_each_stack load the list's head (acquire) and see it
//     whole.
//  S3 hand_out makes the descriptor of the next slot and then raises `handed_out` (release). A reader that loads it
//     (acquire) reads no descriptor beyond, so it sees none half made, and touches no unused page of them.
// Nothing is ever unmapped or taken out. The pages behind both parts are untouched until their slot is handed out.
#pragma once

#include <ramie/stack/refusal.hpp>
#include <ramie/stack/stack.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// At the beginning of the mapping that holds the descriptors, which follow it.
struct alignas(64) slab {
  char* base;  // of slot 0
  std::size_t slot_size;
  stack_class* owner;
  slab* next;  // in the list of all; constant once published
  std::uint32_t slots;
  std::uint32_t first_index;              // the index of slot 0 in its class
  std::atomic<std::uint32_t> handed_out;  // slots 0 to this have descriptors; written under the lock of the class

  [[nodiscard]] stack* descriptor(std::size_t slot) noexcept { return reinterpret_cast<stack*>(this + 1) + slot; }
};

static_assert(sizeof(slab) % alignof(stack) == 0);

/// The tops of neighbouring stacks are shifted against each other by a cache line, in this many steps. Without this all
/// of them lie on the same few cache sets. Measured, six lines at the top of each of N stacks written in turn, ns a
/// stack with 1, 8, 16, 32 colours: N = 1,024: 25, 17, 6.5, 6.2; N = 65,536: 40, 28, 23, 22. A step costs 64 bytes of
/// the one page a parked fiber needs.
inline constexpr std::size_t colours = 16;
inline constexpr std::size_t colour_step = 64;
inline constexpr std::size_t colour_size_max = (colours - 1) * colour_step;

/// S1. Null if the system refuses, and `why` says so. `slots` must be at least 1.
slab* map_slab(stack_class& owner, std::size_t slot_size, std::uint32_t slots, std::uint32_t first_index,
               refusal& why) noexcept;

/// S2.
void publish(slab& s) noexcept;

/// The head of the list of all slabs, for debuggers.
[[nodiscard]] const void* slab_list() noexcept;

/// Under the lock of the class.
inline std::uint32_t slots_left(const slab& s) noexcept {
  return s.slots - s.handed_out.load(std::memory_order_relaxed);  // only the class writes it
}

/// S3: makes the descriptor of the next slot that was never handed out. There must be one. Under the lock of the class.
stack* hand_out(slab& s) noexcept;

}  // namespace ramie::detail
