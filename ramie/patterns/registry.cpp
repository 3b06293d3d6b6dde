// Tables of names, each under a lock of its own: names are given and looked up seldom, and then kept as references. So
// many, because a table that grows is built anew under its lock: with a million names one holds some four thousand.
//
// All runtimes share the tables: a name is found by its text and its runtime. So a runtime need not have any, and plain
// threads look up names without one that might end meanwhile. A runtime's names go with its actors, before it ends; the
// address of its scheduler may be used again then.
//
// Each entry is in the chain of its bucket, linked both ways, and a membership of its actor (actor/membership.hpp): an
// actor's end takes as long as it has names, however many there are in all. With a million names the place that refers
// to an entry is in no cache, and the end would wait for it. So an end only strikes its entry (`who` is null, and
// nobody finds it), and the sixteenth in a table takes out all sixteen, whose places come from memory at the same time.
#include <ramie/patterns/registry.hpp>

#include <ramie/actor/membership.hpp>
#include <ramie/base/error.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/task_memory.hpp>
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
  name_key(const scheduler& s, std::string_view text, std::size_t known) noexcept : in{&s}, name{text}, hash{known} {}
};

/// Small, so that it comes from the caches of task blocks: malloc took a good part of an end with a name for a block
/// that it had not met for long.
struct name_entry : membership {
  name_entry* behind = nullptr;   // of the bucket, under the table's lock
  name_entry** before = nullptr;  // what refers to it there
  std::string name;               // so far, an end needs it: one or two lines of the cache
  std::size_t hash;               // of both that follow
  const scheduler* in;
  const type_info* type;

  name_entry(std::string text, actor_cell& c, const type_info& of)
      : name{std::move(text)}, hash{name_key{*home_of(c)->owner, name}.hash}, in{home_of(c)->owner}, type{&of} {
    who = &c;
  }

  static void* operator new(std::size_t size) { return allocate_task(task_cache::list_of(size)); }
  static void operator delete(void* memory, std::size_t size) noexcept {
    free_task_memory(memory, task_cache::list_of(size));
  }
};
static_assert(sizeof(name_entry) <= task_cache::block_sizes[0] || sizeof(void*) != 8);

class name_table final : public member_table {
 public:
  static constexpr std::size_t tables = 256;
  static constexpr std::size_t struck_most = 16;  // at most half a megabyte of names in all; more is hardly faster

  /// False if somebody has the name, or the actor has ended. The table has the entry otherwise.
  bool add(std::unique_ptr<name_entry>& fresh) {
    std::lock_guard guard{lock_};
    if (find({*fresh->in, fresh->name, fresh->hash}) != nullptr) return false;
    if (count_ == buckets_.size()) grow();
    if (!enlist(*fresh, *fresh->who)) return false;
    put(*fresh.release());
    ++count_;
    return true;
  }
  actor_cell* look_up(const name_key& key, const type_info* type) noexcept {
    std::lock_guard guard{lock_};
    const name_entry* found = find(key);
    if (found == nullptr || (type != nullptr && *found->type != *type)) return nullptr;
    found->who->add_reference();
    return found->who;
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
        if (e->in == &in && e->who != nullptr) names.push_back(e->name);
  }

  [[nodiscard]] bool is_of_names() const noexcept override { return true; }
  void keep() noexcept override {}  // it lives for ever
  void let_go() noexcept override {}
  void forget_one(actor_cell& c) noexcept override {
    std::lock_guard guard{lock_};
    auto* const found = static_cast<name_entry*>(strike_any(c));
    if (found == nullptr) return;
    found->who = nullptr;
    struck_[struck_count_++] = found;
    if (struck_count_ == struck_most) take_out_struck();
  }

 private:
  [[nodiscard]] name_entry*& bucket(std::size_t hash) noexcept { return buckets_[hash / tables % buckets_.size()]; }
  [[nodiscard]] name_entry* find(const name_key& key) noexcept {
    for (name_entry* e = bucket(key.hash); e != nullptr; e = e->behind)
      if (e->hash == key.hash && e->who != nullptr && e->in == key.in && e->name == key.name) return e;
    return nullptr;
  }
  void put(name_entry& e) noexcept {
    name_entry*& first = bucket(e.hash);
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
  void take_out_struck() noexcept {
    for (std::size_t i = 0; i < struck_count_; ++i) __builtin_prefetch(struck_[i]->before, 1);
    for (std::size_t i = 0; i < struck_count_; ++i) {
      take_out(*struck_[i]);
      delete struck_[i];
    }
    struck_count_ = 0;
  }
  void grow() {
    take_out_struck();
    if (count_ < buckets_.size()) return;
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
  std::array<name_entry*, struck_most> struck_;
  std::size_t struck_count_ = 0;
};

using name_tables = std::array<name_table, name_table::tables>;

/// Throws bad_alloc, if at all, when the first name is given.
name_tables& all_tables() {
  static auto* the_tables = new name_tables;  // actors may end after static destruction
  return *the_tables;
}
name_table& table_of(std::size_t hash) { return all_tables()[hash % name_table::tables]; }

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
  return table_of(fresh->hash).add(fresh);
}

const scheduler& names_here() {
  const worker* const w = worker::current();
  if (w == nullptr)
    throw usage_error{"ramie: whereis: this thread belongs to no runtime; say in which one to look: whereis(rt, name)"};
  return *w->owner;
}

actor_cell* find_actor(const scheduler& of, std::string_view name, const type_info* type) noexcept {
  const name_key key{of, name};
  return table_of(key.hash).look_up(key, type);
}

}  // namespace detail

std::vector<std::string> registered_names() { return detail::names_in(detail::names_here()); }
std::vector<std::string> registered_names(runtime& in) { return detail::names_in(in.internals()); }

std::vector<std::string> names_of(const any_actor& who) {
  std::vector<std::string> names;
  const detail::actor_cell& c = *who.cell();
  std::lock_guard guard{who.cell()->lock};
  for (const detail::membership* m = c.memberships; m != nullptr; m = m->next)
    if (m->table->is_of_names()) names.push_back(static_cast<const detail::name_entry*>(m)->name);
  return names;
}

bool unregister_name(std::string_view name) {
  const detail::name_key key{detail::names_here(), name};
  return detail::table_of(key.hash).remove(key);
}
bool unregister_name(runtime& in, std::string_view name) noexcept {
  const detail::name_key key{in.internals(), name};
  return detail::table_of(key.hash).remove(key);
}

}  // namespace ramie
