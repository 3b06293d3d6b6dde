// Actors that are somewhere else, on another node say: a cell stands for one here, takes its mail and passes it on. To
// those who have a reference it is an actor like others; what it costs them is nothing. foreign.cpp says how it runs.
#pragma once

#include <ramie/actor/become.hpp>
#include <ramie/actor/ref.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace ramie::detail {

/// What is behind such a cell. Calls come one at a time, from its turns, and must not suspend.
class foreign_actor {
 public:
  foreign_actor() = default;
  foreign_actor(const foreign_actor&) = delete;
  foreign_actor& operator=(const foreign_actor&) = delete;
  virtual ~foreign_actor() = default;

  /// Mail, in order. True: it belongs to the callee now. False: not now; before, `hold_foreign` was called.
  virtual bool take(actor_cell& self, message& m) noexcept = 0;
  /// kill() was called. The cell ends only by end_foreign.
  virtual void kill(actor_cell& self, const exit_reason& why) noexcept = 0;
  /// No more mail for now.
  virtual void turn_ends(actor_cell& self) noexcept = 0;
  /// It ends; what `take` kept is to be discarded, by discard_foreign. What waits is a dead letter afterwards.
  virtual void ends(const exit_reason& why) noexcept = 0;
};

struct foreign_state {
  std::unique_ptr<foreign_actor> behind;
  // Guarded by the cell's lock.
  exit_reason end_reason;
  bool held = false;
  bool parked =
      false;  // held, and its turn is over: it counts as scheduled, and the thread that takes this back makes it ready
  std::vector<std::pair<const message*, steady::time_point>> deadlines;  // of requests under way to `take`
};

/// The handler of exit_signal: what one gets that is linked, or whose `exit` is called.
void act_on_foreign_exit(message& self, message_verb verb, void* context);
bool foreign_turn(task& t, stack* here) noexcept;
void foreign_rest(task& t) noexcept;
void foreign_shut_down(task& t) noexcept;
void destroy_foreign(actor_cell& c) noexcept;
actor_cell* start_foreign(const actor_type& type, std::unique_ptr<foreign_actor> behind, const actor_options& options);

/// `of`: the class of the actor that is elsewhere, and of the references here.
template <class A>
inline constexpr actor_type foreign_type{{{.run = nullptr,
                                           .skip = nullptr,
                                           .drop = nullptr,
                                           .kind = task_kind::resident,
                                           .turn = &foreign_turn,
                                           .rest = &foreign_rest},
                                          &foreign_shut_down,
                                          &actor_cell::describe,
                                          sizeof(actor_cell)},
                                         &type_of<A>(),
                                         &destroy_foreign,
                                         nullptr,
                                         &act_on_foreign_exit,
                                         offset_of_state<foreign_state>,
                                         false,
                                         nullptr,
                                         true};

/// On a worker. Throws as spawn_actor does.
template <class A>
actor_ref<A> make_foreign(std::unique_ptr<foreign_actor> behind, const actor_options& options) {
  return actor_ref<A>{start_foreign(foreign_type<A>, std::move(behind), options), any_actor::adopt{}};
}

[[nodiscard]] inline bool is_foreign(const actor_cell& c) noexcept { return c.how().foreign; }
/// Only in its turns, or while somebody else keeps it from ending.
[[nodiscard]] inline foreign_actor& behind(actor_cell& c) noexcept {
  return *static_cast<foreign_state*>(c.state())->behind;
}
/// In a turn: no mail is taken until resume_foreign, which may come at once.
void hold_foreign(actor_cell& c) noexcept;
/// Any thread.
void resume_foreign(actor_cell& c) noexcept;
/// The actor has ended, for this reason, or nobody knows what became of it: node_lost. Any thread; does not suspend.
void end_foreign(actor_cell& c, const exit_reason& why) noexcept;
/// True if nobody refers to it but its own life, and one reference of the caller's: nobody can send to it any more.
[[nodiscard]] bool is_forgotten(const actor_cell& c) noexcept;

/// A cell that is no actor, for the two functions below: one thread's at a time. release() it twice.
[[nodiscard]] actor_cell* make_answering_cell();
/// Answers a request that `take` kept, by handling it with `becoming` in place of handlers: its substitute for the
/// message returns the answer, or throws. Takes the message.
void answer_foreign(actor_cell& with, message& m, std::shared_ptr<behaviour> becoming) noexcept;
/// Without an answer. Takes the message.
void discard_foreign(actor_cell& with, message& m, letter_fate fate, const exit_reason& why) noexcept;
/// What any_actor::stop sent, or nothing. In `take`; the message stays.
[[nodiscard]] std::optional<exit_reason> stop_in(actor_cell& c, message& m) noexcept;

/// As any_actor::exit, but `who` is somebody else; `linked`: as the end of an actor that is linked to `c`.
void exit_from_elsewhere(actor_cell& c, const any_actor& who, const exit_reason& why, bool linked);

/// Of its mailbox, if a full one makes senders wait; else 0.
[[nodiscard]] std::size_t capacity_of(const actor_cell& c) noexcept;

/// Until when the asker waits, if it has said so. In `take`.
[[nodiscard]] std::optional<steady::time_point> deadline_of_request(actor_cell& c, const message& m) noexcept;

}  // namespace ramie::detail
