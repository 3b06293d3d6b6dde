// Where stacks come from. See pool.cpp for how slabs, guards and caches work.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/stack/stack.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// How a stack's lowest pages are made to fault.
enum class guard_kind : std::uint8_t {
  automatic,  // madvise where the kernel has MADV_GUARD_INSTALL (6.13+), else mprotect
  madvise,    // MADV_GUARD_INSTALL; no mapping of its own
  mprotect,   // PROT_NONE; two mappings a stack, so bounded by vm.max_map_count
  none,       // no guard: an overflow corrupts the neighbour. For measurements only
};

inline constexpr std::size_t stack_size_min = 16 * 1024;
inline constexpr std::size_t stack_size_max = std::size_t{1} << 30;
inline constexpr std::size_t stack_size_default = 256 * 1024;

/// The class for stacks of at least `size` bytes of address space (guard included; rounded up to a power of two),
/// created on first use; lives until the process ends. Throws invalid_argument if `size` is out of [stack_size_min,
/// stack_size_max] or `guard` is not supported by this kernel. Any thread.
stack_class& stack_class_of(std::size_t size, guard_kind guard = guard_kind::automatic);

/// Takes a stack from the class's depot, or maps a slab. Throws resource_error, naming the limit. Any thread.
stack* acquire_stack(stack_class& from);
/// As above; null where acquire_stack would throw. If it fails, a later acquire_stack on the same thread says why.
stack* try_acquire_stack(stack_class& from) noexcept;
/// Returns a stack to its class's depot. Its descriptor keeps all but `next`. Any thread.
void release_stack(stack* s) noexcept;

std::size_t usable_size(const stack_class& c) noexcept;  // bytes between guard and top that each stack of the class has
std::size_t usable_size(const stack& s) noexcept;  // bytes between guard and top; up to 960 more, see slab.hpp, colours
char* lowest_usable(const stack& s) noexcept;      // just above the guard
std::size_t slot_size(const stack_class& c) noexcept;  // bytes of address space a stack, guard included
char* slot_base(const stack& s) noexcept;              // lowest byte of the slot; the guard begins here
/// True if `address` is in the guard of `s`. Async-signal-safe.
bool in_guard(const stack& s, const void* address) noexcept;
/// Returns the pages that are wholly below `address` to the system; `address` is in `s`, on which the caller runs, and
/// nothing below it is in use. Does nothing if the system refuses.
void give_back_below(const stack& s, const void* address) noexcept;
/// The stack whose slot (guard included) holds `address`, or null. Async-signal-safe, lock-free.
stack* find_stack(const void* address) noexcept;
/// True for a stack that its slab has handed out; then all that was written to make it can be read, even if the pointer
/// was obtained by a race. Any pointer. Async-signal-safe, lock-free.
bool is_made(const stack* s) noexcept;

/// Calls `visit(argument, stack)` for every stack of every class that was ever handed out. The descriptors stay valid;
/// their contents may change meanwhile. Any thread; async-signal-safe.
void for_each_stack(void (*visit)(void* argument, stack& s), void* argument);

struct stack_pool_stats {
  std::size_t slots_reserved;  // address space, in slots
  std::size_t slots_in_use;    // handed out, worker caches included
  std::size_t slots_warm;      // in a depot with pages still resident
};
stack_pool_stats stats(const stack_class& c);

/// Returns the pages of all stacks in the class's depot to the system; caches keep theirs unless flushed. Any thread.
void trim(stack_class& c) noexcept;

/// For AddressSanitizer: unpoisons what abandoned frames left on `s`, on which nothing runs. Every way to
/// acquire a stack does this. Does nothing in other builds.
void forget_frames(stack& s) noexcept;

/// A worker's own LIFO store of stacks of one class. One thread at a time; never suspends.
class stack_cache {
 public:
  explicit stack_cache(stack_class& c) noexcept : class_{&c} {}
  stack_cache(const stack_cache&) = delete;
  stack_cache& operator=(const stack_cache&) = delete;
  ~stack_cache() { flush(); }

  /// Null when cache, depot and system all have none.
  RAMIE_ALWAYS_INLINE stack* try_acquire() noexcept {
    if (stack* s = first_; s != nullptr) [[likely]] {
      first_ = s->next;
      --count_;
      if constexpr (RAMIE_ASAN != 0) forget_frames(*s);
      return s;
    }
    return refill();
  }
  /// `s` must be of this cache's class.
  RAMIE_ALWAYS_INLINE void release(stack* s) noexcept {
    s->next = first_;
    first_ = s;
    if (++count_ > capacity) [[unlikely]]
      spill();
  }
  /// Returns all to the depot.
  void flush() noexcept;
  [[nodiscard]] stack_class& of() const noexcept { return *class_; }

 private:
  static constexpr std::size_t capacity = 64;
  RAMIE_COLD stack* refill() noexcept;  // takes half a cache from the depot at once
  RAMIE_COLD void spill() noexcept;     // returns the colder half to the depot

  stack_class* class_;
  stack* first_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace ramie::detail
