// Names of actors. Each runtime has its own.
#pragma once

#include <ramie/actor/ref.hpp>
#include <ramie/base/type_info.hpp>
#include <ramie/runtime/runtime.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ramie {

namespace detail {
bool register_actor(std::string name, actor_cell& c, const type_info& type);
/// The runtime that the caller runs in. Throws usage_error on a plain thread.
const scheduler& names_here();
/// A counted reference, or null. Of any class, if `type` is null.
actor_cell* find_actor(const scheduler& of, std::string_view name, const type_info* type) noexcept;
template <class A>
[[nodiscard]] std::optional<actor_ref<A>> find_actor_of(const scheduler& of, std::string_view name) {
  actor_cell* found = find_actor(of, name, &type_of<A>());
  if (found == nullptr) return std::nullopt;
  return actor_ref<A>{found, any_actor::adopt{}};
}
}  // namespace detail

/// Makes the actor known by this name, in its runtime, until it ends (a restart does not count) or unregister_name. An
/// actor may have many names. `ref` must not be empty. False if another living actor there has the name, or this one
/// has ended. Takes the same time however many names there are. Any thread; does not suspend. Throws std::bad_alloc.
template <class A>
bool register_name(std::string name, const actor_ref<A>& ref) {
  return detail::register_actor(std::move(name), *ref.cell(), type_of<A>());
}

/// The actor of this name, if there is one in the caller's runtime and it is an A. Does not suspend. Throws usage_error
/// on a plain thread, which says in which runtime to look.
template <class A>
[[nodiscard]] std::optional<actor_ref<A>> whereis(std::string_view name) {
  return detail::find_actor_of<A>(detail::names_here(), name);
}
/// The same in that runtime. Any thread.
template <class A>
[[nodiscard]] std::optional<actor_ref<A>> whereis(runtime& in, std::string_view name) {
  return detail::find_actor_of<A>(in.internals(), name);
}

/// The same, whatever its class; an empty reference if there is none.
[[nodiscard]] inline any_actor whereis_any(std::string_view name) {
  return any_actor{detail::find_actor(detail::names_here(), name, nullptr), any_actor::adopt{}};
}
[[nodiscard]] inline any_actor whereis_any(runtime& in, std::string_view name) noexcept {
  return any_actor{detail::find_actor(in.internals(), name, nullptr), any_actor::adopt{}};
}

/// All names of the caller's runtime, or of that one, in no order. Names that come or go meanwhile may be in it or not.
/// Does not suspend. Throws usage_error on a plain thread that does not say where, std::bad_alloc.
[[nodiscard]] std::vector<std::string> registered_names();
[[nodiscard]] std::vector<std::string> registered_names(runtime& in);
/// The names of one actor, the latest first. Any thread; does not suspend. Throws std::bad_alloc.
[[nodiscard]] std::vector<std::string> names_of(const any_actor& who);

/// Removes the name. Returns false if there was none. Does not suspend. Throws usage_error as `whereis` does.
bool unregister_name(std::string_view name);
bool unregister_name(runtime& in, std::string_view name) noexcept;

}  // namespace ramie
