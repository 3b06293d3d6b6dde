// What a class actor derives from: its view of itself.
#pragma once

#include <ramie/actor/become.hpp>
#include <ramie/actor/ref.hpp>
#include <ramie/actor/spawn.hpp>
#include <ramie/actor/timer.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

void stop_with(actor_cell& c, exit_reason why);
/// The message that `c` is handling. Throws usage_error if there is none, or it is stashed already.
message& current_message(actor_cell& c);
/// Marks it as kept and puts it aside.
void stash_current(actor_cell& c);
void unstash(actor_cell& c) noexcept;

}  // namespace detail

/// What an actor is told that has got no message for a while: see actor::set_receive_timeout.
struct receive_timeout {};

namespace detail {

/// The timer behind it. It looks back when it fires, so that messages need not touch it.
struct quiet {
  std::uint32_t handled;  // when it was started
  std::chrono::nanoseconds time;
};
inline timer_key quiet_key() noexcept { return timer_key{~std::uint64_t{1}}; }

template <class A>
void watch_for_quiet(actor_cell& c, std::chrono::nanoseconds time);

template <class A>
void act_on_quiet(message& self, message_verb verb, void* context) {
  if (verb == message_verb::handle) {
    auto& c = *static_cast<actor_cell*>(context);
    const quiet since = static_cast<tell_node<quiet>&>(self).body;
    const bool is_quiet = c.handled.load(std::memory_order_relaxed) - since.handled <= 1;  // this one counts
    watch_for_quiet<A>(c, since.time);
    receive_timeout told;
    if (is_quiet) call_handler<A, receive_timeout>(c, told);
  } else if (verb == message_verb::type) {
    *static_cast<const type_info**>(context) = &type_of<receive_timeout>();
  }
}

template <class A>
void watch_for_quiet(actor_cell& c, std::chrono::nanoseconds time) {
  keep_timer(
      c, quiet_key(),
      start_timer<quiet>(c, &act_on_quiet<A>, time, std::chrono::nanoseconds{0},
                         quiet{static_cast<std::uint32_t>(c.handled.load(std::memory_order_relaxed)), time}, true));
}

}  // namespace detail

/// Base of class actors: `class account : public ramie::actor<account>`. A has a public `on(M)` for each message type M
/// it takes; what `on` returns is the reply to `ask`. It handles one message at a time; a handler may suspend, and one
/// that throws ends the actor with that exception as its reason. Objects are made by spawn_actor only. All that is
/// declared here is for the actor's own handlers and constructor, and does not suspend.
template <class A>
class actor {
 public:
  actor(const actor&) = delete;
  actor& operator=(const actor&) = delete;

 protected:
  actor() = default;
  ~actor() = default;

  /// A reference to this actor.
  [[nodiscard]] actor_ref<A> self() noexcept { return actor_ref<A>{cell()}; }
  /// Ends the actor after this handler, or after its constructor. What waits in the mailbox goes to the dead letters.
  void stop() noexcept { cell().ending = true; }
  /// The same, with a reason: exit_reason::of(...), or exit_kind::shutdown. Throws std::bad_alloc.
  void stop(exit_reason why) { detail::stop_with(cell(), std::move(why)); }

  /// Sends this actor a `down` message when `other` ends, immediately if it has ended already; one for each call. A
  /// restart by a supervisor does not count as an end, unless `of` is monitoring::incarnation. If this actor itself is
  /// restarted, its monitors and unhandled `down` messages are dropped. Throws std::bad_alloc.
  monitor_ref monitor(const any_actor& other, monitoring of = monitoring::actor) {
    static_assert(detail::handles_message<A, down>, "ramie: an actor that monitors others needs on(ramie::down)");
    return detail::monitor_actor(cell(), *other.cell(), &detail::act_on_tell<A, down>, of == monitoring::incarnation);
  }
  /// Removes this actor's monitors of `other`. A `down` message that was already sent may still arrive.
  void unmonitor(const any_actor& other) noexcept { detail::unmonitor_actor(cell(), *other.cell()); }
  /// Takes this one back. on(down) is not told of it any more, even if the note is in the mailbox already. Takes as
  /// long as there are monitors and messages.
  void unmonitor(monitor_ref which) noexcept { detail::unmonitor_actor(cell(), which, &detail::act_on_tell<A, down>); }
  /// If either actor ends abnormally, the other ends too, unless it handles `exit_signal`; then it gets that message
  /// instead, for normal ends as well. A restart also breaks the link. Two actors have one link at most, however often
  /// they ask for it. Throws std::bad_alloc.
  void link(const any_actor& other) { detail::link_actors(cell(), *other.cell()); }
  /// Removes the link with `other`, if there is one.
  void unlink(const any_actor& other) noexcept { detail::unlink_actors(cell(), *other.cell()); }

  /// Sends `m` to this actor after `delay`, unless it ends or is restarted first. Ignores the mailbox's capacity.
  /// Throws std::bad_alloc.
  template <class T>
  timer_handle send_after(std::chrono::nanoseconds delay, T&& m) {
    using M = detail::message_for<A, T>;
    static_assert(detail::handles_message<A, M>, "ramie: send_after: this actor has no on(...) for this message");
    return detail::start_timer<M>(cell(), &detail::act_on_tell<A, M>, delay, std::chrono::nanoseconds{0},
                                  std::forward<T>(m));
  }
  /// The same, again and again every `period` (at least a microsecond), until cancelled or this incarnation ends. A
  /// tick for which a bounded mailbox has no room is left out. Copies `m` each time, as a part of its handler: if that
  /// throws, the actor fails.
  template <class T>
  timer_handle send_every(std::chrono::nanoseconds period, T&& m) {
    using M = detail::message_for<A, T>;
    static_assert(detail::handles_message<A, M>, "ramie: send_every: this actor has no on(...) for this message");
    static_assert(std::is_copy_constructible_v<M>, "ramie: send_every: the message must be copyable");
    const auto least = std::max(period, std::chrono::nanoseconds{std::chrono::microseconds{1}});
    return detail::start_timer<M>(cell(), &detail::act_on_tell<A, M>, least, least, std::forward<T>(m));
  }

  /// Sends a request without waiting for its answer. When there is one, then(answer<R>) is called as a part of this
  /// actor, like a handler, between its messages; never, if this incarnation of it has ended by then. Suspends as
  /// `tell` does. Two actors may ask each other this way. Throws std::bad_alloc.
  template <class B, class T, class F>
  void ask_then(const actor_ref<B>& other, T&& m, F then) {
    using M = detail::message_for<B, T>;
    static_assert(detail::accepts_request<B, M>, "ramie: ask_then: this actor cannot be asked that");
    using R = detail::answer_of<B, M>;
    static_assert(std::invocable<F&, answer<R>>, "ramie: ask_then: the function takes a ramie::answer<R>");
    detail::ask_by_sink<B, M>(*other.cell(), std::forward<T>(m), detail::then_sink<R, F>{cell(), std::move(then)});
  }

  /// The same; the answer fails with timeout_error if there is none after `timeout`, and one that comes later is
  /// dropped. Where a full mailbox makes it wait for room, that ends then, too: with mailbox_full, perhaps.
  template <class B, class T, class F>
  void ask_then_for(std::chrono::nanoseconds timeout, const actor_ref<B>& other, T&& m, F then) {
    using M = detail::message_for<B, T>;
    static_assert(detail::accepts_request<B, M>, "ramie: ask_then_for: this actor cannot be asked that");
    using R = detail::answer_of<B, M>;
    static_assert(std::invocable<F&, answer<R>>, "ramie: ask_then_for: the function takes a ramie::answer<R>");
    using once = detail::then_once<R, F>;
    const auto state = std::make_shared<once>(std::move(then));
    const auto deadline = detail::deadline_after(timeout);
    auto call = [state, timer = detail::start_timer<std::shared_ptr<once>>(cell(), &detail::act_on_late_answer<R, once>,
                                                                           timeout, std::chrono::nanoseconds{0},
                                                                           state)](answer<R> a) mutable {
      timer.cancel();
      (*state)(std::move(a));
    };
    try {
      detail::ask_by_sink<B, M>(*other.cell(), std::forward<T>(m),
                                detail::then_sink<R, decltype(call)>{cell(), std::move(call)}, &deadline);
    } catch (...) {
      state->answered = true;  // the caller has heard
      throw;
    }
  }

  /// As send_after and send_every, for a timer with a key: a text, a number, an enumerator. One that has the key
  /// already is cancelled first.
  template <class T>
  void start_timer(timer_key key, std::chrono::nanoseconds delay, T&& m) {
    run_timer(std::move(key), delay, std::chrono::nanoseconds{0}, std::forward<T>(m));
  }
  template <class T>
  void repeat_timer(timer_key key, std::chrono::nanoseconds period, T&& m) {
    static_assert(std::is_copy_constructible_v<std::decay_t<T>>, "ramie: repeat_timer: the message must be copyable");
    const auto least = std::max(period, std::chrono::nanoseconds{std::chrono::microseconds{1}});
    run_timer(std::move(key), least, least, std::forward<T>(m));
  }
  /// False if there is none. Its message is not handled any more, even if it is in the mailbox already.
  bool cancel_timer(const timer_key& key) noexcept { return detail::cancel_keyed(cell(), key); }
  /// From now on on(ramie::receive_timeout) is told whenever no message has come for `time`, at the latest when none
  /// has for twice as long. Replaces what was set before. Throws std::bad_alloc.
  void set_receive_timeout(std::chrono::nanoseconds time) {
    static_assert(detail::handles_message<A, receive_timeout>, "ramie: this needs on(ramie::receive_timeout)");
    detail::watch_for_quiet<A>(cell(), time);
  }
  void cancel_receive_timeout() noexcept { detail::cancel_keyed(cell(), detail::quiet_key()); }

  /// Is there a timer with this key? One that sends once is there until its message is handled.
  [[nodiscard]] bool has_timer(const timer_key& key) noexcept { return detail::is_running(cell(), key); }

  /// From the next message on, these functions replace `on` for the message types they take; each must return what `on`
  /// returns. Other messages go to `on` as before. Replaces what an earlier `become` set. Throws std::bad_alloc.
  template <class... Handlers>
  void become(Handlers... handlers) {
    detail::change_behaviour(cell(), detail::make_behaviour<A>(std::move(handlers)...));
  }
  /// Back to `on` for all messages.
  void unbecome() { detail::change_behaviour(cell(), nullptr); }

  /// Puts the message that is being handled aside; a request is not answered, whatever the handler returns. The handler
  /// must not have moved from it: take it by const reference, or give it back by stash(std::move(m)). If the handler
  /// then throws, the message is lost. Throws std::bad_alloc; stash_full, see actor_options::stash_capacity.
  void stash() { detail::stash_current(cell()); }
  template <class M>
    requires(!std::is_lvalue_reference_v<M>)
  void stash(M&& m) {
    detail::restore_body(detail::current_message(cell()), std::forward<M>(m));
    detail::stash_current(cell());
  }
  /// What was stashed comes next, before all that waits, oldest first.
  void unstash_all() noexcept { detail::unstash(cell()); }

 private:
  template <class T>
  void run_timer(timer_key key, std::chrono::nanoseconds delay, std::chrono::nanoseconds period, T&& m) {
    using M = detail::message_for<A, T>;
    static_assert(detail::handles_message<A, M>, "ramie: start_timer: this actor has no on(...) for this message");
    detail::keep_timer(
        cell(), std::move(key),
        detail::start_timer<M>(cell(), &detail::act_on_tell<A, M>, delay, period, std::forward<T>(m), true));
  }
  detail::actor_cell& cell() noexcept {
    static_assert(std::is_base_of_v<actor, A>);
    auto* block = reinterpret_cast<char*>(static_cast<A*>(this)) - detail::offset_of_state<A>;
    return *std::launder(reinterpret_cast<detail::actor_cell*>(block));
  }
};

/// `to` gets `m` after `delay`; there is always room for it. If it ends or is restarted before, it does not. Any
/// thread; does not suspend. Throws std::bad_alloc. (A class actor's own send_after is found first: write
/// ramie::send_after.)
template <class A, class T>
timer_handle send_after(std::chrono::nanoseconds delay, const actor_ref<A>& to, T&& m) {
  using M = detail::message_for<A, T>;
  static_assert(detail::accepts_message<A, M>, "ramie: send_after: this actor does not take these messages");
  auto* t = new detail::typed_timer<M>{&detail::act_on_tell<A, M>, std::forward<T>(m)};
  t->at_once = detail::is_mailbox<A>;
  detail::launch_timer_for(t, *to.cell(), delay);
  return timer_handle{t};
}

}  // namespace ramie
