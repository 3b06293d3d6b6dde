#include <ramie/task/bound.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/error.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/region.hpp>
#include <ramie/task/task.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace ramie::detail {

namespace {

// One noinline accessor, as for the current worker: for threads only, but its callers may be compiled into fibers'
// code.
RAMIE_NOINLINE binding_chain& bindings_of_thread() noexcept {
  static thread_local constinit binding_chain chain;
  asm volatile("");
  return chain;
}

binding_chain& own_bindings(task* t) { return t == nullptr ? bindings_of_thread() : extras_of(*t).bindings; }

struct view {
  const bound_set* sees;
  bool is_all;  // nothing further out counts
};

// Strands read what their parent keeps late; what it refers to was there before they were forked.
view inherited_in(const binding_chain& chain) noexcept {
  const bound_set* const found = chain.inherited.load(std::memory_order_relaxed);
  return {found, found != nullptr};
}

/// What the chain's own code sees.
view innermost_of(const binding_chain& chain) noexcept {
  const binding* const b = chain.innermost.load(std::memory_order_relaxed);
  return b == nullptr ? inherited_in(chain) : view{b->sees, true};
}

/// B3. `place` lies on the stack of the chain's fiber.
view around(binding_chain& chain, const void* place) noexcept {
  if (chain.innermost.load(std::memory_order_relaxed) != nullptr) {
    const std::lock_guard guard{chain.lock};
    for (const binding* b = chain.innermost.load(std::memory_order_relaxed); b != nullptr; b = b->outer)
      if (!std::less<const void*>{}(b, place)) return {b->sees, true};
  }
  return inherited_in(chain);
}

/// What the parents of a strand see where it was forked. `t` is none: nothing.
const bound_set* outside_of(const task& t) noexcept {
  const task* at = &t;
  while ((at->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0) {
    const void* const place = fork_place(*at);
    at = at->parent;
    if (place == nullptr || at == nullptr) break;
    task_extras* const extras = at->extras.load(std::memory_order_acquire);
    if (extras == nullptr) continue;
    if (const view found = around(extras->bindings, place); found.is_all) return found.sees;
  }
  return nullptr;
}

}  // namespace

const bound_set* bound_here() noexcept {
  if (!binds()) return nullptr;
  task* const t = running_task_here();
  if (t == nullptr) return innermost_of(bindings_of_thread()).sees;
  task_extras* const extras = t->extras.load(std::memory_order_acquire);
  if (extras != nullptr)
    if (const view own = innermost_of(extras->bindings); own.is_all) return own.sees;
  const bound_set* const found = outside_of(*t);
  if (found != nullptr) {  // B3: it is a strand
    try {
      extras_of(*t).bindings.inherited.store(keep(found), std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {  // it looks again, the next time
    }
  }
  return found;
}

const bound_value* find_bound(std::uint64_t key) noexcept {
  const bound_set* const seen = bound_here();
  if (seen != nullptr)
    for (std::uint32_t i = 0; i < seen->count; ++i)
      if (seen->values()[i]->key == key) return seen->values()[i];
  return nullptr;
}

void inherit_bound(task& t) {
  if (const bound_set* const here = bound_here(); here != nullptr)
    extras_of(t).bindings.inherited.store(keep(here), std::memory_order_relaxed);
}

void end_bound(task& t) noexcept {
  binding_chain& chain = t.extras.load(std::memory_order_relaxed)->bindings;
  const bound_set* const inherited = chain.inherited.load(std::memory_order_relaxed);
  if (inherited == nullptr) return;
  chain.inherited.store(nullptr, std::memory_order_relaxed);
  t.flags.fetch_or(task::ending_flag, std::memory_order_relaxed);
  let_go(inherited);
}

void asked_by::forget() noexcept { detail::let_go(std::exchange(bound, nullptr)); }

called_within::called_within(const bound_set* set) noexcept : changed_{set != nullptr} {
  if (changed_) bindings_of_thread().inherited.store(set, std::memory_order_relaxed);
}
called_within::~called_within() {
  if (changed_) bindings_of_thread().inherited.store(nullptr, std::memory_order_relaxed);
}

void throw_not_bound(const char* name) {
  throw usage_error{std::string{"ramie: scoped_value \""} + name +
                    "\": no value is bound here: the call is not below a `with` of it"};
}

void bound_scope::open(binding_chain& chain, task* t, const bound_set* sees) noexcept {
  here_ = {chain.innermost.load(std::memory_order_relaxed), sees, t};
  is_open_ = true;
  const std::lock_guard guard{chain.lock};
  chain.innermost.store(&here_, std::memory_order_relaxed);
}

bound_scope::bound_scope(const bound_value* made) {
  std::unique_ptr<const bound_value> owner{made};
  task* const t = running_task_here();
  binding_chain& chain = own_bindings(t);
  if (!binds()) bindings_in_use.store(true, std::memory_order_relaxed);
  open(chain, t, make_set(bound_here(), owner.release()));
}

bound_scope::bound_scope(nothing /*unused*/) {
  if (bound_here() == nullptr) return;
  task* const t = running_task_here();
  open(own_bindings(t), t, nullptr);
}

bound_scope::bound_scope(as_at where) noexcept {
  task* const t = running_task_here();
  const bound_set* sees = nullptr;
  if (t == nullptr) {
    // The places on a plain thread's stack are not known; its children are calls, and its chain is its own.
    sees = around(bindings_of_thread(), where.place).sees;
  } else {
    if (const task* const at = nearest_owner(t, where.place); at != nullptr) {
      task_extras* const extras = at->extras.load(std::memory_order_acquire);
      const view found = extras == nullptr ? view{nullptr, false} : around(extras->bindings, where.place);
      sees = found.is_all ? found.sees : outside_of(*at);
    }
  }
  if (sees == bound_here()) return;
  try {
    open(own_bindings(t), t, keep(sees));
  } catch (const std::bad_alloc&) {
    let_go(sees);
  }
}

bound_scope::~bound_scope() {
  if (!is_open_) return;
  binding_chain& chain = here_.opened_by == nullptr ? bindings_of_thread()
                                                    : here_.opened_by->extras.load(std::memory_order_relaxed)->bindings;
  {
    const std::lock_guard guard{chain.lock};
    RAMIE_ASSERT(chain.innermost.load(std::memory_order_relaxed) == &here_,
                 "a binding was closed that is not the innermost of its fiber");
    chain.innermost.store(here_.outer, std::memory_order_relaxed);
  }
  let_go(here_.sees);
}

}  // namespace ramie::detail
