// Containers and optionals as members of messages: repeated fields, maps, fields that may be missing.
#pragma once

#include <ramie/cluster/wire_codec.hpp>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramie::detail {

/// To what was sent elements are added, so a T begins without the containers' and optionals' elements that its
/// initialisers give it: what is empty is not sent, and arrives as it was.
template <class T>
void empty_containers(T& v) {
  if constexpr (wire_message<T>) wire_struct_of<T>().empty(v);
}
template <class T>
void empty_containers(std::optional<T>& v) {
  v.reset();
}
template <class T>
void empty_containers(std::vector<T>& v) {
  v.clear();
}
template <class K, class V, class... More>
void empty_containers(std::map<K, V, More...>& v) {
  v.clear();
}
template <class K, class V, class... More>
void empty_containers(std::unordered_map<K, V, More...>& v) {
  v.clear();
}

/// One to be read into.
template <class T>
T wire_fresh() {
  T v{};
  empty_containers(v);
  return v;
}

template <class T>
inline constexpr bool is_wire_container = false;
template <class T>
inline constexpr bool is_wire_container<std::optional<T>> = true;
template <class T>
inline constexpr bool is_wire_container<std::vector<T>> = true;
template <class K, class V, class... More>
inline constexpr bool is_wire_container<std::map<K, V, More...>> = true;
template <class K, class V, class... More>
inline constexpr bool is_wire_container<std::unordered_map<K, V, More...>> = true;

template <class T>
struct wire_field<std::optional<T>> {
  static_assert(!is_wire_container<T>,
                "ramie: RAMIE_WIRE: a container in a std::optional: without elements it would be none");
  static std::string kind() { return wire_field<T>::kind(); }
  static void write(wire_writer& w, std::uint32_t number, const std::optional<T>& v) {
    if (v) wire_field<T>::write(w, number, *v);
  }
  static void read(wire_reader& r, wire_type is, std::optional<T>& v) {
    if (!v) v.emplace(wire_fresh<T>());
    wire_field<T>::read(r, is, *v);
  }
};

template <class T>
struct wire_field<std::vector<T>> {
  using codec = wire_codec<T>;
  static std::string kind() { return "*" + codec::kind(); }
  static void write(wire_writer& w, std::uint32_t number, const std::vector<T>& all) {
    if (all.empty()) return;
    if constexpr (codec::small) {
      w.tag(number, wire_type::bytes);
      w.with_length([&] {
        for (const T& v : all) codec::write(w, v);
      });
    } else {
      for (const T& v : all) wire_field<T>::write(w, number, v);
    }
  }
  static void read(wire_reader& r, wire_type is, std::vector<T>& all) {
    const auto one = [&](wire_reader& from) {
      from.charge(sizeof(T));
      T v = wire_fresh<T>();
      codec::read(from, v);
      all.push_back(std::move(v));
    };
    if (codec::small && is == wire_type::bytes) {
      r.with_length([&](wire_reader& inside) {
        while (!inside.empty()) one(inside);
      });
    } else {
      r.expect(is, codec::type);
      one(r);
    }
  }
};

/// protobuf's map<K, V>: a repeated message of key (1) and value (2).
template <class Map>
struct wire_map {
  using K = typename Map::key_type;
  using V = typename Map::mapped_type;
  static std::string kind() { return "*<" + wire_codec<K>::kind() + "," + wire_codec<V>::kind() + ">"; }
  static void write(wire_writer& w, std::uint32_t number, const Map& all) {
    for (const auto& [key, value] : all) {
      w.tag(number, wire_type::bytes);
      w.with_length([&] {
        wire_field<K>::write(w, 1, key);
        wire_field<V>::write(w, 2, value);
      });
    }
  }
  static void read(wire_reader& r, wire_type is, Map& all) {
    r.expect(is, wire_type::bytes);
    r.charge(sizeof(K) + sizeof(V) + 4 * sizeof(void*));
    K key{};
    V value = wire_fresh<V>();
    r.with_length([&](wire_reader& inside) {
      while (!inside.empty()) {
        const wire_reader::field f = inside.tag();
        if (f.number == 1) wire_field<K>::read(inside, f.type, key);
        else if (f.number == 2) wire_field<V>::read(inside, f.type, value);
        else inside.skip(f.type);
      }
    });
    all.insert_or_assign(std::move(key), std::move(value));
  }
};
template <class K, class V, class... More>
struct wire_field<std::map<K, V, More...>> : wire_map<std::map<K, V, More...>> {};
template <class K, class V, class... More>
struct wire_field<std::unordered_map<K, V, More...>> : wire_map<std::unordered_map<K, V, More...>> {};

}  // namespace ramie::detail
