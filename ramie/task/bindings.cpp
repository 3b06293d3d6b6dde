#include <ramie/task/bindings.hpp>

#include <cstddef>
#include <memory>
#include <new>

namespace ramie::detail {

constinit atomic<bool> bindings_in_use{false};

const bound_set* keep(const bound_set* set) noexcept {
  if (set != nullptr) set->references.fetch_add(1, std::memory_order_relaxed);
  return set;
}

void let_go(const bound_set* set) noexcept {
  if (set == nullptr || set->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (std::uint32_t i = 0; i < set->count; ++i)
    if (const bound_value* const v = set->values()[i]; v->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete v;
  ::operator delete(const_cast<bound_set*>(set));
}

const bound_set* make_set(const bound_set* around, const bound_value* added) {
  std::unique_ptr<const bound_value> owner{added};
  const std::size_t others = around == nullptr ? 0 : around->count;
  auto* const made = ::new (::operator new(sizeof(bound_set) + (others + 1) * sizeof(const bound_value*))) bound_set;
  for (std::size_t i = 0; i < others; ++i) {
    const bound_value* const v = around->values()[i];
    if (v->key == added->key) continue;
    v->references.fetch_add(1, std::memory_order_relaxed);
    made->values()[made->count++] = v;
  }
  made->values()[made->count++] = owner.release();
  return made;
}

}  // namespace ramie::detail
