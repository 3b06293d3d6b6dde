// What an actor is in until it ends for good, or is taken out: its names, its groups.
//
// A membership is in a table, under the table's lock, and in the list of its actor, under the actor's lock, which is
// taken after the table's.
//  B1 It comes into both under both locks, unless the actor is `closed` by then. So the end of an actor, which sets
//     `closed` before it looks at the list, finds all there are, and none is added behind its back.
//  B2 It is taken out of both under the table's lock. The thread that takes it out of the actor's list owns it, and frees it.
//  B3 The end of an actor meets the locks in the wrong order: so it looks at the first in the list, keeps that one's
//     table, lets the actor's lock go, and has the table take out one of its memberships, if there is one still.
// Each step takes the same time, however many actors, tables and memberships there are.
#pragma once

#include <ramie/actor/cell.hpp>

namespace ramie::detail {

class member_table;

struct membership {
  member_table* table = nullptr;
  actor_cell* who = nullptr;      // it has not ended, or ends and has yet to look here: so it need not be counted
  membership* next = nullptr;     // of the actor, under the actor's lock
  membership** linked = nullptr;  // what refers to it there; null: in no list
};

class member_table {
 public:
  member_table() = default;
  member_table(const member_table&) = delete;
  member_table& operator=(const member_table&) = delete;

  /// B3: between the two the table is not destroyed.
  virtual void keep() noexcept = 0;
  virtual void let_go() noexcept = 0;
  /// B3: takes out one membership of `c`, if there is one. Takes the table's lock.
  virtual void forget_one(actor_cell& c) noexcept = 0;
  [[nodiscard]] virtual bool is_of_names() const noexcept { return false; }

 protected:
  ~member_table() = default;

  // All of these under the table's lock.
  /// B1. False if the actor has ended, or ends.
  bool enlist(membership& m, actor_cell& c) noexcept;
  /// B2.
  static void strike(membership& m) noexcept;
  /// The same with one of those that `c` has in this table; null if it has none.
  membership* strike_any(actor_cell& c) noexcept;
};

}  // namespace ramie::detail
