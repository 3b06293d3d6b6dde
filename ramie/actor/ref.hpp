// References to actors: what one sends to, and what one can do to an actor from outside.
#pragma once

#include <ramie/actor/ask_async.hpp>
#include <ramie/actor/dispatch.hpp>
#include <ramie/actor/exit.hpp>
#include <ramie/actor/options.hpp>

#include <chrono>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
void exit_by_signal(actor_cell& c, const exit_reason& why);
/// Before a message of that urgency is sent. Throws invalid_argument, std::bad_alloc.
void prepare_urgency(actor_cell& c, int urgency);
}  // namespace detail

/// A reference to an actor of any class; may be empty. It does not keep the actor running, only the memory of its
/// block. Copying costs an atomic increment. Thread-safe. An empty reference may only be copied, compared and tested.
class any_actor {
 public:
  any_actor() noexcept = default;
  any_actor(const any_actor& other) noexcept : cell_{other.cell_} {
    if (cell_ != nullptr) cell_->add_reference();
  }
  any_actor(any_actor&& other) noexcept : cell_{std::exchange(other.cell_, nullptr)} {}
  any_actor& operator=(any_actor other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~any_actor() {
    if (cell_ != nullptr) cell_->release();
  }

  /// False if it refers to no actor. (A dead actor is one too.)
  [[nodiscard]] explicit operator bool() const noexcept { return cell_ != nullptr; }

  /// Ends the actor when it has handled what was sent to it before; in a fiber actor, `receive` then returns nothing.
  /// Does not suspend. Throws std::bad_alloc.
  void stop() const;
  /// The same, with a reason: exit_reason::of(...), or exit_kind::shutdown.
  void stop(exit_reason why) const;
  /// As if an actor had ended for this reason that it is linked to, but the reason stays what it is: on(exit_signal) is
  /// told, with the calling actor if there is one; an actor without that ends, as by `kill`, unless the reason is
  /// normal. Does not suspend. Throws std::bad_alloc.
  void exit(const exit_reason& why) const { detail::exit_by_signal(*cell_, why); }
  /// Ends the actor after the current handler; if the handler waits, its wait is cancelled. What waits in the mailbox
  /// goes to the dead letters. Does not suspend.
  void kill() const noexcept { cell_->kill(exit_reason{exit_kind::killed}); }
  /// Suspends (a plain thread: blocks) until the actor has ended, and returns why. One that is being restarted has not
  /// ended. Throws `cancelled`, resource_error; usage_error if called by the actor itself.
  exit_reason join(std::source_location where = std::source_location::current()) const {
    cell_->join(nullptr, false, where);
    return cell_->reason();
  }
  /// Same as `join`, but returns nullopt after `timeout`. Also throws std::bad_alloc.
  std::optional<exit_reason> join_for(std::chrono::nanoseconds timeout,
                                      std::source_location where = std::source_location::current()) const {
    const auto deadline = detail::deadline_after(timeout);
    if (!cell_->join(&deadline, false, where)) return std::nullopt;
    return cell_->reason();
  }
  /// False once the actor has ended for good.
  [[nodiscard]] bool alive() const noexcept { return !cell_->has_ended(); }
  /// Why it ended, exit_kind::alive if it has not.
  [[nodiscard]] exit_reason reason() const noexcept { return cell_->reason(); }
  /// Messages in the mailbox, about.
  [[nodiscard]] std::size_t mail_count() const noexcept { return cell_->mail_count(); }
  /// From actor_options, or "". Valid while the reference is.
  [[nodiscard]] std::string_view name() const noexcept { return detail::name_of(cell_); }

  /// The same actor?
  friend bool operator==(const any_actor& a, const any_actor& b) noexcept { return a.cell_ == b.cell_; }
  friend std::strong_ordering operator<=>(const any_actor& a, const any_actor& b) noexcept {
    return std::compare_three_way{}(a.cell_, b.cell_);
  }

  /// Internal. `adopt`: takes over a reference that was counted already.
  struct adopt {};
  any_actor(detail::actor_cell* cell, adopt) noexcept : cell_{cell} {}
  explicit any_actor(detail::actor_cell& cell) noexcept : cell_{&cell} { cell.add_reference(); }
  [[nodiscard]] detail::actor_cell* cell() const noexcept { return cell_; }

 private:
  detail::actor_cell* cell_ = nullptr;
};

/// One monitor of an actor's: what `monitor` returned.
struct monitor_ref {
  std::uint64_t number = 0;  // 0: none
  friend bool operator==(monitor_ref, monitor_ref) noexcept = default;
};

/// Message to a monitoring actor: `who` has ended. See actor::monitor.
struct down {
  any_actor who;
  exit_reason reason;
  monitor_ref ref{};
};

/// Message to a linked actor that handles it: `who` has ended. Without a handler the linked actor ends, too.
struct exit_signal {
  any_actor who;
  exit_reason reason;
};

namespace detail {

/// `note_act`: the watcher's handler of `down`. Throws std::bad_alloc.
monitor_ref monitor_actor(actor_cell& watcher, actor_cell& target, message_function note_act, bool incarnation = false);
void unmonitor_actor(actor_cell& watcher, actor_cell& target) noexcept;
void unmonitor_actor(actor_cell& watcher, monitor_ref which, message_function note_act) noexcept;
void link_actors(actor_cell& self, actor_cell& other);
void unlink_actors(actor_cell& self, actor_cell& other) noexcept;

}  // namespace detail

/// A reference to an actor of class A, or to a fiber actor (A is mailbox<Ms...> then). A message is stored as what the
/// actor's on(...) takes: see message_type.hpp.
template <class A>
class actor_ref : public any_actor {
 public:
  using actor_type = A;
  using any_actor::any_actor;

  /// Sends a message. Suspends only if the mailbox is bounded, full and blocks senders; then it may throw `cancelled`.
  /// Throws std::bad_alloc. A message that an actor sends to itself is accepted even if the mailbox is full.
  template <class T>
  RAMIE_ALWAYS_INLINE tell_status tell(T&& m) const {
    using M = detail::message_for<A, T>;
    check<std::decay_t<T>>();
    return cell()->post(detail::make_message<detail::tell_node<M>>(&detail::act_on_tell<A, M>, 0, std::forward<T>(m)));
  }
  /// As `tell`, but where that would suspend it returns tell_status::full, and an rvalue stays what it was.
  template <class T>
  tell_status try_tell(T&& m) const {
    using M = detail::message_for<A, T>;
    check<std::decay_t<T>>();
    auto* node = detail::make_message<detail::tell_node<M>>(&detail::act_on_tell<A, M>, 0, std::forward<T>(m));
    const tell_status became = cell()->try_post(node, false);
    if (became != tell_status::full || !cell()->blocks_senders()) return became;
    if constexpr (std::same_as<T, M> && std::is_move_assignable_v<M>) m = std::move(node->body);
    std::destroy_at(&node->body);
    detail::free_message(node);
    return became;
  }
  /// As `tell`, handled before ordinary messages, and before less urgent ones: `urgency` is 1 to urgency_most. Those of
  /// the same urgency are handled in order. Also throws invalid_argument.
  template <class T>
  tell_status tell_urgent(T&& m, int urgency = 1) const {
    using M = detail::message_for<A, T>;
    check<std::decay_t<T>>();
    detail::prepare_urgency(*cell(), urgency);
    auto* node = detail::make_message<detail::tell_node<M>>(&detail::act_on_tell<A, M>, 0, std::forward<T>(m));
    node->urgency = static_cast<std::uint8_t>(urgency);
    return cell()->post_slowly(node, true);
  }
  /// Sends a request, suspends until its handler has returned, and returns its result; if that is a reply<T>, until
  /// there is an answer: a T. A fiber actor answers a ramie::request. Throws actor_down if the actor has ended, ends
  /// before it answers, or is being restarted; if its handler threw, not before it has ended or rests. Also
  /// throws broken_reply; mailbox_full; `cancelled`; usage_error if it asks itself; std::bad_alloc.
  template <class T>
  RAMIE_ALWAYS_INLINE auto ask(T&& m, std::source_location where = std::source_location::current()) const {
    using M = detail::message_for<A, T>;
    check_ask<T>();
    return detail::ask_and_wait<A, M>(*cell(), std::forward<T>(m), nullptr, where);
  }
  /// As `ask`; throws timeout_error after `timeout`. The request may still be handled then.
  template <class T>
  auto ask_for(std::chrono::nanoseconds timeout, T&& m,
               std::source_location where = std::source_location::current()) const {
    using M = detail::message_for<A, T>;
    check_ask<T>();
    const auto deadline = detail::deadline_after(timeout);
    return detail::ask_and_wait<A, M>(*cell(), std::forward<T>(m), &deadline, where);
  }
  /// Sends a request and does not wait for the reply: the future brings it, or what `ask` would have thrown
  /// (mailbox_full, say). Suspends as `tell` does. Throws std::bad_alloc.
  template <class T>
  auto ask_async(T&& m) const {
    using M = detail::message_for<A, T>;
    check_ask<T>();
    promise<detail::answer_of<A, M>> reply;
    auto later = reply.get_future();
    detail::ask_by_sink<A, M>(*cell(), std::forward<T>(m), std::move(reply));
    return later;
  }
  /// Sends a request whose answer is that of the reply which it returns: a handler that returns it in turn has passed
  /// its own request on, and is free for other messages. Suspends as `tell` does.
  template <class T>
  auto delegate(T&& m) const {
    using M = detail::message_for<A, T>;
    check_ask<T>();
    reply<detail::answer_of<A, M>> later;
    detail::ask_by_sink<A, M>(*cell(), std::forward<T>(m), detail::reply_sink<detail::answer_of<A, M>>{later});
    return later;
  }

 private:
  template <class M>
  static constexpr void check() {
    static_assert(detail::accepts_message<A, M>,
                  "ramie: this actor has no public on(...) that takes this message (for a fiber actor: the type is not "
                  "among those of its mailbox)");
  }
  template <class T>
  static constexpr void check_ask() {
    if constexpr (detail::is_mailbox<A>)
      static_assert(detail::accepts_request<A, std::decay_t<T>>,
                    "ramie: ask: to be asked, a fiber actor has ramie::request<message, answer> in its mailbox");
    else check<std::decay_t<T>>();
  }
};

}  // namespace ramie

template <>
struct std::hash<ramie::any_actor> {
  std::size_t operator()(const ramie::any_actor& a) const noexcept { return std::hash<const void*>{}(a.cell()); }
};
