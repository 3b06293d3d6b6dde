// What a ready queue holds: a stack whose fiber may resume, or a resident task that has something to do.
#pragma once

#include <ramie/stack/stack.hpp>
#include <ramie/task/task.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// One word; the lowest bit marks residents. Zero is nothing.
class ready_item {
 public:
  ready_item() noexcept = default;
  ready_item(std::nullptr_t) noexcept {}
  RAMIE_ALWAYS_INLINE ready_item(stack* s) noexcept : bits_{reinterpret_cast<std::uintptr_t>(s)} {}
  RAMIE_ALWAYS_INLINE ready_item(task* t) noexcept : bits_{reinterpret_cast<std::uintptr_t>(t) | 1} {}

  [[nodiscard]] RAMIE_ALWAYS_INLINE explicit operator bool() const noexcept { return bits_ != 0; }
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool is_resident() const noexcept { return (bits_ & 1) != 0; }
  [[nodiscard]] RAMIE_ALWAYS_INLINE stack* as_stack() const noexcept { return reinterpret_cast<stack*>(bits_); }
  [[nodiscard]] RAMIE_ALWAYS_INLINE task* as_resident() const noexcept { return reinterpret_cast<task*>(bits_ - 1); }
  friend bool operator==(ready_item, ready_item) noexcept = default;

  /// For atomic words.
  [[nodiscard]] RAMIE_ALWAYS_INLINE std::uintptr_t bits() const noexcept { return bits_; }
  [[nodiscard]] static ready_item from_bits(std::uintptr_t bits) noexcept {
    ready_item item;
    item.bits_ = bits;
    return item;
  }

  /// The link that both kinds have, for lists of them.
  [[nodiscard]] ready_item next() const noexcept {
    return from_bits(reinterpret_cast<std::uintptr_t>(is_resident() ? static_cast<void*>(as_resident()->next)
                                                                    : static_cast<void*>(as_stack()->next)));
  }
  void set_next(ready_item item) const noexcept {
    if (is_resident()) as_resident()->next = reinterpret_cast<task*>(item.bits_);
    else as_stack()->next = reinterpret_cast<stack*>(item.bits_);
  }

 private:
  std::uintptr_t bits_ = 0;
};

/// The task to run. The caller must know that it stays ready meanwhile. Null only for a stack that no fiber is on.
[[nodiscard]] inline task* task_of(ready_item item) noexcept {
  return item.is_resident() ? item.as_resident()
                            : static_cast<task*>(item.as_stack()->occupant.load(std::memory_order_relaxed));
}

/// May another worker run it? As for task_of.
[[nodiscard]] inline bool is_movable(ready_item item) noexcept {
  const task* t = task_of(item);
  return t == nullptr || (t->flags.load(std::memory_order_relaxed) & task::pinned_flag) == 0;
}

}  // namespace ramie::detail
