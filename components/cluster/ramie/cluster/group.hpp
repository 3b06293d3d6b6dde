// Groups of actors on several nodes, and starting actors on others.
#pragma once

#include <ramie/cluster/remote.hpp>
#include <ramie/patterns/group.hpp>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

namespace detail {

struct cluster_core;

/// What the node does with a group whose type it does not know.
struct group_entry {
  std::shared_ptr<void> group;
  const type_info* message = nullptr;
  std::function<void(const any_actor& who, message_function act)> add;
  std::function<void(const any_actor& who)> drop;
};
void change_group(cluster_core& core, const std::string& key, const any_actor& who, bool joined);
void check_member(cluster_core& core, const any_actor& who, const type_info& message);

/// How a node starts actors of a class for others.
struct starter {
  std::string schema;
  any_actor (*start)(std::string_view arguments, wire_refs& refs) = nullptr;
};
struct spawn_call {
  std::string_view type;
  std::string schema, arguments;
};

/// What a constructor's argument is sent as.
template <class T>
using argument_of = std::conditional_t<std::is_convertible_v<T, std::string_view>, std::string, std::decay_t<T>>;

template <class... Args>
struct argument_list {
  static std::string schema() {
    std::string text;
    static_cast<void>(((text += wire_field<Args>::kind() + " ", true) && ...));
    return text;
  }
  static void write(wire_writer& w, const Args&... args) {
    std::uint32_t number = 0;
    static_cast<void>((wire_field<Args>::write(w, ++number, args), ...));
  }
  static std::tuple<Args...> read(wire_reader& r) {
    std::tuple<Args...> all{wire_fresh<Args>()...};
    while (!r.empty()) {
      const wire_reader::field f = r.tag();
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        const bool known =
            ((f.number == I + 1 ? (wire_field<Args>::read(r, f.type, std::get<I>(all)), true) : false) || ...);
        if (!known) r.skip(f.type);
      }(std::index_sequence_for<Args...>{});
    }
    return all;
  }
  template <class A>
  static any_actor start(std::string_view bytes, wire_refs& refs) {
    wire_reader r{bytes, &refs};
    return std::apply([](auto&&... args) -> any_actor { return spawn_actor<A>(std::move(args)...); }, read(r));
  }
};

}  // namespace detail

/// Actors of all nodes that take messages of type M: from cluster::group. Each node has the same members but for what
/// is just under way; those of a node that is lost leave. Copies are the same group. Any thread; nothing here suspends.
/// Not to be used when the cluster is gone.
template <class M>
class cluster_group {
 public:
  /// An actor of this node. False if it is a member already, or has ended. Throws usage_error if the cluster does not
  /// know its class, or M is not in its `remote`; std::bad_alloc.
  template <class A>
  bool join(const actor_ref<A>& member) {
    detail::check_member(*core_, member, type_of<M>());
    if (!all_->join(member)) return false;
    detail::change_group(*core_, key_, member, true);
    return true;
  }
  /// False if it was no member.
  bool leave(const any_actor& member) {
    if (!all_->leave(member)) return false;
    detail::change_group(*core_, key_, member, false);
    return true;
  }
  /// A copy to each member, on whatever node: to those of one node in the order of calls, without loss, until that node
  /// is lost. As group::publish with full mailboxes.
  published publish(const M& m) { return all_->publish(m); }
  [[nodiscard]] std::size_t size() const noexcept { return all_->size(); }
  [[nodiscard]] bool contains(const any_actor& member) const noexcept { return all_->contains(member); }
  /// Throws std::bad_alloc.
  [[nodiscard]] std::vector<recipient<M>> members() const { return all_->members(); }
  /// As group::monitor: `watcher` is told member_joined and member_left.
  template <class A>
  group_monitor<M> monitor(const actor_ref<A>& watcher) {
    return all_->monitor(watcher);
  }
  bool unmonitor(const any_actor& watcher) noexcept { return all_->unmonitor(watcher); }

  /// Internal.
  cluster_group(std::shared_ptr<detail::cluster_core> core, std::string key, std::shared_ptr<group<M>> all)
      : core_{std::move(core)}, key_{std::move(key)}, all_{std::move(all)} {}

 private:
  std::shared_ptr<detail::cluster_core> core_;
  std::string key_;
  std::shared_ptr<group<M>> all_;
};

}  // namespace ramie
