// Requests whose sender does not wait: the reply goes to a sink, which has set_value and set_exception: a promise, a
// reply (it was delegated), or a message to the one who asked.
#pragma once

#include <ramie/actor/dispatch.hpp>
#include <ramie/future/promise.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie::detail {

template <class M, class Sink>
struct async_ask_node : body_node<M> {
  asked_by origin;
  Sink sink;
  template <class T>
  async_ask_node(T&& from, Sink&& to) : body_node<M>(std::forward<T>(from)), sink{std::move(to)} {}
};

template <class T, class Sink>
struct sink_listener final : reply_listener<T> {
  Sink sink;
  explicit sink_listener(Sink&& s) : sink{std::move(s)} {}
  void get(answer<T> a) noexcept override {
    if (std::exception_ptr failure = a.failure()) sink.set_exception(std::move(failure));
    else if constexpr (std::is_void_v<T>) sink.set_value();
    else sink.set_value(a.value());
  }
};
/// Throws std::bad_alloc; then `sink` is as it was.
template <class T, class Sink>
asker<T> listen_by(Sink& sink) {
  return {{}, nullptr, std::make_unique<sink_listener<T, Sink>>(std::move(sink))};
}
/// As attach_asker; where that throws, `sink` is as it was.
template <class T, class Sink>
void attach_sink(actor_cell& c, const reply<T>& later, Sink& sink) {
  asker<T> by = listen_by<T, Sink>(sink);
  if (later.core()->attach(c, std::move(by))) return;
  std::destroy_at(&sink);
  // NOLINTNEXTLINE(bugprone-use-after-move): what has not been attached is as it was
  std::construct_at(&sink, std::move(static_cast<sink_listener<T, Sink>&>(*by.listener).sink));
  throw_two_askers();
}

template <class A, class M, class Sink>
void act_on_async_ask(message& self, message_verb verb, void* context) {
  using R = reply_of<A, M>;
  using node_type = async_ask_node<M, Sink>;
  auto& node = static_cast<node_type&>(self);
  if (verb == message_verb::handle) {
    auto& c = *static_cast<actor_cell*>(context);
    if (node.origin.bound != nullptr) [[unlikely]]
      return handle_within(node.origin, self, &act_on_async_ask<A, M, Sink>, c);
    payload_guard guard{node};
    if constexpr (is_reply<R>) {
      const R later = call_handler<A, M>(c, node.body);
      if ((node.flags & message::kept) == 0) attach_sink<answer_of<A, M>>(c, later, node.sink);
    } else if constexpr (std::is_void_v<R>) {
      call_handler<A, M>(c, node.body);
      if ((node.flags & message::kept) == 0) node.sink.set_value();
    } else {
      R reply = call_handler<A, M>(c, node.body);
      if ((node.flags & message::kept) == 0) node.sink.set_value(std::move(reply));
    }
    if ((node.flags & message::kept) == 0) std::destroy_at(&node.sink);
  } else if (verb == message_verb::discard || verb == message_verb::fail) {
    if (verb == message_verb::discard) {
      std::destroy_at(&node.body);
      node.origin.let_go();
    }
    node.sink.set_exception(refusal_of(*static_cast<const discarded*>(context)));
    std::destroy_at(&node.sink);
  } else {
    describe_payload(node.body, verb, context);
  }
}

/// Somebody else may have answered: that came first, then.
template <class T>
struct reply_sink {
  reply<T> to;
  template <class... Value>
  void set_value(Value&&... value) {
    if constexpr (std::is_void_v<T>) to.core()->settle(answer<T>{std::monostate{}});
    else to.core()->settle(answer<T>{T(std::forward<Value>(value)...)});
  }
  void set_exception(std::exception_ptr failure) noexcept { to.core()->settle(answer<T>{std::move(failure)}); }
};

/// Sends the request. Suspends as `tell` does, but until `deadline` at most: then the sink gets mailbox_full. Throws
/// what `tell` throws; the sink has had an exception then.
template <class A, class M, class T, class Sink>
void ask_by_sink(actor_cell& c, T&& body, Sink sink, const steady::time_point* deadline = nullptr) {
  if constexpr (is_mailbox<A>) {
    using R = answer_of<A, M>;
    using request_type = typename answer_of_ask<A, M>::request;
    reply<R> later;
    attach_asker(c, later, listen_by<R, Sink>(sink));
    c.post_async_request(make_message<tell_node<request_type>>(&act_on_tell<A, request_type>, message::request,
                                                               request_type{std::forward<T>(body), std::move(later)}),
                         deadline);
  } else {
    auto* node = make_message<async_ask_node<M, Sink>>(&act_on_async_ask<A, M, Sink>, message::request,
                                                       std::forward<T>(body), std::move(sink));
    node->origin.set();
    c.post_async_request(node, deadline);
  }
}

// ---- as a message to the one who asked -----------------------------------------------------------------------------

/// The answer, on its way to the function that wants it.
template <class R, class F>
struct then_node : message {
  F then;
  std::optional<answer<R>> got;
  explicit then_node(F&& f) : then{std::move(f)} {}
};

template <class R, class F>
void act_on_answer(message& self, message_verb verb, void* context) {
  auto& node = static_cast<then_node<R, F>&>(self);
  if (verb == message_verb::handle) {
    struct call {
      actor_cell& c;
      then_node<R, F>& node;
      ~call() {
        c.handling = &node;
        std::destroy_at(&node.got);
        std::destroy_at(&node.then);
      }
    } now{*static_cast<actor_cell*>(context), node};
    now.c.handling = nullptr;  // there is nothing to stash
    node.then(*std::move(node.got));
  } else if (verb == message_verb::discard) {
    std::destroy_at(&node.got);
    std::destroy_at(&node.then);
  }
}

/// Sends `note`, whose answer is set, to that incarnation of `c`.
void send_answer(actor_cell& c, std::uint32_t incarnation, message* note) noexcept;
[[nodiscard]] std::uint32_t own_incarnation(const actor_cell& c) noexcept;

/// The answer to a request with a time limit, or the end of that time, whichever the actor comes to first. Both come
/// as messages, so its own turn decides.
template <class R, class F>
struct then_once {
  F then;
  bool answered = false;
  explicit then_once(F&& f) : then{std::move(f)} {}
  void operator()(answer<R> a) {
    if (!std::exchange(answered, true)) then(std::move(a));
  }
};

std::exception_ptr no_answer_in_time() noexcept;

/// What the timer sends: std::shared_ptr<Once>.
template <class R, class Once>
void act_on_late_answer(message& self, message_verb verb, void* context) {
  auto& node = static_cast<body_node<std::shared_ptr<Once>>&>(self);
  if (verb == message_verb::handle) {
    struct call {
      actor_cell& c;
      body_node<std::shared_ptr<Once>>& node;
      ~call() {
        c.handling = &node;
        std::destroy_at(&node.body);
      }
    } now{*static_cast<actor_cell*>(context), node};
    now.c.handling = nullptr;  // there is nothing to stash
    (*node.body)(answer<R>{no_answer_in_time()});
  } else if (verb == message_verb::discard) {
    std::destroy_at(&node.body);
  } else if (verb == message_verb::type) {
    *static_cast<const type_info**>(context) = &type_of<timeout_error>();
  }
}

template <class R, class F>
class then_sink {
 public:
  /// The running actor's own.
  then_sink(actor_cell& c, F&& f)
      : to_{&c},
        incarnation_{own_incarnation(c)},
        note_{make_message<then_node<R, F>>(&act_on_answer<R, F>, message::lifecycle | message::own, std::move(f))} {
    c.add_reference();
  }
  then_sink(then_sink&& other) noexcept
      : to_{other.to_}, incarnation_{other.incarnation_}, note_{std::exchange(other.note_, nullptr)} {}
  then_sink& operator=(then_sink&&) = delete;
  ~then_sink() {
    if (note_ != nullptr) set_exception(no_answer_of(nullptr));
  }
  template <class... Value>
  void set_value(Value&&... value) noexcept {
    try {
      if constexpr (std::is_void_v<R>) note_->got.emplace(std::monostate{});
      else note_->got.emplace(R(std::forward<Value>(value)...));
    } catch (...) {
      return set_exception(std::current_exception());
    }
    send();
  }
  void set_exception(std::exception_ptr failure) noexcept {
    note_->got.emplace(std::move(failure));
    send();
  }

 private:
  void send() noexcept {
    send_answer(*to_, incarnation_, std::exchange(note_, nullptr));
    let_cell_go(*to_);
  }
  actor_cell* to_;  // a reference, as long as there is a note
  std::uint32_t incarnation_;
  then_node<R, F>* note_;
};

}  // namespace ramie::detail
