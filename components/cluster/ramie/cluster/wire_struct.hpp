// What RAMIE_WIRE makes of a struct: a list of its members with their numbers.
#pragma once

#include <ramie/cluster/wire_codec.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::detail {

template <std::uint32_t n, auto pointer>
struct wire_member {
  static_assert(n >= 1 && n < (1U << 29) && (n < 19000 || n > 19999),
                "ramie: RAMIE_WIRE: a field's number is 1 to 2^29 - 1, and not 19000 to 19999");
  static constexpr std::uint32_t number = n;
  static constexpr auto member = pointer;
};

/// The schemas of the messages within a message, and within these, by name.
using wire_schemas = std::map<std::string, std::string>;

/// Adds those of a member of type T.
template <class T>
struct wire_nested {
  static void add(wire_schemas& to) {
    if constexpr (wire_message<T>) {
      constexpr auto how = wire_struct_of<T>();
      if (const auto [at, fresh] = to.emplace(how.name, how.schema()); fresh) how.add_nested_to(to);
    }
  }
};
template <class T>
struct wire_nested<std::optional<T>> : wire_nested<T> {};
template <class T>
struct wire_nested<std::vector<T>> : wire_nested<T> {};
template <class Map>
  requires requires { typename Map::mapped_type; }
struct wire_nested<Map> {
  static void add(wire_schemas& to) {
    wire_nested<typename Map::key_type>::add(to);
    wire_nested<typename Map::mapped_type>::add(to);
  }
};

template <class T, class... Members>
struct wire_struct {
  const char* name;

  static void write(wire_writer& w, const T& v) {
    (field_of<Members>::write(w, Members::number, v.*Members::member), ...);
  }
  static void read(wire_reader& r, T& v) {
    while (!r.empty()) {
      const wire_reader::field f = r.tag();
      const bool known =
          ((f.number == Members::number && (field_of<Members>::read(r, f.type, v.*Members::member), true)) || ...);
      if (!known) r.skip(f.type);
    }
  }
  static void empty(T& v) { (empty_containers(v.*Members::member), ...); }
  static std::string schema() {
    std::string text;
    ((text += (text.empty() ? "" : " ") + std::to_string(Members::number) + ":" + field_of<Members>::kind()), ...);
    return text;
  }
  static void add_nested_to(wire_schemas& all) { (wire_nested<type_of_member<Members>>::add(all), ...); }

 private:
  template <class Member>
  using type_of_member = std::remove_cvref_t<decltype(std::declval<T&>().*Member::member)>;
  template <class Member>
  using field_of = wire_field<type_of_member<Member>>;

  static constexpr bool differ() {
    std::array<std::uint32_t, sizeof...(Members) + 1> all{Members::number...};
    for (std::size_t i = 0; i < sizeof...(Members); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (all[i] == all[k]) return false;
    return true;
  }
  static_assert(differ(), "ramie: RAMIE_WIRE: two members have the same number");
};

}  // namespace ramie::detail
