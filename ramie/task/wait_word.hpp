// The word and the mark of a stack, by which fibers wait and are woken.
//
//   word = epoch | under_one_lock | early | reason | cancellable | state      state: running, armed, held
//   mark = epoch | claiming | 1                                                of the latest wait that parked
//
// A wait, step by step:
//  W1 The fiber arms its word: state = armed, epoch as it is.
//  W2 It publishes waiter references {stack, epoch} wherever a waker will look (a list, a timer, a join state).
//  W3 It switches away. After the switch the destination marks the stack with the epoch. Now it is parked: armed and
//     marked. No atomic instruction is needed; instead (light fence) the destination looks at the word once more, for W6.
//  W4 A waker claims: it moves the word from {epoch, armed} to {epoch + 1, reason, running}. One claim wins; a late one
//     finds another epoch, or `running`, and does nothing. If the winner had seen the mark, it makes the stack ready.
//  W5 The fiber resumes, reads the reason, and removes what it published in W2 and no waker has used.
//  W6 A waker that finds no mark spins for it: the fiber is a few instructions from its switch. But it may have been
//     preempted there, or still be in W2 and need what the waker holds. So after a while the waker claims all the same,
//     and sets `early` in the word. If the fiber has not switched yet, it sees the claim and does not switch.
//     Otherwise both the destination and the waker may find that the stack must be made ready: the destination by its
//     second look, the waker by looking for the mark once more, after a heavy fence. At least one does. The one that
//     removes `early` from the word makes the stack ready. (A fiber that claims its own wait does none of this.)
// Descriptors are never freed (stack.hpp), so W4 may come arbitrarily late. An epoch has 22 bits, as many as fit into a
// reference: a waker would have to sleep through exactly 4,194,304 waits of one stack to be mistaken.
//
// A plain thread waits by futex on a descriptor of its own; that stays `armed`, and without a mark, until claimed.
//
// A waker that has something to hand over first *claims* (armed -> held: no other waker can win any more), writes what
// it hands over to where the waiter will look for it, and then releases the waiter (held -> running, next epoch). An
// inspector (cancellation, shutdown, dumps) may hold a stack still: armed -> held -> armed again. Every thread that
// meets `held` (a competing waker, the waiter itself, the destination in W3) spins for these few instructions and looks
// again.
//
//  W7 Most waits are published in a single place (a channel's line, a mutex's queue), and every waker holds the lock of
//     that place. Then wakers do not compete with each other, only with inspectors, which are rare; so a waker needs no
//     atomic instruction either, like the owner of a biased lock:
//       waker: the wait is parked and under_one_lock?               inspector: inspectors += 1
//              mark |= claiming                                               heavy fence
//              light fence                                                    as W4, but claiming is waited out
//              inspectors == 0, and the word as it was? else                  inspectors -= 1
//                mark as it was, and W4
//              hand over; word = {epoch + 1, ...}; mark as it was
//     Either the waker sees the inspector, or the inspector sees `claiming`. Only a claiming waker writes the mark of
//     a parked stack, and two of them at once would need the lock at once. A stack that is not marked yet is
//     claimed by W4, so a waiter may compete with its waker. A timer is another waker, so the code that adds one
//     clears the flag first.
//
//  W8 The mark keeps the epoch of the latest wait that really parked, while waits that end before their switch advance
//     the epoch. When the epoch wraps around to that of the mark, a running fiber would look parked, and a claim would
//     make its stack ready a second time. So a fiber that arms with epoch 0 clears the mark first. Each claim advances
//     the epoch by one and needs an armed wait, so no stack passes epoch 0 without this; a mark that is set later names
//     an epoch that is over, until the epoch is 0 again. (In the simulator an epoch has 6 bits, so that a test gets
//     there.)
//
// Orders: arming releases, and the claimer acquires by its compare-and-swap: so it knows the wait and the occupant
// of the stack. The mark of W3 releases the saved context; a waker that sees it (W4, W6, W7) acquires it. A claim
// releases what is handed over, and reason() (W5) acquires it. The fiber's own looks at its word before that, and those
// of the destination in W3, decide only whether to switch, to wait or to make ready: they are relaxed, as are all steps
// whose winner needs no more than to be the only one (the removal of `early`, the mark put back by W7 after the word).
//
// Cancellation: the canceller sets a flag of the task, issues a heavy fence (that of W7), and then holds what it finds
// armed and cancellable, and claims it if nothing shields it (limits_of_wait in region.hpp). The fiber arms, issues a
// light fence, and then looks at the flag. One of them sees the other.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/stack/stack.hpp>

#include <cstdint>

namespace ramie::detail {

namespace wait_word {

inline constexpr std::uint32_t state_mask = 3, running = 0, armed = 1, held = 3;
inline constexpr std::uint32_t by_mark = 2;  // never in the word; in a claim: it was made by W7
inline constexpr std::uint32_t cancellable = 4;
inline constexpr unsigned reason_shift = 3;
inline constexpr std::uint32_t reason_mask = 3;
inline constexpr std::uint32_t early = 32;
inline constexpr std::uint32_t under_one_lock = 64;
inline constexpr unsigned epoch_shift = 10;
inline constexpr std::uint32_t epoch_unit = 1u << epoch_shift;
inline constexpr std::uint32_t epoch_mask = RAMIE_INTERLEAVE ? 0x3f << epoch_shift : 0u - epoch_unit;  // 6 or 22 bits

inline constexpr std::uint32_t claiming = 2;

[[nodiscard]] RAMIE_ALWAYS_INLINE constexpr std::uint32_t state_of(std::uint32_t word) noexcept {
  return word & state_mask;
}
[[nodiscard]] RAMIE_ALWAYS_INLINE constexpr std::uint32_t epoch_of(std::uint32_t word) noexcept {
  return word >> epoch_shift;
}
/// The epoch after that of `word`, in its place; all other bits are off.
[[nodiscard]] RAMIE_ALWAYS_INLINE constexpr std::uint32_t next_epoch(std::uint32_t word) noexcept {
  return ((word & ~(epoch_unit - 1)) + epoch_unit) & epoch_mask;
}
/// The mark of a stack that parked for the wait that `word` is about.
[[nodiscard]] RAMIE_ALWAYS_INLINE constexpr std::uint32_t mark_of(std::uint32_t word) noexcept {
  return (word & ~(epoch_unit - 1)) | 1;
}

}  // namespace wait_word

/// Is the context of `s` saved, and is no waker about to resume it? The answer may be stale at once. Any thread.
[[nodiscard]] inline bool is_parked(const stack& s) noexcept {
  const std::uint32_t word = s.wait_word.load(std::memory_order_relaxed);
  return wait_word::state_of(word) == wait_word::armed &&
         s.parked.load(std::memory_order_relaxed) == wait_word::mark_of(word);
}

}  // namespace ramie::detail
