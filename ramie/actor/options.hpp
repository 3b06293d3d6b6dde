// What a single actor can be told at its start.
#pragma once

#include <ramie/sched/options.hpp>

#include <cstddef>
#include <string>

namespace ramie {

/// What happens to a message for which a bounded mailbox has no room.
enum class overflow {
  block_sender,  // tell suspends the sender until there is room
  fail,          // tell returns tell_status::full; the message goes to the dead letters
  drop_newest,   // the message goes to the dead letters, tell returns tell_status::dropped
  drop_oldest,   // the oldest waiting message goes to the dead letters, the new one is taken
};

struct actor_options {
  /// Messages that may wait; 0: no bound. The message being handled does not count, nor does what ramie itself sends
  /// (stop, down, exit_signal).
  std::size_t mailbox_capacity = 0;
  ramie::overflow overflow = ramie::overflow::block_sender;
  /// Name in reports. Empty: none.
  std::string name{};
  /// While a supervisor restarts the actor, requests wait instead of failing with actor_down.
  bool asks_wait_for_restart = false;
  /// Pins the actor to this worker (0-based); -1: no pin.
  int worker = -1;
  ramie::affinity affinity = affinity::automatic;
  /// For a user's scheduling_policy, which defines its meaning.
  int priority = 0;
  /// Messages that actor::stash may put aside; then it throws stash_full. 0: as many as the mailbox may hold.
  std::size_t stash_capacity = 0;
};

/// The highest urgency of a message, see actor_ref::tell_urgent. A guess: each is a pointer for an actor that is told
/// something above the first.
inline constexpr int urgency_most = 7;

/// What became of a message.
enum class tell_status {
  ok,       // it is in the mailbox (it will be handled if the actor lives so long)
  full,     // overflow::fail, and no room
  dropped,  // overflow::drop_newest, and no room
  down,     // the actor has ended
};

}  // namespace ramie
