// Starting actors.
#pragma once

#include <ramie/actor/mailbox.hpp>
#include <ramie/actor/ref.hpp>
#include <ramie/runtime/runtime.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

template <class A, class State>
struct actor_class {
  static_assert(alignof(State) <= task_alignment_most, "ramie: actors may be aligned to 64 bytes at most");
  static constexpr std::size_t offset = offset_of_state<State>;
  static constexpr std::size_t size = offset + sizeof(State);
  static constexpr std::uint8_t list =
      state_alignment<State> <= task_alignment ? task_cache::list_of(size) : task_cache::no_list;

  static void destroy(actor_cell& c) noexcept { std::destroy_at(static_cast<State*>(c.state())); }
  static constexpr message_function exit_act() {
    if constexpr (accepts_message<A, exit_signal>) return &act_on_tell<A, exit_signal>;
    else return nullptr;
  }
  static constexpr void (*serve())(actor_cell&) {
    if constexpr (is_mailbox<A>) return [](actor_cell& c) { static_cast<State*>(c.state())->run(); };
    else return nullptr;
  }
  static constexpr actor_type type{{{.run = nullptr,
                                     .skip = nullptr,
                                     .drop = nullptr,
                                     .kind = task_kind::resident,
                                     .turn = is_mailbox<A> ? &actor_cell::turn_of_fiber : &actor_cell::turn,
                                     .rest = &actor_cell::rest},
                                    &actor_cell::shut_down,
                                    &actor_cell::describe,
                                    sizeof(actor_cell)},
                                   &type_of<A>(),
                                   &destroy,
                                   serve(),
                                   exit_act(),
                                   offset,
                                   std::is_trivially_destructible_v<State>};
};

/// Makes an actor whose state `construct(cell)` builds. Throws what that throws.
template <class A, class State, class Construct>
RAMIE_ALWAYS_INLINE actor_ref<A> make_actor(const actor_options* options, Construct&& construct) {
  using made = actor_class<A, State>;
  actor_cell* c = allocate_cell(made::type, made::size, made::list);
  try {
    prepare_cell(*c, options);
    construct(*c);
  } catch (...) {
    abandon_cell(*c);
    throw;
  }
  try {
    enlist_cell(*c);
  } catch (...) {
    made::destroy(*c);
    abandon_cell(*c);
    throw;
  }
  return actor_ref<A>{c, any_actor::adopt{}};
}

template <class A, class... Args>
RAMIE_ALWAYS_INLINE actor_ref<A> make_class_actor(const actor_options* options, Args&&... args) {
  static_assert(std::is_class_v<A>, "ramie::spawn_actor: give the actor's class");
  static_assert(std::is_constructible_v<A, Args...>,
                "ramie::spawn_actor: the actor has no public constructor for these arguments");
  return make_actor<A, A>(options,
                          [&](actor_cell& c) RAMIE_LAMBDA_INLINE { ::new (c.state()) A(std::forward<Args>(args)...); });
}

template <class... Ms, class F>
actor_ref<mailbox<Ms...>> make_fiber_actor(const actor_options* options, F&& f) {
  using box = mailbox<Ms...>;
  static_assert(std::invocable<std::decay_t<F>&, box&>,
                "ramie::spawn_actor: the function must take a ramie::mailbox<...>& of these messages");
  using state = fiber_actor_state<box, std::decay_t<F>>;
  return make_actor<box, state>(options, [&](actor_cell& c) { ::new (c.state()) state(c, std::forward<F>(f)); });
}

}  // namespace detail

/// Starts an actor of class A, constructed here from `args` by the caller. It uses no stack until it gets a message.
/// Only within a runtime; does not suspend. Throws usage_error on a plain thread, `cancelled` once the runtime is
/// shutting down (not inside `shield`), std::bad_alloc, and what A's constructor throws.
template <class A, class... Args>
  requires(sizeof...(Args) == 0 ||
           !std::same_as<std::tuple_element_t<0, std::tuple<std::decay_t<Args>..., int>>, actor_options>)
actor_ref<A> spawn_actor(Args&&... args) {
  return detail::make_class_actor<A>(nullptr, std::forward<Args>(args)...);
}
template <class A, class... Args>
actor_ref<A> spawn_actor(const actor_options& options, Args&&... args) {
  return detail::make_class_actor<A>(&options, std::forward<Args>(args)...);
}

/// Starts a fiber actor: f(mailbox) runs as a fiber and receives messages of these types; the actor ends when it
/// returns. Errors as above.
template <class... Ms, class F>
  requires(sizeof...(Ms) > 0 && std::invocable<std::decay_t<F>&, mailbox<Ms...>&>)
actor_ref<mailbox<Ms...>> spawn_actor(F&& f) {
  return detail::make_fiber_actor<Ms...>(nullptr, std::forward<F>(f));
}
template <class... Ms, class F>
  requires(sizeof...(Ms) > 0 && std::invocable<std::decay_t<F>&, mailbox<Ms...>&>)
actor_ref<mailbox<Ms...>> spawn_actor(const actor_options& options, F&& f) {
  return detail::make_fiber_actor<Ms...>(&options, std::forward<F>(f));
}

/// As spawn_actor with the same arguments, in that runtime: spawn_actor_in<account>(rt, 100). Any thread: blocks a
/// plain one, suspends a fiber of any runtime, until the actor is there. Throws what spawn_actor and runtime::run do.
template <class... Ms, class... Args>
  requires(sizeof...(Ms) > 0)
auto spawn_actor_in(runtime& in, Args&&... args) {
  return in.run([&] { return spawn_actor<Ms...>(std::forward<Args>(args)...); });
}

}  // namespace ramie
