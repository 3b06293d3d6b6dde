// Handlers that an actor takes on at run time.
#pragma once

#include <ramie/actor/dispatch.hpp>
#include <ramie/actor/extras.hpp>
#include <ramie/base/type_info.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie::detail {

/// The type of the one parameter of a function object, decayed.
template <class F>
struct parameter_of : parameter_of<decltype(&F::operator())> {};
template <class C, class R, class P>
struct parameter_of<R (C::*)(P)> : std::type_identity<std::decay_t<P>> {};
template <class C, class R, class P>
struct parameter_of<R (C::*)(P) const> : std::type_identity<std::decay_t<P>> {};
template <class C, class R, class P>
struct parameter_of<R (C::*)(P) noexcept> : std::type_identity<std::decay_t<P>> {};
template <class C, class R, class P>
struct parameter_of<R (C::*)(P) const noexcept> : std::type_identity<std::decay_t<P>> {};

template <class A, class F>
struct one_handler : substitute<handler_key<A, typename parameter_of<F>::type>,
                                reply_of<A, handler_key<A, typename parameter_of<F>::type>>> {
  using M = handler_key<A, typename parameter_of<F>::type>;
  using R = reply_of<A, M>;
  static_assert(handles_message<A, M>, "ramie: become: the class must have an on(...) for this message");
  F f;
  explicit one_handler(F function) : f{std::move(function)} {}
  R call(M& m) override {
    static_assert(std::convertible_to<decltype(f(std::move(m))), R> || std::is_void_v<R>,
                  "ramie: become: the function must return what on(...) returns");
    return static_cast<R>(f(std::move(m)));
  }
};

template <class A, class... Fs>
struct behaviour_of final : behaviour, private one_handler<A, Fs>... {
  explicit behaviour_of(Fs... fs) : one_handler<A, Fs>{std::move(fs)}... {}
  void* find(const type_info& message) noexcept override {
    void* found = nullptr;
    static_cast<void>(
        ((found == nullptr && message == type_of<typename one_handler<A, Fs>::M>()
              ? (found = static_cast<substitute<typename one_handler<A, Fs>::M, typename one_handler<A, Fs>::R>*>(
                     static_cast<one_handler<A, Fs>*>(this)),
                 true)
              : false) ||
         ...));
    return found;
  }
};

template <class A, class... Fs>
std::shared_ptr<behaviour> make_behaviour(Fs... fs) {
  return std::make_shared<behaviour_of<A, Fs...>>(std::move(fs)...);
}

/// Null: back to the class's own. A handler may call this while it is itself one of those replaced: they live until the
/// next message. Throws std::bad_alloc.
void change_behaviour(actor_cell& c, std::shared_ptr<behaviour> to);

/// Moves `m` back into the message it was moved out of. Throws usage_error if it is of another type.
template <class M>
void restore_body(message& current, M&& m) {
  const type_info* type = nullptr;
  current.act(current, message_verb::type, &type);
  if (*type != type_of<M>())
    throw usage_error{"ramie: stash: the argument has another type than the message that is being handled"};
  static_cast<body_node<M>&>(current).body = std::forward<M>(m);
}

}  // namespace ramie::detail
