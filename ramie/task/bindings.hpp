// Values that code binds for a stretch of its run, and that all code below it sees (ramie/fiber/scoped_value.hpp).
//
//  B1 What code sees is one set: a value for each key, each counted, as is the set. Sets do not change. To bind a value
//     makes a set of it and of the others that are seen there, so no set is larger than there are keys.
//  B2 A binding lies on the stack of the code that opened it, and has a reference to its set. The bindings of one fiber
//     form a chain, innermost first, as its regions do (region.hpp), and are told from the forks and scopes around them
//     by their places, as those are: call_inside. Outside of them a fiber sees the set that was seen where it was
//     spawned, to which it has a reference from before it is submitted until its function has returned.
//  B3 A strand sees what its parent sees at the fork, or at the scope: the innermost of the parent's bindings that lies
//     above that place on the parent's stack. The parent may open and close inner ones meanwhile, hence the lock; those
//     around the fork stay, with their sets, until the strand has ended. As what it sees does not change, it keeps it when
//     it has looked for it. What is not forked from the parent's stack (a scope on the heap) sees nothing of the parent's:
//     nobody knows what stays. A child that is run as a call, at the scope's join, sees the same: a binding with that set
//     hides those between.
//  B4 A request takes a reference to what its sender sees. While a handler runs for it, that stands in place of what the
//     actor inherited, which is nothing: actors live longer than who spawned them. Strands of the handler read it; they
//     were forked behind its change, and have ended before the next.
//  B5 Who never binds anything pays for the look at one flag, at each spawn, request, blocking call and join of a scope
//     with children. It is set before the first set is seen by anybody, and never cleared.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/config.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <cstdint>

namespace ramie::detail {

struct task;

/// B1. Derived classes hold the value.
struct bound_value {
  explicit bound_value(std::uint64_t k) noexcept : key{k} {}
  bound_value(const bound_value&) = delete;
  bound_value& operator=(const bound_value&) = delete;
  virtual ~bound_value() = default;

  const std::uint64_t key;
  mutable atomic<std::uint32_t> references{1};
};

/// B1. Behind it, `count` references to values.
struct bound_set {
  mutable atomic<std::uint32_t> references{1};
  std::uint32_t count = 0;

  [[nodiscard]] const bound_value** values() noexcept { return reinterpret_cast<const bound_value**>(this + 1); }
  [[nodiscard]] const bound_value* const* values() const noexcept {
    return reinterpret_cast<const bound_value* const*>(this + 1);
  }
};
static_assert(sizeof(bound_set) % alignof(const bound_value*) == 0);

/// B2. By the code on whose stack it lies.
struct binding {
  binding* outer = nullptr;
  const bound_set* sees = nullptr;  // a reference; null: nothing
  task* opened_by = nullptr;        // null: a plain thread
};

/// Those of one fiber, actor or thread.
struct binding_chain {
  spin_lock lock;
  atomic<binding*> innermost{nullptr};          // written by its fiber, inside the lock
  atomic<const bound_set*> inherited{nullptr};  // a fiber's, or a strand's: a reference
};

/// B5.
extern atomic<bool> bindings_in_use;
[[nodiscard]] RAMIE_ALWAYS_INLINE bool binds() noexcept { return bindings_in_use.load(std::memory_order_relaxed); }

/// One more reference, but for null.
const bound_set* keep(const bound_set* set) noexcept;
/// One less. The last destroys values that are in no other set.
void let_go(const bound_set* set) noexcept;
/// A set of what is in `around` (null: nothing) and `added`, which it takes, whatever comes. Throws std::bad_alloc.
const bound_set* make_set(const bound_set* around, const bound_value* added);

}  // namespace ramie::detail
