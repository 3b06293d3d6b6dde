#include <ramie/actor/membership.hpp>

#include <ramie/actor/extras.hpp>

#include <mutex>
#include <utility>

namespace ramie::detail {

namespace {

/// Under the actor's lock.
void unlink(membership& m) noexcept {
  *m.linked = m.next;
  if (m.next != nullptr) m.next->linked = m.linked;
  m.linked = nullptr;
}

}  // namespace

bool member_table::enlist(membership& m, actor_cell& c) noexcept {
  std::lock_guard guard{c.lock};
  if ((c.status & actor_cell::closed) != 0) return false;
  m.table = this;
  m.who = &c;
  m.next = std::exchange(c.memberships, &m);
  m.linked = &c.memberships;
  if (m.next != nullptr) m.next->linked = &m.next;
  return true;
}

void member_table::strike(membership& m) noexcept {
  std::lock_guard guard{m.who->lock};
  unlink(m);
}

membership* member_table::strike_any(actor_cell& c) noexcept {
  std::lock_guard guard{c.lock};
  membership* m = c.memberships;
  while (m != nullptr && m->table != this) m = m->next;
  if (m != nullptr) unlink(*m);
  return m;
}

void end_memberships(actor_cell& c) noexcept {
  for (;;) {
    member_table* table = nullptr;
    {
      std::lock_guard guard{c.lock};
      if (c.memberships == nullptr) return;
      table = c.memberships->table;
      table->keep();
    }
    table->forget_one(c);
    table->let_go();
  }
}

}  // namespace ramie::detail
