// What few actors have: made when first needed, gone with the cell.
#pragma once

#include <ramie/actor/cell.hpp>
#include <ramie/base/type_info.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ramie::detail {

struct actor_timer;

/// Who wants to know of an actor's end. Holds a reference to `other`.
struct watch {
  actor_cell* other;
  message* note;  // monitors: the message that will tell; null for links
};

/// Other handlers in place of a class actor's own, see become().
struct behaviour {
  virtual ~behaviour() = default;
  /// The handler for messages of this type, or null: the class's own is used.
  virtual void* find(const type_info& message) noexcept = 0;
};

struct actor_extras {
  // Guarded by the cell's lock.
  std::size_t capacity = 0;
  ramie::overflow overflow = ramie::overflow::block_sender;
  bool asks_wait_for_restart = false;
  bool named = false;   // in the registry of names
  wait_list<> senders;  // wait for room
  std::vector<watch> watchers;
  exit_reason kill_reason;
  exit_reason last;
  actor_cell* supervisor = nullptr;  // a reference
  std::uint32_t incarnation = 0;
  // Of the supervisor and of the actor, by turns.
  std::function<void(actor_cell&)> construct;  // makes the state anew
  void (*report)(actor_cell& child, actor_cell& supervisor, std::uint32_t incarnation,
                 const exit_reason& why) noexcept = nullptr;
  // The running actor's own.
  std::shared_ptr<behaviour> becoming;
  std::vector<std::shared_ptr<behaviour>> replaced;  // one of them may be running
  message_queue stash;

  spin_lock timers_lock;
  actor_timer* timers = nullptr;
};

/// Ends all timers of the actor.
void cancel_timers(actor_extras& x) noexcept;
/// Drops the actor from the registry of names.
void forget_names(actor_cell& c) noexcept;
/// Counts a message that nobody handled, and tells the hook.
void report_dead_letter(actor_cell& c, message& m, letter_fate fate) noexcept;
/// What happens to `c` when `gone`, to which it is linked, ended.
void spread_exit(actor_cell& c, actor_cell& gone, const exit_reason& why) noexcept;
/// Fills a monitor's note in and sends it.
void send_note(actor_cell& to, message* note, actor_cell& gone, const exit_reason& why) noexcept;
/// Removes links of `c` to `gone`.
void drop_link(actor_cell& c, const actor_cell& gone) noexcept;

}  // namespace ramie::detail
