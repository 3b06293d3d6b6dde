// Tables of names, each under a lock of its own: names are given and looked up seldom, and then kept as references. So
// many, because a table that grows is built anew under its lock: with a million names one holds some four thousand.
//
// All runtimes share the tables: a name is found by its text and its runtime. So a runtime need not have any, and plain
// threads look up names without one that might end meanwhile. A runtime's names go with its actors, before it ends; the
// address of its scheduler may be used again then.
//
// Each entry is in the chain of its bucket, linked both ways, and a membership of its actor (actor/membership.hpp): an
// actor's end takes as long as it has names, however many there are in all.
#include <ramie/patterns/registry.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/actor/membership.hpp>
#include <ramie/base/error.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/worker/worker.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ramie {

namespace detail {

namespace {

/// What a name is found by.
struct name_key {
  const scheduler* in;
  std::string_view name;
  std::size_t hash;

  name_key(const scheduler& s, std::string_view text) noexcept
      : in{&s},
        name{text},
        hash{std::hash<std::string_view>{}(text) ^ reinterpret_cast<std::uintptr_t>(&s) * 0x9e3779b97f4a7c15u} {}
};

struct name_entry : membership {
  std::string name;
  name_key key;  // of `name`
  any_actor actor;
  const type_info* type;
  name_entry* behind = nullptr;   // of the bucket, under the table's lock
  name_entry** before = nullptr;  // what refers to it there

  name_entry(std::string text, actor_cell& c, const type_info& of)
      : name{std::move(text)}, key{*home_of(c)->owner, name}, actor{c}, type{&of} {
    is_name = true;
  }
};

class name_table final : public member_table {
 public:
  static constexpr std::size_t tables = 256;

  /// False if somebody has the name, or the actor has ended. The table has the entry otherwise.
  bool add(std::unique_ptr<name_entry>& fresh) {
    std::lock_guard guard{lock_};
    if (find(fresh->key) != nullptr) return false;
    if (count_ == buckets_.size()) grow();
    if (!enlist(*fresh, *fresh->actor.cell())) return false;
    put(*fresh.release());
    ++count_;
    return true;
  }
  actor_cell* look_up(const name_key& key, const type_info* type) noexcept {
    std::lock_guard guard{lock_};
    const name_entry* found = find(key);
    if (found == nullptr || (type != nullptr && *found->type != *type)) return nullptr;
    actor_cell* c = found->actor.cell();
    c->add_reference();
    return c;
  }
  bool remove(const name_key& key) noexcept {
    std::unique_ptr<name_entry> found;
    std::lock_guard guard{lock_};
    found.reset(find(key));
    if (found == nullptr) return false;
    strike(*found);
    take_out(*found);
    return true;
  }
  void list(const scheduler& in, std::vector<std::string>& names) {
    std::lock_guard guard{lock_};
    for (const name_entry* e : buckets_)
      for (; e != nullptr; e = e->behind)
        if (e->key.in == &in) names.push_back(e->name);
  }

  void keep() noexcept override {}  // it lives for ever
  void let_go() noexcept override {}
  void forget_one(actor_cell& c) noexcept override {
    std::unique_ptr<name_entry> found;
    std::lock_guard guard{lock_};
    found.reset(static_cast<name_entry*>(strike_any(c)));
    if (found != nullptr) take_out(*found);
  }

 private:
  [[nodiscard]] name_entry*& bucket(std::size_t hash) noexcept { return buckets_[hash / tables % buckets_.size()]; }
  [[nodiscard]] name_entry* find(const name_key& key) noexcept {
    for (name_entry* e = bucket(key.hash); e != nullptr; e = e->behind)
      if (e->key.hash == key.hash && e->key.in == key.in && e->name == key.name) return e;
    return nullptr;
  }
  void put(name_entry& e) noexcept {
    name_entry*& first = bucket(e.key.hash);
    e.behind = first;
    e.before = &first;
    if (first != nullptr) first->before = &e.behind;
    first = &e;
  }
  void take_out(name_entry& e) noexcept {
    *e.before = e.behind;
    if (e.behind != nullptr) e.behind->before = e.before;
    --count_;
  }
  void grow() {
    std::vector<name_entry*> larger(buckets_.size() * 2);
    larger.swap(buckets_);
    for (name_entry* e : larger) {
      while (e != nullptr) {
        name_entry* const next = e->behind;
        put(*e);
        e = next;
      }
    }
  }

  spin_lock lock_;
  std::vector<name_entry*> buckets_ = std::vector<name_entry*>(8);
  std::size_t count_ = 0;
};

using name_tables = std::array<name_table, name_table::tables>;

/// Throws bad_alloc, if at all, when the first name is given.
name_tables& all_tables() {
  static auto* the_tables = new name_tables;  // actors may end after static destruction
  return *the_tables;
}
name_table& table_of(const name_key& key) { return all_tables()[key.hash % name_table::tables]; }

std::vector<std::string> names_in(const scheduler& in) {
  std::vector<std::string> names;
  for (name_table& t : all_tables()) {
    std::vector<std::string> here;
    t.list(in, here);
    names.insert(names.end(), std::make_move_iterator(here.begin()), std::make_move_iterator(here.end()));
  }
  return names;
}

}  // namespace

bool register_actor(std::string name, actor_cell& c, const type_info& type) {
  auto fresh = std::make_unique<name_entry>(std::move(name), c, type);
  return table_of(fresh->key).add(fresh);
}

const scheduler& names_here() {
  const worker* const w = worker::current();
  if (w == nullptr)
    throw usage_error{"ramie: whereis: this thread belongs to no runtime; say in which one to look: whereis(rt, name)"};
  return *w->owner;
}

actor_cell* find_actor(const scheduler& of, std::string_view name, const type_info* type) noexcept {
  const name_key key{of, name};
  return table_of(key).look_up(key, type);
}

}  // namespace detail

std::vector<std::string> registered_names() { return detail::names_in(detail::names_here()); }
std::vector<std::string> registered_names(runtime& in) { return detail::names_in(in.internals()); }

std::vector<std::string> names_of(const any_actor& who) {
  std::vector<std::string> names;
  const detail::actor_cell& c = *who.cell();
  std::lock_guard guard{who.cell()->lock};
  const detail::actor_extras* x = c.more.load(std::memory_order_relaxed);
  for (const detail::membership* m = x == nullptr ? nullptr : x->memberships; m != nullptr; m = m->next)
    if (m->is_name) names.push_back(static_cast<const detail::name_entry*>(m)->name);
  return names;
}

bool unregister_name(std::string_view name) {
  const detail::name_key key{detail::names_here(), name};
  return detail::table_of(key).remove(key);
}
bool unregister_name(runtime& in, std::string_view name) noexcept {
  const detail::name_key key{in.internals(), name};
  return detail::table_of(key).remove(key);
}

}  // namespace ramie
