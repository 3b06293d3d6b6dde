// Tables of names, each under a lock of its own: names are given and looked up seldom, and then kept as references. So
// many, because a table that grows is built anew under its lock: with a million names one holds some four thousand.
//
// Each entry is in the chain of its bucket, linked both ways, and in the list of its actor's names, so that an actor's
// end takes as long as it has names, however many there are in all. That list is changed under the lock of names of the
// actor, which is taken after the table's.
#include <ramie/actor/registry.hpp>

#include <ramie/actor/extras.hpp>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ramie {

namespace detail {

struct name_entry {
  std::string name;
  std::size_t hash;
  any_actor who;
  const type_info* type;
  name_entry* next = nullptr;     // of the bucket, under the table's lock
  name_entry** linked = nullptr;  // what refers to it there
  name_entry* sibling = nullptr;  // of the actor, under `own_lock`
  name_entry** in_actor = nullptr;
};

namespace {

struct name_table {
  spin_lock lock;
  std::vector<name_entry*> buckets = std::vector<name_entry*>(8);
  std::size_t count = 0;

  [[nodiscard]] name_entry*& bucket(std::size_t hash) noexcept { return buckets[hash / tables % buckets.size()]; }
  [[nodiscard]] name_entry* find(std::string_view name, std::size_t hash) noexcept {
    for (name_entry* e = bucket(hash); e != nullptr; e = e->next)
      if (e->hash == hash && e->name == name) return e;
    return nullptr;
  }
  void add(name_entry& e) {
    if (count == buckets.size()) grow();
    put(e);
    ++count;
  }
  void remove(name_entry& e) noexcept {
    *e.linked = e.next;
    if (e.next != nullptr) e.next->linked = e.linked;
    --count;
  }

  static constexpr std::size_t tables = 256;

 private:
  void put(name_entry& e) noexcept {
    name_entry*& first = bucket(e.hash);
    e.next = first;
    e.linked = &first;
    if (first != nullptr) first->linked = &e.next;
    first = &e;
  }
  void grow() {
    std::vector<name_entry*> larger(buckets.size() * 2);
    larger.swap(buckets);
    for (name_entry* e : larger) {
      while (e != nullptr) {
        name_entry* const behind = e->next;
        put(*e);
        e = behind;
      }
    }
  }
};

/// Throws bad_alloc, if at all, when the first name is given.
name_table& table_of(std::size_t hash) {
  static auto* the_tables = new std::array<name_table, name_table::tables>;  // actors may end after static destruction
  return (*the_tables)[hash % name_table::tables];
}

/// Guards the lists of names of actors.
spin_lock& own_lock(const actor_cell& c) noexcept {
  static constinit std::array<spin_lock, 64> the_locks;
  return the_locks[reinterpret_cast<std::uintptr_t>(&c) / 64 % 64];
}

std::size_t hash_of(std::string_view name) noexcept { return std::hash<std::string_view>{}(name); }

/// Under the table's lock.
void give_up(name_table& t, name_entry& e) noexcept {
  t.remove(e);
  std::lock_guard guard{own_lock(*e.who.cell())};
  *e.in_actor = e.sibling;
  if (e.sibling != nullptr) e.sibling->in_actor = e.in_actor;
}

}  // namespace
}  // namespace detail

bool detail::register_actor(std::string name, actor_cell& c, const type_info& type) {
  actor_extras& x = c.extras();
  const std::size_t hash = hash_of(name);
  auto fresh = std::make_unique<name_entry>(name_entry{std::move(name), hash, any_actor{c}, &type});
  name_table& t = table_of(hash);
  std::lock_guard guard{t.lock};
  if (t.find(fresh->name, hash) != nullptr) return false;
  t.add(*fresh);
  // The end of an actor sets `closed` and then, if it finds `named`, takes its names out, each under its table's lock.
  // So either it sees the mark and the entry, or we see that it is closed.
  std::lock_guard of_actor{c.lock};
  if ((c.status & actor_cell::closed) != 0) {
    t.remove(*fresh);
    return false;
  }
  x.named = true;
  name_entry& e = *fresh.release();
  std::lock_guard of_names{own_lock(c)};
  e.sibling = x.names;
  e.in_actor = &x.names;
  if (e.sibling != nullptr) e.sibling->in_actor = &e.sibling;
  x.names = &e;
  return true;
}

detail::actor_cell* detail::find_actor(std::string_view name, const type_info* type) noexcept {
  const std::size_t hash = hash_of(name);
  name_table& t = table_of(hash);
  std::lock_guard guard{t.lock};
  const name_entry* found = t.find(name, hash);
  if (found == nullptr || (type != nullptr && *found->type != *type)) return nullptr;
  actor_cell* c = found->who.cell();
  c->add_reference();
  return c;
}

std::vector<std::string> registered_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < detail::name_table::tables; ++i) {
    detail::name_table& t = detail::table_of(i);
    std::vector<std::string> here;
    for (;;) {
      std::size_t count = 0;
      {
        std::lock_guard guard{t.lock};
        count = t.count;
      }
      here.reserve(count);
      std::lock_guard guard{t.lock};
      if (t.count > here.capacity()) continue;
      for (const detail::name_entry* e : t.buckets)
        for (; e != nullptr; e = e->next) here.push_back(e->name);
      break;
    }
    names.insert(names.end(), std::make_move_iterator(here.begin()), std::make_move_iterator(here.end()));
  }
  return names;
}

bool unregister_name(std::string_view name) noexcept {
  const std::size_t hash = detail::hash_of(name);
  detail::name_table& t = detail::table_of(hash);
  detail::name_entry* found = nullptr;
  {
    std::lock_guard guard{t.lock};
    found = t.find(name, hash);
    if (found == nullptr) return false;
    detail::give_up(t, *found);
  }
  delete found;
  return true;
}

void detail::forget_names(actor_cell& c) noexcept {
  actor_extras& x = *c.more.load(std::memory_order_acquire);
  for (;;) {
    std::size_t hash = 0;
    {
      std::lock_guard guard{own_lock(c)};
      if (x.names == nullptr) return;
      hash = x.names->hash;
    }
    // Nobody adds names any more, but one may be given up just now.
    name_table& t = table_of(hash);
    name_entry* e = nullptr;
    {
      std::lock_guard guard{t.lock};
      {
        std::lock_guard of_names{own_lock(c)};
        for (e = x.names; e != nullptr && e->hash != hash; e = e->sibling) {
        }
      }
      if (e != nullptr) give_up(t, *e);
    }
    delete e;
  }
}

}  // namespace ramie
