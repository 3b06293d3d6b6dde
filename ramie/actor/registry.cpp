// One table under one lock: names are given and looked up seldom, and then kept as references.
#include <ramie/actor/registry.hpp>

#include <ramie/actor/extras.hpp>

#include <map>
#include <mutex>

namespace ramie {

namespace {

struct entry {
  any_actor who;
  const type_info* type;
};

struct name_table {
  detail::spin_lock lock;
  std::map<std::string, entry, std::less<>> entries;
};

name_table& table() {
  static auto* the_table = new name_table;  // actors may end after static destruction began
  return *the_table;
}

}  // namespace

bool detail::register_actor(std::string name, actor_cell& c, const type_info& type) {
  actor_extras& x = c.extras();
  any_actor held{c};
  name_table& t = table();
  std::lock_guard guard{t.lock};
  // The end of an actor sets `closed` and then, if it finds `named`, takes its names out under the table's lock. So
  // either it sees the mark, or we see that it is closed.
  {
    std::lock_guard of_actor{c.lock};
    if ((c.status & actor_cell::closed) != 0) return false;
    x.named = true;
  }
  return t.entries.try_emplace(std::move(name), entry{std::move(held), &type}).second;
}

detail::actor_cell* detail::find_actor(std::string_view name, const type_info& type) noexcept {
  name_table& t = table();
  std::lock_guard guard{t.lock};
  const auto found = t.entries.find(name);
  if (found == t.entries.end() || *found->second.type != type) return nullptr;
  actor_cell* c = found->second.who.cell();
  c->add_reference();
  return c;
}

bool unregister_name(std::string_view name) noexcept {
  name_table& t = table();
  std::lock_guard guard{t.lock};
  const auto found = t.entries.find(name);
  if (found == t.entries.end()) return false;
  t.entries.erase(found);
  return true;
}

void detail::forget_names(actor_cell& c) noexcept {
  name_table& t = table();
  std::lock_guard guard{t.lock};
  for (auto at = t.entries.begin(); at != t.entries.end();)
    at = at->second.who.cell() == &c ? t.entries.erase(at) : std::next(at);
}

}  // namespace ramie
