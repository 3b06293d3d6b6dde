// What a class of actors may be sent by other nodes, and how: made from its `remote` when a cluster comes to know it.
#pragma once

#include <ramie/cluster/wire.hpp>
#include <ramie/patterns/foreign.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

/// The messages that other nodes may send to an actor: `using remote = ramie::messages<deposit, balance>;` in its
/// class. Each has a RAMIE_WIRE, and an `on` that takes just it.
template <class... Ms>
struct messages {};

/// An exception of another node: its text.
class remote_failure : public error {
 public:
  using error::error;
};

RAMIE_WIRE(wire_refs::record, "ramie.ref", (1, node), (2, incarnation), (3, number), (4, type), (5, capacity))

namespace detail {

/// What came instead of an answer.
struct no_answer {
  enum class what : std::uint8_t { down, full, exception } kind = what::exception;
  exit_reason why;               // down
  std::exception_ptr exception;  // exception
};

/// Sends the answer to a request of another node. One call of one of them, on any thread; must not throw.
struct answer_sender {
  virtual ~answer_sender() = default;
  virtual void value(std::string_view bytes) noexcept = 0;
  virtual void failure(std::exception_ptr e) noexcept = 0;
  virtual wire_refs& refs() noexcept = 0;
  /// Bytes that an answer may have.
  [[nodiscard]] virtual std::size_t most() const noexcept = 0;
};

/// One message of one class of actors.
struct remote_message {
  const type_info* type;
  std::string_view name;
  std::string schema;  // see remote_schema
  void (*encode)(message& m, wire_writer& w);
  /// On a worker; suspends where tell does. Throws wire_error, and what tell throws.
  void (*tell)(const any_actor& to, std::string_view bytes, wire_refs& refs);
  void (*ask)(const any_actor& to, std::string_view bytes, std::unique_ptr<answer_sender> by, wire_refs& refs);
  /// `with`: a cell that is nobody's but the caller's. Takes the message.
  void (*answer)(actor_cell& with, message& m, std::string_view bytes, wire_refs& refs);
  void (*refuse)(actor_cell& with, message& m, const no_answer& why) noexcept;
  message_function act;  // of what is told, for groups
};

struct remote_class {
  const type_info* of;
  std::vector<remote_message> messages;
  any_actor (*stand_in)(std::unique_ptr<foreign_actor> behind, const actor_options& options);
};

template <class R>
struct answer_value {
  R value{};
};
template <>
struct answer_value<void> {};

/// A handler's result as a message with one field.
template <class R>
void write_answer(wire_writer& w, const R& v) {
  wire_field<R>::write(w, 1, v);
}
template <class R>
void read_answer(wire_reader& r, R& v) {
  empty_containers(v);
  while (!r.empty()) {
    const wire_reader::field f = r.tag();
    if (f.number == 1) wire_field<R>::read(r, f.type, v);
    else r.skip(f.type);
  }
}

/// Where ask_by_sink delivers the answer of a local actor.
template <class R>
struct answer_sink {
  std::unique_ptr<answer_sender> to;
  template <class... Value>
  void set_value(Value&&... v) noexcept {
    try {
      std::string bytes;
      wire_writer w{bytes, &to->refs()};
      if constexpr (!std::is_void_v<R>) write_answer<R>(w, v...);
      check_wire_size("an answer", bytes.size(), to->most());
      to->value(bytes);
    } catch (...) {
      to->failure(std::current_exception());
    }
  }
  void set_exception(std::exception_ptr e) noexcept { to->failure(std::move(e)); }
};

/// Stands in for the handler of M while an answer of another node is given: what it returns is the answer.
template <class A, class M>
struct answering final : behaviour, substitute<M, reply_of<A, M>> {
  using R = answer_of<A, M>;
  answer_value<R> value;
  std::exception_ptr failure;

  void* find(const type_info& /*message*/) noexcept override {
    return static_cast<substitute<M, reply_of<A, M>>*>(this);
  }
  reply_of<A, M> call(M& /*m*/) override {
    if constexpr (is_reply<reply_of<A, M>>) {
      reply<R> ready;
      if (failure) ready.set_exception(std::move(failure));
      else if constexpr (std::is_void_v<R>) ready.set_value();
      else ready.set_value(std::move(value.value));
      return ready;
    } else {
      if (failure) std::rethrow_exception(std::move(failure));
      if constexpr (!std::is_void_v<R>) return std::move(value.value);
    }
  }
};

template <class A, class M>
struct remote_codec {
  static_assert(handles_exactly<A, M>, "ramie: a message in `remote` needs an on(...) that takes just it");
  using R = answer_of<A, M>;

  static void encode(message& m, wire_writer& w) { write_message(w, static_cast<body_node<M>&>(m).body); }
  static void tell(const any_actor& to, std::string_view bytes, wire_refs& refs) {
    actor_ref<A>{*to.cell()}.tell(from_wire<M>(bytes, &refs));
  }
  static void ask(const any_actor& to, std::string_view bytes, std::unique_ptr<answer_sender> by, wire_refs& refs) {
    ask_by_sink<A, M>(*to.cell(), from_wire<M>(bytes, &refs), answer_sink<R>{std::move(by)});
  }
  static void answer(actor_cell& with, message& m, std::string_view bytes, wire_refs& refs) {
    const auto by = std::make_shared<answering<A, M>>();
    try {
      if constexpr (!std::is_void_v<R>) {
        wire_reader r{bytes, &refs};
        read_answer<R>(r, by->value.value);
      }
    } catch (...) {
      by->failure = std::current_exception();
    }
    answer_foreign(with, m, by);
  }
  static void refuse(actor_cell& with, message& m, const no_answer& why) noexcept {
    if (why.kind == no_answer::what::exception) {
      try {
        const auto by = std::make_shared<answering<A, M>>();
        by->failure = why.exception;
        return answer_foreign(with, m, by);
      } catch (const std::bad_alloc&) {
      }
    }
    discard_foreign(with, m, why.kind == no_answer::what::full ? letter_fate::full : letter_fate::down, why.why);
  }
  static remote_message make() {
    return {&type_of<M>(), wire_name<M>(), remote_schema<M, R>(), &encode, &tell, &ask,
            &answer,       &refuse,        &act_on_tell<A, M>};
  }
};

/// Fiber actors: what they can be told.
template <class A, class M>
struct remote_mail {
  static remote_message make() {
    return {&type_of<M>(),
            wire_name<M>(),
            remote_schema<M, void>(),
            [](message& m, wire_writer& w) { write_message(w, static_cast<body_node<M>&>(m).body); },
            [](const any_actor& to, std::string_view bytes, wire_refs& refs) {
              actor_ref<A>{*to.cell()}.tell(from_wire<M>(bytes, &refs));
            },
            nullptr,
            nullptr,
            nullptr,
            &act_on_tell<A, M>};
  }
};

template <class A>
struct remote_messages_of {
  template <class... Ms>
  static std::vector<remote_message> list(messages<Ms...> /*of*/) {
    return {remote_codec<A, Ms>::make()...};
  }
  static std::vector<remote_message> make() { return list(typename A::remote{}); }
};
template <class... Ms>
struct remote_messages_of<mailbox<Ms...>> {
  template <class M>
  static void add(std::vector<remote_message>& to) {
    if constexpr (wire_message<M>) to.push_back(remote_mail<mailbox<Ms...>, M>::make());
  }
  static std::vector<remote_message> make() {
    std::vector<remote_message> all;
    (add<Ms>(all), ...);
    return all;
  }
};

template <class A>
remote_class make_remote_class() {
  return {&type_of<A>(), remote_messages_of<A>::make(),
          [](std::unique_ptr<foreign_actor> behind, const actor_options& options) -> any_actor {
            return make_foreign<A>(std::move(behind), options);
          }};
}

// ---- references in messages ----------------------------------------------------------------------------------------

void write_ref(wire_writer& w, const any_actor& who);
any_actor read_ref(wire_reader& r, const type_info* wanted);

template <class Ref>
struct wire_ref_codec {
  static constexpr bool small = false;
  static constexpr wire_type type = wire_type::bytes;
  static std::string kind() { return "r"; }
  static void write(wire_writer& w, const Ref& v) { write_ref(w, v); }
};
template <>
struct wire_codec<any_actor> : wire_ref_codec<any_actor> {
  static void read(wire_reader& r, any_actor& v) { v = read_ref(r, nullptr); }
};
template <class A>
struct wire_codec<actor_ref<A>> : wire_ref_codec<actor_ref<A>> {
  static void read(wire_reader& r, actor_ref<A>& v) {
    const any_actor got = read_ref(r, &type_of<A>());
    v = got ? actor_ref<A>{*got.cell()} : actor_ref<A>{};
  }
};

}  // namespace detail
}  // namespace ramie
