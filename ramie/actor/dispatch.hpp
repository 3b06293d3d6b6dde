// From a message to the handler that takes it, with all types known.
#pragma once

#include <ramie/actor/cell.hpp>
#include <ramie/actor/message.hpp>
#include <ramie/actor/message_type.hpp>
#include <ramie/actor/reply.hpp>
#include <ramie/base/error.hpp>

#include <concepts>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

namespace detail {

/// A class actor has an `on` for M: by value, by rvalue, or by (const) lvalue reference.
template <class A, class M>
concept handles_message = requires(A& a, M m) { a.on(std::move(m)); } || requires(A& a, M& m) { a.on(m); };

template <class A>
inline constexpr bool is_mailbox = false;
template <class... Ms>
inline constexpr bool is_mailbox<mailbox<Ms...>> = true;

template <class A, class M>
inline constexpr bool accepts_message = handles_message<A, M>;
template <class... Ms, class M>
inline constexpr bool accepts_message<mailbox<Ms...>, M> = (std::same_as<M, Ms> || ...);
template <class A, class M>
inline constexpr bool accepts_request = handles_message<A, M>;
template <class... Ms, class M>
inline constexpr bool accepts_request<mailbox<Ms...>, M> = requires { typename request_among<M, Ms...>::request; };

template <class A, class M>
RAMIE_ALWAYS_INLINE decltype(auto) call_on(A& a, M& m) {
  if constexpr (requires { a.on(std::move(m)); }) return a.on(std::move(m));
  else return a.on(m);
}
/// What `on` returns, and what `ask` does.
template <class A, class M>
using reply_of = decltype(call_on(std::declval<A&>(), std::declval<M&>()));
template <class A, class M>
struct answer_of_ask : answer_type<reply_of<A, M>> {};
template <class... Ms, class M>
struct answer_of_ask<mailbox<Ms...>, M> : request_among<M, Ms...> {};
template <class A, class M>
using answer_of = typename answer_of_ask<A, M>::type;

/// A handler that stands in for A's own, see become().
template <class M, class R>
struct substitute {
  virtual R call(M& m) = 0;

 protected:
  ~substitute() = default;
};

/// The handler in force for messages of this type, if it is not the class's own.
void* substitute_for(actor_cell& c, const type_info& message) noexcept;

template <class A, class M>
RAMIE_ALWAYS_INLINE decltype(auto) call_handler(actor_cell& c, M& m) {
  using R = reply_of<A, M>;
  if (c.more.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
    using K = handler_key<A, M>;
    if (void* other = substitute_for(c, type_of<K>()); other != nullptr) {
      auto& handler = *static_cast<substitute<K, R>*>(other);
      if constexpr (std::is_convertible_v<M*, K*>) {
        return static_cast<R>(handler.call(m));
      } else {
        K converted(std::move(m));
        return static_cast<R>(handler.call(converted));
      }
    }
  }
  return static_cast<R>(
      call_on(*std::launder(reinterpret_cast<A*>(reinterpret_cast<char*>(&c) + offset_of_state<A>)), m));
}

template <class T>
void attach_asker(actor_cell& c, const reply<T>& later, asker<T>&& by) {
  if (!later.core()->attach(c, std::move(by))) throw_two_askers();
}

template <class M>
using tell_node = body_node<M>;

/// What the one who asked gets instead of a reply.
std::exception_ptr refusal_of(const discarded& why) noexcept;
template <class Request>
auto answer_after(const discarded& why) {
  return answer<typename answer_type<decltype(Request::reply)>::type>{refusal_of(why)};
}

/// For what is told to A: handler, destructor and name of M.
template <class A, class M>
void act_on_tell(message& self, message_verb verb, void* context) {
  auto& node = static_cast<tell_node<M>&>(self);
  if (verb == message_verb::handle) [[likely]] {
    if constexpr (!is_mailbox<A>) {
      if constexpr (std::is_trivially_destructible_v<M>) {
        static_cast<void>(call_handler<A, M>(*static_cast<actor_cell*>(context), node.body));
      } else {
        payload_guard guard{node};
        static_cast<void>(call_handler<A, M>(*static_cast<actor_cell*>(context), node.body));
      }
    }
  } else if (verb == message_verb::take) {
    if constexpr (is_mailbox<A>) {
      payload_guard guard{node};
      static_cast<typename A::any_message*>(context)->emplace(std::in_place_type<M>, std::move(node.body));
    }
  } else if (verb == message_verb::discard) {
    if constexpr (is_request<M>)
      node.body.reply.core()->settle(answer_after<M>(*static_cast<const discarded*>(context)));
    std::destroy_at(&node.body);
  } else {
    if constexpr (is_request<M>)
      if (verb == message_verb::text) return describe_payload(node.body.body, verb, context);
    describe_payload(node.body, verb, context);
  }
}

/// Handles a request that has one, by `act`, to which it looks like one without: the handler sees what the sender saw.
void handle_within(asked_by& origin, message& self, message_function act, actor_cell& c);

template <class M, class R>
struct ask_node : body_node<M> {
  asked_by origin;
  waiter_ref who;
  reply_slot<R>* slot;
  template <class T>
  ask_node(T&& from, reply_slot<R>* reply) noexcept(std::is_nothrow_constructible_v<M, T>)
      : body_node<M>(std::forward<T>(from)), slot{reply} {}
};

/// The asker, if it still waits, gets `actor_down` or `mailbox_full`.
void refuse_reply(waiter_ref who, reply_state& slot, const discarded& why) noexcept;

/// The same for what A is asked.
template <class A, class M>
void act_on_ask(message& self, message_verb verb, void* context) {
  using R = reply_of<A, M>;
  auto& node = static_cast<ask_node<M, answer_of<A, M>>&>(self);
  if (verb == message_verb::handle) [[likely]] {
    auto& c = *static_cast<actor_cell*>(context);
    if (node.origin.bound != nullptr) [[unlikely]]
      return handle_within(node.origin, self, &act_on_ask<A, M>, c);
    payload_guard guard{node};
    if constexpr (is_reply<R>) {
      const R later = call_handler<A, M>(c, node.body);
      if ((node.flags & message::kept) == 0) attach_asker(c, later, {node.who, node.slot, nullptr});
    } else if constexpr (std::is_void_v<R>) {
      call_handler<A, M>(c, node.body);
      if ((node.flags & message::kept) == 0) give_reply(node.who, node.slot);
    } else {
      R reply = call_handler<A, M>(c, node.body);
      if ((node.flags & message::kept) == 0) give_reply(node.who, node.slot, std::move(reply));
    }
  } else if (verb == message_verb::fail) {
    refuse_reply(node.who, *node.slot, *static_cast<const discarded*>(context));
  } else if (verb == message_verb::discard) {
    std::destroy_at(&node.body);
    node.origin.let_go();
    refuse_reply(node.who, *node.slot, *static_cast<const discarded*>(context));
  } else {
    describe_payload(node.body, verb, context);
  }
}

/// For actors elsewhere, see patterns/foreign.cpp: until when the asker of `m` waits.
void note_deadline(actor_cell& c, const message& m, steady::time_point deadline) noexcept;

[[noreturn]] void throw_reply(const reply_state& slot);
[[noreturn]] void throw_ask_timeout();
void check_not_self(const actor_cell& c);

/// Sends the request and waits: the reply, or an exception. `set_asker(node, waiter)` tells it who waits. `answers`:
/// the actor itself, in its handler; not later, nor another.
template <class R, bool answers, class Node, class SetAsker>
RAMIE_ALWAYS_INLINE R send_and_wait(actor_cell& c, Node* node, reply_slot<R>& slot, SetAsker set_asker,
                                    const steady::time_point* deadline, std::source_location where) {
  const asking_wait_site site{{ask_reason, where}, answers ? &c : nullptr};
  wake_reason why;
  if (deadline != nullptr && c.how().foreign) [[unlikely]]
    note_deadline(c, *node, *deadline);
  for (;;) {
    wait pause{wait::kind::cancellable, site};
    set_asker(*node, pause.ref());
    if (c.post_request(node) == tell_status::full && c.blocks_senders()) [[unlikely]] {
      // Nobody has the node: the wait is ours to take back, and somebody can only have cancelled it.
      try {
        if (!pause.withdraw() && pause.suspend() == wake_reason::cancelled) throw cancelled{};
        if (!c.wait_for_room(where, deadline)) throw_ask_timeout();
      } catch (...) {
        std::destroy_at(&node->body);
        if constexpr (requires { node->origin.let_go(); }) node->origin.let_go();
        free_message(node);
        throw;
      }
      continue;
    }
    why = deadline == nullptr ? pause.suspend() : pause.suspend_until(*deadline);
    break;
  }
  if (why == wake_reason::timeout) throw_ask_timeout();
  if (why == wake_reason::cancelled) throw cancelled{};
  if (slot.is != reply_state::kind::value) [[unlikely]]
    throw_reply(slot);
  if constexpr (!std::is_void_v<R>) return std::move(*slot.value);
}

template <class A, class M, class T>
RAMIE_ALWAYS_INLINE auto ask_and_wait(actor_cell& c, T&& body, const steady::time_point* deadline,
                                      std::source_location where) -> answer_of<A, M> {
  using R = answer_of<A, M>;
  static_assert(!std::is_reference_v<R>, "ramie: ask: the handler must return a value, not a reference");
  check_not_self(c);
  reply_slot<R> slot;
  if constexpr (is_mailbox<A>) {
    using request_type = typename answer_of_ask<A, M>::request;
    reply<R> later;  // it must not stay here: if the actor drops its copy, there is no answer
    attach_asker(c, later, {waiter_ref{}, &slot, nullptr});
    auto* node = make_message<tell_node<request_type>>(&act_on_tell<A, request_type>, message::request,
                                                       request_type{std::forward<T>(body), std::move(later)});
    return send_and_wait<R, false>(
        c, node, slot, [](auto& n, waiter_ref who) { n.body.reply.core()->wait_anew(who); }, deadline, where);
  } else {
    auto* node = make_message<ask_node<M, R>>(&act_on_ask<A, M>, message::request, std::forward<T>(body), &slot);
    node->origin.set();
    return send_and_wait<R, std::is_same_v<R, reply_of<A, M>>>(
        c, node, slot, [](ask_node<M, R>& n, waiter_ref who) RAMIE_LAMBDA_INLINE { n.who = who; }, deadline, where);
  }
}

}  // namespace detail
}  // namespace ramie
