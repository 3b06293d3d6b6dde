// An actor as the scheduler sees it: a resident task with a mailbox, behind it in the same block its state. The
// protocol is described in cell.cpp.
#pragma once

#include <ramie/actor/exit.hpp>
#include <ramie/actor/joiner.hpp>
#include <ramie/actor/message.hpp>
#include <ramie/actor/options.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/type_info.hpp>
#include <ramie/queue/adaptive_lock.hpp>
#include <ramie/task/wait.hpp>
#include <ramie/worker/resident.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace ramie::detail {
struct actor_extras;
struct membership;

/// What is the same for all actors of one class.
struct actor_type : resident_type {
  const type_info* of;                    // its class, or mailbox<...>
  void (*destroy)(actor_cell&) noexcept;  // ends the state
  void (*serve)(actor_cell&);             // fiber actors: runs the function; null for class actors
  message_function exit_act;              // its handler of exit_signal, null if it has none: it dies with its links
  std::size_t state_offset;
  bool plain_state;  // its destructor does nothing
  const struct keeper_type* keeper = nullptr;
  bool foreign = false;  // it only stands for an actor elsewhere: foreign.hpp
};

struct actor_cell : resident {
  // The states that these make up are drawn in docs/design/actors.md.
  static constexpr std::uint8_t closed = 1;     // ends or has ended for good: mail goes to the dead letters
  static constexpr std::uint8_t waiting = 2;    // its incarnation ends or has ended, and a supervisor decides
  static constexpr std::uint8_t bounded = 4;    // the mailbox has a capacity
  static constexpr std::uint8_t ended = 8;      // for good, and everybody who wants to know knows it
  static constexpr std::uint8_t resting = 16;   // waiting, and not run: the thread that takes it over owns it
  static constexpr std::uint8_t starting = 32;  // its state is made anew just now
  static constexpr std::uint8_t receives = 64;  // a fiber actor waits for mail: `receiving`
  static constexpr std::uint8_t gone = 128;     // no state any more, and its ties have been ended

  static constexpr std::uint8_t urgent_mail = 1;
  static constexpr std::uint8_t kill_wanted = 2;
  static constexpr std::uint8_t finish_wanted = 4;  // a supervisor is done with it
  static constexpr std::uint8_t stop_wanted = 8;    // its constructor called stop()

  static constexpr std::uint32_t burst = 64;  // messages handled before others may run: a guess

  message_queue mail, urgent;  // lock
  /// Taken out of `mail`, not handled yet; belongs to the running actor, or to the thread that schedules it. `last` is
  /// kept by fiber actors only, for others add nothing behind.
  message_queue batch;
  message* handling = nullptr;              // the same
  waiter_ref receiving;                     // lock: fiber actors, while they wait for mail
  atomic<actor_extras*> more{nullptr};      // made under the lock, never replaced
  joiner_list joiners;                      // lock
  membership* memberships = nullptr;        // lock: its names and groups, see membership.hpp
  atomic<std::uint32_t> references{2};      // the living actor's, and the first reference
  std::uint32_t posted = 0;                 // lock: messages ever taken in, but for ramie's own and those dropped again
  bool scheduled = true;                    // lock: not just waiting for mail, so senders need not make it ready
  std::uint8_t status = 0;                  // lock, and changed by the running actor alone: closed, waiting, ...
  atomic<std::uint8_t> interrupts{0};       // written under the lock: see above
  bool ending = false;                      // the running actor's own: stop was called
  bool asked = false;                       // lock: requests were taken in since the incarnation began
  exit_kind kill_kind = exit_kind::killed;  // lock
  exit_kind last_exit = exit_kind::alive;   // lock: of the latest incarnation that ends or has ended

  [[nodiscard]] const actor_type& how() const noexcept { return *static_cast<const actor_type*>(type); }
  [[nodiscard]] void* state() noexcept { return reinterpret_cast<char*>(this) + how().state_offset; }
  /// Messages that wait, about. Any thread.
  [[nodiscard]] std::size_t mail_count() noexcept;

  /// Takes the message, whatever becomes of it. A bounded mailbox may suspend the caller, who then may be cancelled:
  /// throws `cancelled`.
  RAMIE_ALWAYS_INLINE tell_status post(message* m) {
    if (post_as_owner<false>(m)) [[likely]]
      return tell_status::ok;
    return post_slowly(m, false);
  }
  /// As `post`, but a full mailbox that would block returns `full` and leaves the message to the caller.
  tell_status try_post(message* m, bool before_others);
  tell_status try_post_unseen(message* m, bool before_others);  // by message traces
  /// Suspends while the mailbox is full and the actor lives. Throws `cancelled`. False: `deadline` came first.
  bool wait_for_room(std::source_location from, const steady::time_point* deadline = nullptr);
  /// As `post`, for a message that the caller waits for: `full` leaves it to the caller if the mailbox would block.
  RAMIE_ALWAYS_INLINE tell_status post_request(message* m) {
    if (post_as_owner<true>(m)) [[likely]]
      return tell_status::ok;
    return try_post(m, false);
  }
  /// The same, and waits for room as `post` does; until `deadline`, then it is a dead letter.
  tell_status post_async_request(message* m, const steady::time_point* deadline) {
    if (post_as_owner<true>(m)) [[likely]]
      return tell_status::ok;
    return deadline == nullptr ? post_slowly(m, false) : post_until(m, *deadline);
  }
  /// As things are just now. Any thread.
  [[nodiscard]] bool has_room() noexcept;
  /// True if a full mailbox makes senders wait.
  [[nodiscard]] bool blocks_senders() const noexcept;
  /// As `post`; `before_others`: it is handled before ordinary mail.
  tell_status post_slowly(message* m, bool before_others);
  /// As `post`, but waits for room until `deadline`; one that has passed is no wait at all.
  tell_status post_until(message* m, const steady::time_point& deadline);
  /// Mail from ramie itself: never refused for want of room. False if the actor has ended; the message is gone then.
  bool post_lifecycle(message* m) noexcept;
  /// The same for a note to one incarnation; flags `lifecycle`, `own`. False: that is over; `m` is gone if `drops`.
  bool post_note(message* m, std::uint32_t incarnation, bool drops = true) noexcept;
  /// A timer's message: for one incarnation if it has the flag `own`. Taken in though there be no room, if `always`;
  /// refused otherwise.
  void post_timed(message* m, std::uint32_t incarnation, bool always) noexcept;

  /// Ends the actor after what it is doing; a handler that waits is cancelled, if `cancels`. Any thread. False if it
  /// rests already: then there is no end to wait for.
  bool kill(exit_reason why, bool cancels = true) noexcept;
  void kill_incarnation(exit_reason why, std::uint32_t incarnation) noexcept;
  /// An actor that is `waiting` ends for good, sooner or later. Any thread.
  void let_finish() noexcept;
  /// For supervisors, on a worker: an actor that rests is the caller's alone from now on. False if it does not rest.
  bool take_over() noexcept;
  void start_again();           // throws what the constructor throws; then it rests again
  void finish_here() noexcept;  // it has ended for good when this returns
  /// Suspends until the actor has ended for good, or, if `incarnation`, until it is at least waiting. Throws
  /// `cancelled`; usage_error if it is the caller itself. False: `deadline` came first.
  bool join(const steady::time_point* deadline, bool incarnation, std::source_location from);
  [[nodiscard]] exit_reason reason() noexcept;
  [[nodiscard]] bool has_ended() noexcept;

  /// The extras, made at the first call. Takes the lock. Throws std::bad_alloc.
  actor_extras& extras();

  void add_reference() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) [[unlikely]]
      free_cell();
  }

  // What task_type and resident_type ask for.
  static bool turn(task& t, stack* here) noexcept;
  static bool turn_of_fiber(task& t, stack* here) noexcept;
  static void rest(task& t) noexcept;
  static void shut_down(task& t) noexcept;
  static void describe(const void* copy, const void* type, resident_facts& found) noexcept;

  // The running actor's own.
  bool whole_turn(std::uint32_t budget, stack* here) noexcept;
  bool handle_burst(std::uint32_t budget, stack* here);  // true: at rest
  bool begin_turn();                                     // what comes before the usual; false: no turn
  message* next_urgent() noexcept;
  // Under the lock.
  void let_a_sender_in() noexcept;           // there is room for one more
  void let_senders_in() noexcept;            // there may be room for more, or one who was let in did not need it
  void make_room_by(message& out) noexcept;  // which was taken out
  void handle(message* m);
  void end_turn(std::exception_ptr failure) noexcept;
  RAMIE_COLD void fail_turn() noexcept;
  message* take_failed() noexcept;  // the message that the handler failed on, or null
  void refuse_failed(message& m, const exit_reason& why, const std::exception_ptr& failure) noexcept;
  // The end: incarnation.cpp.
  void end(exit_reason why) noexcept;
  void begin_to_end(const exit_reason& why, std::uint8_t into) noexcept;   // I4
  bool end_incarnation(const exit_reason& why) noexcept;                   // I5 to I7
  void keep_mail() noexcept;                                               // I8
  void come_to_rest() noexcept;                                            // I9, under the lock
  void finish(exit_reason why, bool known, bool silent = false) noexcept;  // I10
  void discard_all(message* first, letter_fate fate) noexcept;

 private:
  struct taken {
    message* first;  // null: there is none
    bool at_rest;
  };
  /// A1 where the caller owns the mailbox. False: nothing was done.
  template <bool request>
  RAMIE_ALWAYS_INLINE bool post_as_owner(message* m) noexcept {
    worker_base* me = current_worker();
    if (!lock.try_enter_as_owner(me)) [[unlikely]]
      return false;
    if (status != 0) [[unlikely]] {
      lock.leave_as_owner();
      return false;
    }
    ++posted;
    if constexpr (request) asked = true;
    me->count_lock();
    if (scheduled) {
      mail.push(m);
      lock.leave_as_owner();
      return true;
    }
    scheduled = true;
    batch.first = m;
    lock.leave_as_owner();
    make_resident_ready_from(*this, me);
    return true;
  }
  RAMIE_NOINLINE message* next_when_interrupted() noexcept;
  RAMIE_NOINLINE taken take_mail(stack* here) noexcept;
  /// A1 for all others, and for messages that count for no bound.
  void put_and_unlock(message* m) noexcept;
  void wake_and_unlock() noexcept {
    if (scheduled) {
      lock.unlock();
      return;
    }
    scheduled = true;
    const waiter_ref waiter = receiving;
    lock.unlock();
    if (!waiter) [[likely]]
      make_resident_ready(*this);
    else wake(waiter);
  }
  [[nodiscard]] bool full() noexcept;
  void raise(std::uint8_t interrupt) noexcept;
  bool kill_locked(exit_reason why, bool cancels = true) noexcept;
  void put_lifecycle_and_unlock(message* m) noexcept;
  [[nodiscard]] bool runs(std::uint32_t incarnation) const noexcept;  // lock: it is alive and this one
  RAMIE_NOINLINE bool begin_special(message& m);
  RAMIE_COLD void free_cell() noexcept;
};

template <class State>
inline constexpr std::size_t state_alignment = alignof(State) > task_alignment ? alignof(State) : task_alignment;
/// Where the state begins in an actor's block.
template <class State>
inline constexpr std::size_t offset_of_state =
    (sizeof(actor_cell) + state_alignment<State> - 1) / state_alignment<State> * state_alignment<State>;

/// Now + timeout, or the end of time.
[[nodiscard]] steady::time_point deadline_after(std::chrono::nanoseconds timeout) noexcept;

/// The actor that the caller is running as, or null.
[[nodiscard]] actor_cell* this_actor() noexcept;

/// Memory for a cell and its state. Throws std::bad_alloc.
actor_cell* allocate_cell(const actor_type& type, std::size_t size, std::uint8_t list);
/// For the calling worker's runtime. Throws usage_error on a plain thread, `cancelled` at shutdown, std::bad_alloc.
void prepare_cell(actor_cell& c, const actor_options* options);
/// Its state is there: mail may come. Throws `cancelled` while the runtime shuts down.
void enlist_cell(actor_cell& c);
/// One that was never enlisted, or whose constructor threw: within a handler of that exception.
void abandon_cell(actor_cell& c) noexcept;

}  // namespace ramie::detail
