#include <ramie/task/strands.hpp>

#include <ramie/base/plant.hpp>
#include <ramie/machine/backoff.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ramie::detail {

namespace {

// So many that few parents share one: a server may have a scope for each of its connections. Descriptors of stacks lie
// side by side, so buckets that are used do, too; the others take no memory.
constexpr std::size_t buckets_most = RAMIE_INTERLEAVE ? 2 : std::size_t{1} << 16;

constinit std::array<family_bucket, buckets_most> buckets{};

/// Inside the lock: where the first link of `of` hangs, or would.
strand_link** find_family(strand_link*& first, const stack& of) noexcept {
  strand_link** at = &first;
  while (*at != nullptr && (*at)->of != &of) at = &(*at)->next_family;
  return at;
}

strand_link* pin(strand_link* link) noexcept {
  if (link != nullptr) ++link->pins;
  return link;
}

strand_link* pin_first(const stack& of) noexcept {
  family_bucket& b = family_bucket_of(of);
  if (b.families.load(std::memory_order_relaxed) == nullptr) return nullptr;  // N3: as inside the lock
  const std::lock_guard guard{b.lock};
  strand_link* first = b.families.load(std::memory_order_relaxed);
  return pin(*find_family(first, of));
}

/// Lets go of a link, and pins the next in its list.
strand_link* pin_next(strand_link& after, const stack& of) noexcept {
  const std::lock_guard guard{family_bucket_of(of).lock};
  --after.pins;
  return pin(after.next);
}

/// Inside the lock.
void take_out(family_bucket& b, strand_link& link) noexcept {
  if (link.next != nullptr) link.next->previous = link.previous;
  if (link.previous != nullptr) {
    link.previous->next = link.next;
    return;
  }
  strand_link* first = b.families.load(std::memory_order_relaxed);
  strand_link** const own = find_family(first, *link.of);
  *own = link.next_family;
  if (link.next != nullptr) {
    link.next->next_family = link.next_family;
    *own = link.next;
  }
  b.families.store(first, std::memory_order_relaxed);
}

}  // namespace

family_bucket& family_bucket_of(const stack& s) noexcept {
  return buckets[reinterpret_cast<std::uintptr_t>(&s) / sizeof(stack) % buckets_most];
}

void link_strand(strand_link& link, const stack& of, strand_link* up, stack& place) noexcept {
  if (RAMIE_PLANT(strand_unlinked)) return;
  link.of = &of;
  link.place = &place;
  link.up = up;
  family_bucket& b = family_bucket_of(of);
  const std::lock_guard guard{b.lock};
  strand_link* first = b.families.load(std::memory_order_relaxed);
  strand_link** const own = find_family(first, of);
  link.previous = nullptr;
  link.next = *own;
  link.next_family = nullptr;
  if (link.next != nullptr) {
    link.next->previous = &link;
    link.next_family = link.next->next_family;
  }
  *own = &link;  // N5
  b.families.store(first, std::memory_order_relaxed);
}

void unlink_strand(strand_link& link) noexcept {
  if (link.of == nullptr) return;
  family_bucket& b = family_bucket_of(*link.of);
  for (int round = 0;; pause_a_little(round)) {
    const std::lock_guard guard{b.lock};
    if (link.pins != 0 && !RAMIE_PLANT(pinned_strand_unlinked)) continue;
    take_out(b, link);
    link.of = nullptr;
    return;
  }
}

void visit_strands(const stack& top, bool (*visit)(void* argument, stack& s), void* argument) noexcept {
  for (strand_link* at = pin_first(top); at != nullptr;) {
    const bool deeper = visit(argument, *at->place);
    if (strand_link* const below = deeper ? pin_first(*at->place) : nullptr; below != nullptr) {
      at = below;
      continue;
    }
    for (;;) {
      const stack& list = *at->of;
      strand_link* const up = at->up;
      at = pin_next(*at, list);
      if (at != nullptr || &list == &top) break;
      at = up;  // its strands have been walked
    }
  }
}

}  // namespace ramie::detail
