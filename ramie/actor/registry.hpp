// Names of actors, common to all runtimes of the process.
#pragma once

#include <ramie/actor/ref.hpp>
#include <ramie/base/type_info.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ramie {

namespace detail {
bool register_actor(std::string name, actor_cell& c, const type_info& type);
/// A counted reference, or null. Of any class, if `type` is null.
actor_cell* find_actor(std::string_view name, const type_info* type) noexcept;
}  // namespace detail

/// Makes the actor known by this name until it ends (a restart does not count) or unregister_name. `ref` must not be
/// empty. False if another living actor has the name, or this one has ended. Any thread; does not suspend. Throws
/// std::bad_alloc.
template <class A>
bool register_name(std::string name, const actor_ref<A>& ref) {
  return detail::register_actor(std::move(name), *ref.cell(), type_of<A>());
}

/// The actor of this name, if there is one and it is an A. Any thread; does not suspend.
template <class A>
[[nodiscard]] std::optional<actor_ref<A>> whereis(std::string_view name) {
  detail::actor_cell* found = detail::find_actor(name, &type_of<A>());
  if (found == nullptr) return std::nullopt;
  return actor_ref<A>{found, any_actor::adopt{}};
}

/// The same, whatever its class; an empty reference if there is none.
[[nodiscard]] inline any_actor whereis_any(std::string_view name) noexcept {
  return any_actor{detail::find_actor(name, nullptr), any_actor::adopt{}};
}

/// All names, in no order. Names that come or go meanwhile may be in it or not. Any thread; does not suspend. Throws
/// std::bad_alloc.
[[nodiscard]] std::vector<std::string> registered_names();

/// Removes the name. Returns false if there was none. Any thread; does not suspend.
bool unregister_name(std::string_view name) noexcept;

}  // namespace ramie
