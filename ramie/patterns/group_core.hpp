// What groups are without the type of their messages.
//
// The members of a group and its watchers are memberships (actor/membership.hpp), in a list by the order in which they
// came and in a table by their actor. A core lives as long as its group or any of its memberships: an actor that ends
// just when the group does finds the core, and perhaps nothing in it.
//
// Notes are put into the watchers' mailboxes under the core's lock, so each watcher gets them in the order of what they
// tell, and the list with which it began fits them.
#pragma once

#include <ramie/actor/membership.hpp>
#include <ramie/actor/ref.hpp>
#include <ramie/base/atomic.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramie::detail {

struct group_member {
  any_actor who;
  message_function act;
};

/// A note for a watcher of who has come or gone. Throws std::bad_alloc.
using group_note = message* (*)(const any_actor& who, monitor_ref ref);
template <class Note, class A>
message* make_group_note(const any_actor& who, monitor_ref ref) {
  return make_message<body_node<Note>>(&act_on_tell<A, Note>, message::lifecycle | message::own, Note{who, ref});
}
struct group_notes {
  group_note joined;
  group_note left;
};

class group_core final : public member_table {
 public:
  static group_core* make();

  bool join(const any_actor& who, message_function act);
  bool leave(actor_cell& c) noexcept;
  [[nodiscard]] bool contains(actor_cell& c) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  /// What was there at that moment. Throws std::bad_alloc.
  std::shared_ptr<const std::vector<group_member>> members();
  monitor_ref monitor(const any_actor& watcher, const group_notes& notes, std::vector<group_member>& members);
  bool unmonitor(actor_cell& c) noexcept;
  /// All leave, and nobody is told.
  void close() noexcept;

  void keep() noexcept override { references_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() noexcept override;
  void forget_one(actor_cell& c) noexcept override;

 private:
  struct place;
  /// By actor, and in a row.
  struct row {
    std::unordered_map<const actor_cell*, std::unique_ptr<place>> by_actor;
    place* first = nullptr;
    place* last = nullptr;
  };
  using snapshot = std::shared_ptr<const std::vector<group_member>>;

  group_core();
  ~group_core();

  // Under the lock.
  bool add(row& to, std::unique_ptr<place> fresh);
  static std::unique_ptr<place> take_out(row& from, const actor_cell& c) noexcept;
  [[nodiscard]] std::vector<group_member> list() const;
  void tell_joined(const any_actor& who);
  void tell_left(const any_actor& who) noexcept;
  std::unique_ptr<place> take(row& from, actor_cell& c) noexcept;

  atomic<std::uint32_t> references_{1};
  mutable os_mutex lock_;
  row members_;
  row watchers_;
  snapshot seen_;  // for those who publish, until something changes
};

/// The group's own reference.
class group_reference {
 public:
  explicit group_reference(group_core* core) noexcept : core_{core} {}
  group_reference(const group_reference&) = delete;
  group_reference& operator=(const group_reference&) = delete;
  ~group_reference() { core_->let_go(); }
  group_core* operator->() const noexcept { return core_; }

 private:
  group_core* core_;
};

}  // namespace ramie::detail
