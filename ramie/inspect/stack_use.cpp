// The table is open-addressed by name or type. Rows are made under a lock, and then counted in `rows_made` (release):
// readers, dumps in signal handlers among them, look at no others (acquire). The numbers in a row are independent
// atomics.
#include <ramie/inspect/stack_use.hpp>

#include <ramie/inspect/dump_facts.hpp>
#include <ramie/inspect/symbols.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/stack/paint.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/worker/stack_use_table.hpp>

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>

namespace ramie::detail {

namespace {

constexpr std::size_t rows_most = 1000;  // by name or function, kept; a guess
constexpr std::size_t places = 4096;     // a power of two; a guess

struct table {
  std::array<stack_use_row, rows_most + 1> rows;  // the last: for those without a row
  std::array<std::uint16_t, places> at{};         // 0: nothing, else a row's number + 1
};

constinit spin_lock lock;
std::atomic<table*> made{nullptr};  // at the first use; never freed
std::atomic<std::size_t> rows_made{0};

std::size_t hash_of(const char* name, const task_type* type) noexcept {
  std::uint64_t h = reinterpret_cast<std::uintptr_t>(type);
  for (const char* c = name; *c != '\0'; ++c) h = (h ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
  return static_cast<std::size_t>((h * 0x9e3779b97f4a7c15u) >> 40);
}

stack_use_row& row_of(table& t, const char* name, const task_type* type) noexcept {
  std::array<char, 64> cut{};
  std::strncpy(cut.data(), name, cut.size() - 1);
  if (cut[0] != '\0') type = nullptr;
  const std::lock_guard guard{lock};
  std::size_t place = hash_of(cut.data(), type) % places;
  for (; t.at[place] != 0; place = (place + 1) % places) {
    stack_use_row& row = t.rows[t.at[place] - 1u];
    if (row.type == type && row.name == cut) return row;
  }
  const std::size_t next = rows_made.load(std::memory_order_relaxed);
  if (next == rows_most) return t.rows[rows_most];
  t.rows[next].name = cut;
  t.rows[next].type = type;
  t.at[place] = static_cast<std::uint16_t>(next + 1);
  rows_made.store(next + 1, std::memory_order_release);
  return t.rows[next];
}

/// The task that is measured: a fork job counts as its fiber, which waits for it.
const task& root_of(const task& t) noexcept {
  const task* at = &t;
  while ((at->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0 && at->parent != nullptr) at = at->parent;
  return *at;
}

void note(stack_use_row& row, std::size_t depth, std::size_t usable) noexcept {
  row.measured.fetch_add(1, std::memory_order_relaxed);
  std::size_t most = row.most.load(std::memory_order_relaxed);
  while (depth > most && !row.most.compare_exchange_weak(most, depth, std::memory_order_relaxed)) {
  }
  if (depth > most) row.usable.store(usable, std::memory_order_relaxed);
}

/// For the reader: the closure or the class, without what ramie wraps around it.
std::string readable(const task_type* type, symbol_finder& symbols) {
  if (type == nullptr) return "(others)";
  if (type->kind == task_kind::resident) {
    resident_facts facts;
    const auto* known = static_cast<const resident_type*>(type);
    if (known->describe != nullptr) known->describe(nullptr, type, facts);
    return facts.type.empty() ? std::string{facts.kind} : std::string{facts.kind} + " " + std::string{facts.type};
  }
  const code_place place = symbols.find(reinterpret_cast<std::uintptr_t>(type->run));
  if (place.function == nullptr) return "(no name)";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{abi::__cxa_demangle(place.function, nullptr, nullptr, &status),
                                                         &std::free};
  return text == nullptr ? place.function : text.get();
}

struct gathered {
  std::vector<stack_use> found;
  symbol_finder symbols;
};

/// Adds one that has not ended. Its facts are read as dumps read them: it may go away meanwhile.
void add_running(stack& s, gathered& to) {
  const void* occupant = s.occupant.load(std::memory_order_acquire);
  task_facts who;
  if (occupant == nullptr) return;
  look_at_task(occupant, who);
  if (!who.known || !who.measures_stack || s.occupant.load(std::memory_order_acquire) != occupant) return;
  const std::string name =
      who.name[0] != '\0' ? who.name.data() : readable(static_cast<const task_type*>(who.type), to.symbols);
  const std::size_t depth = painted_depth(s);
  for (stack_use& one : to.found) {
    if (one.name != name) continue;
    ++one.measured;
    if (depth <= one.most_bytes) return;
    one.most_bytes = depth;
    one.usable_bytes = usable_size(s);
    return;
  }
  to.found.push_back({name, 1, depth, usable_size(s)});
}

}  // namespace

namespace {

/// For programs that asked by the environment, and so have no other way to ask.
void tell_at_exit() noexcept {
  try {
    std::fprintf(stderr, "ramie: maximum stack use in bytes\n");
    for (const stack_use& one : stack_usage())
      std::fprintf(stderr, "%8zu of %zu: %s, %llu samples\n", one.most_bytes, one.usable_bytes, one.name.c_str(),
                   static_cast<unsigned long long>(one.measured));
  } catch (const std::bad_alloc&) {
  }
}

void make_table() {
  table* const fresh = new table;
  table* none = nullptr;
  if (!made.compare_exchange_strong(none, fresh, std::memory_order_acq_rel)) {
    delete fresh;  // another thread was faster
    return;
  }
  const char* asked = std::getenv("RAMIE_PAINT_STACKS");
  if (asked != nullptr && *asked == '1') std::atexit(&tell_at_exit);
}

}  // namespace

void begin_stack_use(task& t, stack& here) noexcept {
  try {
    if (made.load(std::memory_order_acquire) == nullptr) make_table();
    extras_of(t).measures_stack = true;
  } catch (const std::bad_alloc&) {
    return;
  }
  paint(here);
}

void end_stack_use(const task& t, const stack& here) noexcept {
  const task_extras* extras = t.extras.load(std::memory_order_acquire);
  if (extras == nullptr || !extras->measures_stack) return;
  const std::size_t depth = painted_depth(here);
  note(row_of(*made.load(std::memory_order_acquire), name_of(&t), root_of(t).type), depth, usable_size(here));
}

void for_each_stack_use(void (*visit)(void* context, const stack_use_row& row), void* context) noexcept {
  const std::size_t n = rows_made.load(std::memory_order_acquire);
  const table* t = made.load(std::memory_order_acquire);
  if (t == nullptr) return;
  for (std::size_t i = 0; i < n; ++i) visit(context, t->rows[i]);
  if (t->rows[rows_most].measured.load(std::memory_order_relaxed) != 0) visit(context, t->rows[rows_most]);
}

}  // namespace ramie::detail

namespace ramie {

std::vector<stack_use> stack_usage() {
  const auto here = std::make_unique<detail::gathered>();  // too large for a small fiber's stack
  detail::for_each_stack_use(
      [](void* context, const detail::stack_use_row& row) {
        auto& to = *static_cast<detail::gathered*>(context);
        to.found.push_back({row.name[0] != '\0' ? row.name.data() : detail::readable(row.type, to.symbols),
                            row.measured.load(std::memory_order_relaxed), row.most.load(std::memory_order_relaxed),
                            row.usable.load(std::memory_order_relaxed)});
      },
      here.get());
  detail::for_each_stack(
      [](void* context, detail::stack& s) { detail::add_running(s, *static_cast<detail::gathered*>(context)); },
      here.get());
  std::sort(here->found.begin(), here->found.end(),
            [](const stack_use& a, const stack_use& b) { return a.most_bytes > b.most_bytes; });
  return std::move(here->found);
}

}  // namespace ramie
