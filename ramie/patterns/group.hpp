// Groups of actors: who is in them, and notes of who comes and goes.
#pragma once

#include <ramie/patterns/group_core.hpp>
#include <ramie/patterns/recipient.hpp>

#include <cstddef>
#include <vector>

namespace ramie {

/// Messages to an actor that monitors a group. `ref`: what group::monitor returned.
struct member_joined {
  any_actor who;
  monitor_ref ref;
};
struct member_left {
  any_actor who;
  monitor_ref ref;
};

/// A monitor of a group: the members that were there when it began. Notes tell of all that changes from then on.
template <class M>
struct group_monitor {
  monitor_ref ref{};
  std::vector<recipient<M>> members{};
};

/// Actors of any classes that take messages of type M. An actor that ends leaves all its groups; a restart by a
/// supervisor is no end. To join, to leave and to end take the same time however many members there are. Any thread,
/// several at once; nothing here suspends. Not copyable: share it by reference or std::shared_ptr. It may end before
/// its members.
template <class M>
class group {
 public:
  /// Throws std::bad_alloc.
  group() : core_{detail::group_core::make()} {}
  group(const group&) = delete;
  group& operator=(const group&) = delete;
  ~group() { core_->close(); }

  /// False if it is a member already, or has ended. Throws std::bad_alloc.
  bool join(const recipient<M>& member) { return core_->join(member, member.act()); }
  /// False if it was no member.
  bool leave(const any_actor& member) noexcept { return core_->leave(*member.cell()); }
  [[nodiscard]] bool contains(const any_actor& member) const noexcept { return core_->contains(*member.cell()); }
  [[nodiscard]] std::size_t size() const noexcept { return core_->size(); }
  /// In the order in which they joined. Throws std::bad_alloc.
  [[nodiscard]] std::vector<recipient<M>> members() const { return typed(*core_->members()); }

  /// Sends a copy to each member. One whose mailbox is full does not get it, and holds up nobody; to wait for such
  /// members, tell each of members(). Throws std::bad_alloc, and what copying `m` throws.
  published publish(const M& m) {
    published became;
    const auto now = core_->members();
    for (const detail::group_member& member : *now) {
      const tell_status status = detail::try_tell_to(*member.who.cell(), member.act, m);
      if (status == tell_status::ok) ++became.taken;
      else if (status != tell_status::down) ++became.refused;
    }
    return became;
  }

  /// From now on `watcher` is told member_joined and member_left, in the order in which that happens. It belongs to the
  /// watcher's incarnation, as monitors of actors do: a restart ends it. An actor monitors a group once: the next call
  /// takes the place of the one before. Where there is no memory for the note of an end, it is left out. Throws
  /// std::bad_alloc.
  template <class A>
  group_monitor<M> monitor(const actor_ref<A>& watcher) {
    static_assert(detail::accepts_message<A, member_joined> && detail::accepts_message<A, member_left>,
                  "ramie: an actor that monitors a group takes ramie::member_joined and ramie::member_left");
    std::vector<detail::group_member> members;
    const monitor_ref ref = core_->monitor(
        watcher, {&detail::make_group_note<member_joined, A>, &detail::make_group_note<member_left, A>}, members);
    return {ref, typed(members)};
  }
  /// False if it does not monitor this group. Notes that were sent before may still come.
  bool unmonitor(const any_actor& watcher) noexcept { return core_->unmonitor(*watcher.cell()); }

 private:
  static std::vector<recipient<M>> typed(const std::vector<detail::group_member>& all) {
    std::vector<recipient<M>> members;
    members.reserve(all.size());
    for (const detail::group_member& m : all) members.emplace_back(m.who, m.act);
    return members;
  }

  detail::group_reference core_;
};

}  // namespace ramie
