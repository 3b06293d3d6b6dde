// RAMIE_WIRE: how a struct of the program's own goes over the wire, as a message of Protocol Buffers.
#pragma once

#include <ramie/cluster/wire_codec.hpp>

#include <string>
#include <string_view>

/// Says how a T is sent to other nodes: RAMIE_WIRE(deposit, "bank.deposit", (1, amount), (2, note)). At namespace
/// scope, in T's namespace. The name is what other nodes know it by; each member has a number, 1 to 2^29 - 1 without
/// 19000 to 19999, which it keeps for ever: a number that is not used any more is not used again.
///
/// Members may be bool, integers, enumerations, float, double, std::string, std::chrono durations, structs with a
/// RAMIE_WIRE, references to actors, and std::optional, std::vector, std::map or std::unordered_map of these. Their
/// protobuf types: bool, sint64 (signed), uint64 (unsigned), float, double, bytes (or string), a message; `repeated`,
/// packed where that exists; `map`.
///
/// A field that the receiver does not know is skipped; a member that was not sent stays as T's initialiser says, but
/// for containers and optionals: these are empty then, whatever it says, for what is empty is not sent.
#define RAMIE_WIRE(T, name, ...)                                                                                   \
  [[maybe_unused]] inline constexpr auto ramie_wire_of(const T*) noexcept {                                        \
    return ::ramie::detail::wire_struct<T __VA_OPT__(, RAMIE_WIRE_EXPAND(RAMIE_WIRE_EACH(T, __VA_ARGS__)))>{name}; \
  }
#ifdef __cppcheck__  // it does not expand what follows, and takes the rest for an error
#undef RAMIE_WIRE
#define RAMIE_WIRE(T, name, ...)
#endif

#define RAMIE_WIRE_PARENTHESES ()
#define RAMIE_WIRE_EXPAND(...) RAMIE_WIRE_EXPAND_3(RAMIE_WIRE_EXPAND_3(RAMIE_WIRE_EXPAND_3(__VA_ARGS__)))
#define RAMIE_WIRE_EXPAND_3(...) RAMIE_WIRE_EXPAND_2(RAMIE_WIRE_EXPAND_2(RAMIE_WIRE_EXPAND_2(__VA_ARGS__)))
#define RAMIE_WIRE_EXPAND_2(...) RAMIE_WIRE_EXPAND_1(RAMIE_WIRE_EXPAND_1(RAMIE_WIRE_EXPAND_1(__VA_ARGS__)))
#define RAMIE_WIRE_EXPAND_1(...) __VA_ARGS__
#define RAMIE_WIRE_EACH(T, a, ...)                                                       \
  ::ramie::detail::wire_member<RAMIE_WIRE_NUMBER a, &T::RAMIE_WIRE_MEMBER a> __VA_OPT__( \
      , RAMIE_WIRE_AGAIN RAMIE_WIRE_PARENTHESES(T, __VA_ARGS__))
#define RAMIE_WIRE_AGAIN() RAMIE_WIRE_EACH
#define RAMIE_WIRE_NUMBER(number, member) number
#define RAMIE_WIRE_MEMBER(number, member) member

namespace ramie {

/// The name that RAMIE_WIRE gave.
template <wire_message T>
[[nodiscard]] constexpr std::string_view wire_name() noexcept {
  return detail::wire_struct_of<T>().name;
}

/// A T as bytes. Throws wire_error if it is larger than wire_limits::message_bytes, or has references to actors and
/// `refs` is null; std::bad_alloc. Does not suspend.
template <wire_message T>
[[nodiscard]] std::string to_wire(const T& value, wire_refs* refs = nullptr) {
  std::string bytes;
  detail::wire_writer w{bytes, refs};
  detail::write_message(w, value);
  detail::check_wire_size(wire_name<T>(), bytes.size());
  return bytes;
}

/// Bytes as a T. Throws wire_error for what is no T, or exceeds wire_limits; std::bad_alloc. Does not suspend.
template <wire_message T>
[[nodiscard]] T from_wire(std::string_view bytes, wire_refs* refs = nullptr) {
  detail::check_wire_size(wire_name<T>(), bytes.size());
  T value = detail::wire_fresh<T>();
  detail::wire_reader r{bytes, refs};
  detail::read_message(r, value);
  return value;
}

/// What two nodes compare before they exchange a T: its fields as number and kind, "1:s 2:t". Two are compatible if
/// each number that both have is of the same kind in both.
template <wire_message T>
[[nodiscard]] std::string wire_schema() {
  return detail::wire_struct_of<T>().schema();
}

/// True if a node with schema `a` and one with schema `b` understand each other.
[[nodiscard]] bool compatible_schemas(std::string_view a, std::string_view b);

namespace detail {

[[nodiscard]] std::string join_schemas(std::string fields, const std::string& answer, const wire_schemas& nested);

/// What nodes tell each other of an M that is answered by an R: "its fields = the kind of the answer; name fields;
/// ...", where the latter are the messages within both.
template <wire_message M, class R>
[[nodiscard]] std::string remote_schema() {
  wire_schemas nested;
  wire_struct_of<M>().add_nested_to(nested);
  if constexpr (std::is_void_v<R>) return join_schemas(wire_schema<M>(), {}, nested);
  else {
    wire_nested<R>::add(nested);
    return join_schemas(wire_schema<M>(), wire_field<R>::kind(), nested);
  }
}

/// True if the answers are of the same kind, and all messages that both have are compatible.
[[nodiscard]] bool joined_schemas_fit(std::string_view a, std::string_view b);

}  // namespace detail

}  // namespace ramie
