// As what a message is stored, and which `on` takes it: decided where it is sent, by the compiler.
//
// `tell(5)` to an actor with on(long) sends a long, and `tell("y")` to one with on(std::string) a string: the message
// is of the type that its handler takes, so that nothing is left to point at what the sender may have freed, and
// `become` and `stash` know it by that type. Two conversions are left to the handler, for making them early would lose
// something: to a base class (slicing), and to a view of what the message owns.
#pragma once

#include <ramie/actor/reply.hpp>

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace ramie {

template <class... Ms>
class mailbox;

namespace detail {

/// Converts to M and nothing else.
template <class M>
struct exactly {
  template <class U>
    requires(std::same_as<U, M>)
  operator U() const noexcept;
};
template <class M>
struct exactly_lvalue {
  template <class U>
    requires(std::same_as<U, M>)
  operator U&() const noexcept;
};
template <class A, class M>
concept handles_exactly = requires(A& a) { a.on(exactly<M>{}); } || requires(A& a) { a.on(exactly_lvalue<M>{}); };

// There is no direct way to ask which overload a call would choose. But the exception specification of a conversion is
// looked at when it is chosen, and only then; looking at it defines a function whose return type tells.
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wnon-template-friend"
#endif
template <class A, class M>
struct parameter_slot {
  friend auto parameter_in(parameter_slot);
};
#pragma GCC diagnostic pop
template <class A, class M, class U>
struct parameter_found {
  friend auto parameter_in(parameter_slot<A, M>) { return std::type_identity<U>{}; }
  static constexpr bool yes = true;
};
template <class A, class M>
struct convertible_as {
  template <class U>
    requires(std::is_convertible_v<M, U>)
  operator U() const noexcept(parameter_found<A, M, U>::yes && sizeof(parameter_found<A, M, U>) != 0);
};

template <class A, class M, bool looked = noexcept(std::declval<A&>().on(convertible_as<A, M>{}))>
struct chosen_parameter {
  using type = typename decltype(parameter_in(parameter_slot<A, M>{}))::type;
};

template <class A, class M>
struct handler_key_of : std::type_identity<M> {};
template <class A, class M>
  requires(!handles_exactly<A, M> && requires(A& a) { a.on(convertible_as<A, M>{}); })
struct handler_key_of<A, M> : chosen_parameter<A, M> {};

/// The type that the `on` takes which is chosen for an M: M itself if there is one for it; M, too, if the choice is
/// between several that are no exact match.
template <class A, class M>
using handler_key = typename handler_key_of<A, M>::type;

template <class T>
inline constexpr bool is_view = false;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;
template <class T, std::size_t n>
inline constexpr bool is_view<std::span<T, n>> = true;

template <class M, class Key>
struct stored_as : std::type_identity<Key> {};
template <class M, class Key>
  requires(!std::same_as<M, Key> && (std::is_base_of_v<Key, M> || (is_view<Key> && !std::is_pointer_v<M>)))
struct stored_as<M, Key> : std::type_identity<M> {};
template <class M, class C, class Traits>
  requires(std::is_pointer_v<M>)
struct stored_as<M, std::basic_string_view<C, Traits>> : std::type_identity<std::basic_string<C, Traits>> {};

/// As what A's mailbox keeps a message that was given as a T.
template <class A, class T>
using message_for = typename stored_as<std::decay_t<T>, handler_key<A, std::decay_t<T>>>::type;

/// A fiber actor is asked by a request that is among the types of its mailbox.
template <class M, class... Ms>
struct request_among {};
template <class M, class First, class... Ms>
struct request_among<M, First, Ms...> : request_among<M, Ms...> {};
template <class M, class R, class... Ms>
struct request_among<M, request<M, R>, Ms...> : std::type_identity<R> {
  using request = ramie::request<M, R>;
};

}  // namespace detail
}  // namespace ramie
