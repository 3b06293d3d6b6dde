// The identity of a fiber: comparable, hashable, printable.
#pragma once

#include <compare>
#include <functional>
#include <ostream>

namespace ramie {

/// Unique among live fibers and threads; may be reused after the fiber and its handle are gone. A default-constructed
/// one identifies none. Functions of fork_join and children of a scope share the identity of their owner.
class fiber_id {
 public:
  fiber_id() noexcept = default;
  explicit fiber_id(const void* address) noexcept : address_{address} {}
  friend bool operator==(fiber_id, fiber_id) noexcept = default;
  friend std::strong_ordering operator<=>(fiber_id a, fiber_id b) noexcept {
    return std::compare_three_way{}(a.address_, b.address_);
  }
  friend std::ostream& operator<<(std::ostream& out, fiber_id id) { return out << id.address_; }

 private:
  friend struct std::hash<fiber_id>;
  const void* address_ = nullptr;
};

}  // namespace ramie

template <>
struct std::hash<ramie::fiber_id> {
  std::size_t operator()(ramie::fiber_id id) const noexcept { return std::hash<const void*>{}(id.address_); }
};
