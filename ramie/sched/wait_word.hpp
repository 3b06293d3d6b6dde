// The word and the mark of a stack, by which fibers wait and are woken.
//
//   word = epoch | under_one_lock | early | reason | cancellable | state      state: running, armed, held
//   mark = epoch | claiming | 1                                                of the latest wait that was left for
//
// A wait, step by step:
//  W1 The fiber arms its word: state = armed, epoch as it is.
//  W2 It publishes waiter references {stack, epoch} wherever a waker will look (a list, a timer, a join state).
//  W3 It switches away. After the switch the destination marks the stack with the epoch. Now it is parked: armed, and
//     marked so. No atomic instruction is needed; instead (light fence) the destination looks at the word once more, for W6.
//  W4 A waker claims: it moves the word from {epoch, armed} to {epoch + 1, reason, running}. One claim wins; a late one
//     finds another epoch, or `running`, and does nothing. If the winner had seen the mark, it makes the stack ready.
//  W5 The fiber goes on, reads the reason, and takes back what it published in W2 and nobody used.
//  W6 A waker that finds no mark waits for it: the fiber is a few instructions from its switch. But it may have been
//     preempted there, or still be busy with W2, in need of what the waker holds. So after a while the waker claims all
//     the same, and notes in the word that it was `early`. If the fiber has not switched yet, it sees that and stays.
//     Otherwise the destination and the waker both may find that it has to be made ready: the one by its
//     second look, the other by looking for the mark once more, after a heavy fence. At least one does. Who takes
//     `early` out of the word makes the stack ready. (A fiber that claims its own wait need not do any of this.)
// Descriptors are never freed (stack.hpp), so W4 may come arbitrarily late. An epoch has 22 bits, as many as fit into a
// reference: a waker would have to sleep through exactly 4,194,304 waits of one stack to be mistaken.
//
// A plain thread waits on a descriptor of its own by futex; it stays `armed`, and without a mark, until it is claimed.
//
// A waker that has something to hand over first *claims* (armed -> held: nobody else can win any more), writes what it
// brings to where the waiter will look for it, and then lets the waiter go on (held -> running, next epoch). An
// inspector (cancellation, shutdown, dumps) may hold a stack still: armed -> held -> armed again. Whoever meets
// `held`, a competing waker, the waiter itself or the destination in W3, waits the few instructions out and then looks
// again.
//
//  W7 Most waits are published in one place alone (a channel's line, a mutex's queue), and whoever claims them holds
//     its lock. Then wakers do not compete with each other, only with inspectors, who are rare; so a waker needs no
//     atomic instruction either, as the owner of a biased lock:
//       waker: the wait is parked and under_one_lock?               inspector: inspectors += 1
//              mark |= claiming                                               heavy fence
//              light fence                                                    as W4, but claiming is waited out
//              inspectors == 0, and the word as it was? else                  inspectors -= 1
//                mark as it was, and W4
//              hand over; word = {epoch + 1, ...}; mark as it was
//     Either the waker sees the inspector, or the inspector `claiming`. Nobody but a claiming waker writes the mark of
//     a parked stack, and two of them at once would need the lock at once. A stack that is not marked
//     yet is claimed by W4, so a waiter may compete with its waker. A timer is another waker, so whoever adds one
//     takes the flag out before.
//
// Cancellation: the canceller sets a flag of the task, issues a heavy fence (that of W7), and then claims what it finds
// armed and cancellable. The fiber arms, issues a light fence, and then looks at the flag. One of them sees the other.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/stack/stack.hpp>

#include <cstdint>

namespace ramie::detail {

namespace wait_word {

inline constexpr std::uint32_t state_mask = 3, running = 0, armed = 1, held = 3;
inline constexpr std::uint32_t by_mark = 2;  // never in the word: of a claim, that it was made by W7
inline constexpr std::uint32_t cancellable = 4;
inline constexpr unsigned reason_shift = 3;
inline constexpr std::uint32_t reason_mask = 3;
inline constexpr std::uint32_t early = 32;
inline constexpr std::uint32_t under_one_lock = 64;
inline constexpr unsigned epoch_shift = 10;
inline constexpr std::uint32_t epoch_unit = 1u << epoch_shift;

inline constexpr std::uint32_t claiming = 2;

[[nodiscard]] RAMIE_ALWAYS_INLINE constexpr std::uint32_t state_of(std::uint32_t word) noexcept {
  return word & state_mask;
}
[[nodiscard]] RAMIE_ALWAYS_INLINE constexpr std::uint32_t epoch_of(std::uint32_t word) noexcept {
  return word >> epoch_shift;
}
/// Of a stack that was left for the wait that `word` is about.
[[nodiscard]] RAMIE_ALWAYS_INLINE constexpr std::uint32_t mark_of(std::uint32_t word) noexcept {
  return (word & ~(epoch_unit - 1)) | 1;
}

}  // namespace wait_word

/// Has the context of `s` been saved, and is nobody about to let it go on? May be over at once. Any thread.
[[nodiscard]] inline bool is_parked(const stack& s) noexcept {
  const std::uint32_t word = s.wait_word.load(std::memory_order_acquire);
  return wait_word::state_of(word) == wait_word::armed &&
         s.parked.load(std::memory_order_acquire) == wait_word::mark_of(word);
}

}  // namespace ramie::detail
