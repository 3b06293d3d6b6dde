// What few actors have: made when first needed, gone with the cell.
#pragma once

#include <ramie/actor/cell.hpp>
#include <ramie/actor/incarnation.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace ramie::detail {

/// Of an actor that has been told something above the first urgency: the last message of each, null if there is none.
struct urgency_levels {
  std::array<message*, urgency_most + 1> last{};
};
// Urgent mail, under the lock.
void put_urgent(actor_cell& c, message* m) noexcept;
/// Of one that has been taken out of the list of urgent mail, where it was behind `before`.
void note_urgent_taken(actor_cell& c, const message& m, message* before) noexcept;
/// All of it goes into a fiber actor's own list, behind what was taken in before and is as urgent.
void take_in_urgent(actor_cell& c) noexcept;
/// The oldest of the least urgent that may be dropped, taken out; or null.
message* take_least_urgent(actor_cell& c) noexcept;

struct actor_extras {
  /// From the caches of task blocks, as the entries of names: see registry.cpp.
  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size) noexcept;

  // Guarded by the cell's lock.
  std::size_t capacity = 0;
  std::size_t stash_capacity = 0;  // 0: no bound
  ramie::overflow overflow = ramie::overflow::block_sender;
  bool asks_wait_for_restart = false;
  wait_list<> senders;  // wait for room
  std::unique_ptr<urgency_levels> levels;
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
};

/// For actors of which somebody keeps a list, without making extras for each: see pool_core.hpp.
struct keeper_type {
  /// An incarnation ends, and the runtime goes on. True: the actor has a supervisor now, which decides.
  bool (*ends)(actor_cell&, const exit_reason& why) noexcept;
  /// It has ended for good, and nobody knows it yet.
  void (*ended)(actor_cell&) noexcept;
};

/// The message of any_actor::stop, and what it does: a fiber actor looks for it itself.
[[nodiscard]] bool is_stop(const message& m) noexcept;
void heed_stop(actor_cell& c, const message& m) noexcept;
/// B3 in membership.hpp: it leaves all that it is in. It is closed.
void end_memberships(actor_cell& c) noexcept;
/// Counts a message that nobody handled, and tells the hook.
void report_dead_letter(actor_cell& c, message& m, letter_fate fate) noexcept;

// Message traces: patterns/message_trace.cpp.
/// How many there are. While there is one, the locks of its runtime's actors have no owner, so all comes to `try_post`.
extern atomic<std::uint32_t> message_traces;
/// Of an actor that has just been enlisted.
void trace_from_start(actor_cell& c) noexcept;
tell_status try_post_traced(actor_cell& c, message* m, bool before_others);
/// A timer's message, when its actor comes to it. On the actor's own turn.
void trace_timed(actor_cell& c, message& m) noexcept;

}  // namespace ramie::detail
