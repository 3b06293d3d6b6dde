// Requests whose reply goes to a future.
#pragma once

#include <ramie/actor/dispatch.hpp>
#include <ramie/future/promise.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie::detail {

template <class M, class R>
struct async_ask_node : body_node<M> {
  promise<R> reply;
  template <class T>
  async_ask_node(T&& from, promise<R>&& to) : body_node<M>(std::forward<T>(from)), reply{std::move(to)} {}
};

/// What the one who asked gets instead of a reply.
std::exception_ptr refusal_of(const discarded& why) noexcept;
std::exception_ptr failure_of_handler(std::exception_ptr failure) noexcept;

template <class M, class R>
struct async_ask_guard {
  async_ask_node<M, R>& node;
  explicit async_ask_guard(async_ask_node<M, R>& n) noexcept : node{n} {}
  async_ask_guard(const async_ask_guard&) = delete;
  async_ask_guard& operator=(const async_ask_guard&) = delete;
  ~async_ask_guard() {
    if ((node.flags & message::kept) != 0) return;
    std::destroy_at(&node.body);
    std::destroy_at(&node.reply);
  }
};

template <class A, class M>
void act_on_async_ask(message& self, message_verb verb, void* context) {
  using R = reply_of<A, M>;
  auto& node = static_cast<async_ask_node<M, R>&>(self);
  if (verb == message_verb::handle) {
    async_ask_guard<M, R> guard{node};
    auto& c = *static_cast<actor_cell*>(context);
    try {
      if constexpr (std::is_void_v<R>) {
        call_handler<A, M>(c, node.body);
        if ((node.flags & message::kept) == 0) node.reply.set_value();
      } else {
        R reply = call_handler<A, M>(c, node.body);
        if ((node.flags & message::kept) == 0) node.reply.set_value(std::move(reply));
      }
    } catch (...) {
      if ((node.flags & message::kept) == 0) node.reply.set_exception(failure_of_handler(std::current_exception()));
      throw;
    }
  } else if (verb == message_verb::discard) {
    async_ask_guard<M, R> guard{node};
    node.flags &= static_cast<std::uint8_t>(~message::kept);
    node.reply.set_exception(refusal_of(*static_cast<const discarded*>(context)));
  } else if (verb == message_verb::type) {
    *static_cast<const type_info**>(context) = &type_of<M>();
  }
}

}  // namespace ramie::detail
