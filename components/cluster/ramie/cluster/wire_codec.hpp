// From C++ types to protobuf's: see RAMIE_WIRE in wire.hpp.
#pragma once

#include <ramie/cluster/wire_bytes.hpp>

#include <chrono>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

namespace ramie {

/// It has a RAMIE_WIRE.
template <class T>
concept wire_message = std::is_class_v<T> && requires(const T* none) { ramie_wire_of(none); };

namespace detail {

template <wire_message T>
constexpr auto wire_struct_of() noexcept {
  return ramie_wire_of(static_cast<const T*>(nullptr));
}

template <wire_message T>
void write_message(wire_writer& w, const T& v) {
  wire_struct_of<T>().write(w, v);
}
template <wire_message T>
void read_message(wire_reader& r, T& v) {
  wire_struct_of<T>().read(r, v);
}

/// How a T that is no container is written: `type`, `kind` for schemas, write and read without the tag.
template <class T>
struct wire_codec;

template <class T>
struct wire_number {
  static constexpr bool small = true;  // repeated ones are packed
};

template <>
struct wire_codec<bool> : wire_number<bool> {
  static constexpr wire_type type = wire_type::varint;
  static std::string kind() { return "b"; }
  static void write(wire_writer& w, bool v) { w.varint(v ? 1 : 0); }
  static void read(wire_reader& r, bool& v) { v = r.varint() != 0; }
};

template <class T>
  requires(std::unsigned_integral<T> && !std::same_as<T, bool>)
struct wire_codec<T> : wire_number<T> {
  static constexpr wire_type type = wire_type::varint;
  static std::string kind() { return "u"; }
  static void write(wire_writer& w, T v) { w.varint(v); }
  static void read(wire_reader& r, T& v) {
    const std::uint64_t got = r.varint();
    if (got > std::numeric_limits<T>::max()) wire_fails("a number does not fit its type");
    v = static_cast<T>(got);
  }
};

template <std::signed_integral T>
struct wire_codec<T> : wire_number<T> {
  static constexpr wire_type type = wire_type::varint;
  static std::string kind() { return "s"; }
  static void write(wire_writer& w, T v) {
    const auto wide = static_cast<std::int64_t>(v);
    w.varint(static_cast<std::uint64_t>(wide) << 1 ^ static_cast<std::uint64_t>(wide >> 63));
  }
  static void read(wire_reader& r, T& v) {
    const std::uint64_t got = r.varint();
    const auto wide = static_cast<std::int64_t>(got >> 1 ^ (~(got & 1) + 1));
    if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max())
      wire_fails("a number does not fit its type");
    v = static_cast<T>(wide);
  }
};

/// Any number of its underlying type may come: one that no enumerator has is for the program to refuse.
template <class T>
  requires std::is_enum_v<T>
struct wire_codec<T> : wire_number<T> {
  using inner = wire_codec<std::underlying_type_t<T>>;
  static constexpr wire_type type = inner::type;
  static std::string kind() { return inner::kind(); }
  static void write(wire_writer& w, T v) { inner::write(w, static_cast<std::underlying_type_t<T>>(v)); }
  static void read(wire_reader& r, T& v) {
    std::underlying_type_t<T> got{};
    inner::read(r, got);
    v = static_cast<T>(got);
  }
};

template <std::floating_point T>
struct wire_codec<T> : wire_number<T> {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "ramie: RAMIE_WIRE: float and double only");
  static constexpr wire_type type = sizeof(T) == 4 ? wire_type::fixed32 : wire_type::fixed64;
  static std::string kind() { return sizeof(T) == 4 ? "f" : "d"; }
  static void write(wire_writer& w, T v) { w.fixed(v); }
  static void read(wire_reader& r, T& v) { v = r.fixed<T>(); }
};

template <std::signed_integral Rep, class Period>
struct wire_codec<std::chrono::duration<Rep, Period>> : wire_number<Rep> {
  using duration = std::chrono::duration<Rep, Period>;
  static constexpr wire_type type = wire_type::varint;
  static std::string kind() { return "s/" + std::to_string(Period::num) + "/" + std::to_string(Period::den); }
  static void write(wire_writer& w, duration v) { wire_codec<Rep>::write(w, v.count()); }
  static void read(wire_reader& r, duration& v) {
    Rep got{};
    wire_codec<Rep>::read(r, got);
    v = duration{got};
  }
};

template <>
struct wire_codec<std::string> {
  static constexpr bool small = false;
  static constexpr wire_type type = wire_type::bytes;
  static std::string kind() { return "t"; }
  static void write(wire_writer& w, std::string_view v) { w.bytes(v); }
  static void read(wire_reader& r, std::string& v) { v.assign(r.bytes()); }
};

template <wire_message T>
struct wire_codec<T> {
  static constexpr bool small = false;
  static constexpr wire_type type = wire_type::bytes;
  static std::string kind() { return "m/" + std::string{wire_struct_of<T>().name}; }
  static void write(wire_writer& w, const T& v) {
    w.with_length([&] { write_message(w, v); });
  }
  static void read(wire_reader& r, T& v) {
    r.with_length([&](wire_reader& inside) { read_message(inside, v); });
  }
};

/// How a member is written, tags included.
template <class T>
struct wire_field {
  using codec = wire_codec<T>;
  static std::string kind() { return codec::kind(); }
  static void write(wire_writer& w, std::uint32_t number, const T& v) {
    w.tag(number, codec::type);
    codec::write(w, v);
  }
  static void read(wire_reader& r, wire_type is, T& v) {
    r.expect(is, codec::type);
    codec::read(r, v);
  }
};

}  // namespace detail
}  // namespace ramie

#include <ramie/cluster/wire_containers.hpp>

#include <ramie/cluster/wire_struct.hpp>
