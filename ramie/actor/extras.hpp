// What few actors have: made when first needed, gone with the cell.
#pragma once

#include <ramie/actor/cell.hpp>
#include <ramie/actor/incarnation.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace ramie::detail {

struct name_entry;

struct actor_extras {
  // Guarded by the cell's lock.
  std::size_t capacity = 0;
  std::size_t stash_capacity = 0;  // 0: no bound
  ramie::overflow overflow = ramie::overflow::block_sender;
  bool asks_wait_for_restart = false;
  bool named = false;           // in the registry of names
  wait_list<> senders;          // wait for room
  tie_list monitors;            // of the actor, whichever incarnation
  std::uint64_t monitored = 0;  // monitors that it has ever made
  exit_reason last;
  actor_cell* supervisor = nullptr;  // a reference
  incarnation now;
  // Of the supervisor and of the actor, by turns.
  std::function<void(actor_cell&)> construct;  // makes the state anew
  void (*report)(actor_cell& child, actor_cell& supervisor, std::uint32_t incarnation,
                 const exit_reason& why) noexcept = nullptr;
  void* record = nullptr;  // the supervisor's own: what it knows of this child
  // Guarded by the lock of the table of names.
  name_entry* names = nullptr;
};

/// The message of any_actor::stop, and what it does: a fiber actor looks for it itself.
[[nodiscard]] bool is_stop(const message& m) noexcept;
void heed_stop(actor_cell& c, const message& m) noexcept;
/// Drops the actor from the registry of names.
void forget_names(actor_cell& c) noexcept;
/// Counts a message that nobody handled, and tells the hook.
void report_dead_letter(actor_cell& c, message& m, letter_fate fate) noexcept;

}  // namespace ramie::detail
