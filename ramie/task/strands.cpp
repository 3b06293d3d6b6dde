#include <ramie/task/strands.hpp>

#include <ramie/base/plant.hpp>
#include <ramie/machine/backoff.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ramie::detail {

namespace {

// So many that few parents share one: a server may have a scope for each of some ten thousand connections. Those that
// are not used take no memory.
constexpr std::size_t buckets_log2 = RAMIE_INTERLEAVE ? 1 : 12;

constinit std::array<family_bucket, std::size_t{1} << buckets_log2> buckets{};

/// Inside the lock. The first from `from` on that belongs to `of`.
strand_link* pin_from(strand_link* from, const stack& of) noexcept {
  while (from != nullptr && from->of != &of) from = from->next;
  if (from != nullptr) ++from->pins;
  return from;
}

strand_link* pin_first(const stack& of) noexcept {
  family_bucket& b = family_bucket_of(of);
  if (b.strands.load(std::memory_order_relaxed) == nullptr) return nullptr;  // N3: as inside the lock
  const std::lock_guard guard{b.lock};
  return pin_from(b.strands.load(std::memory_order_relaxed), of);
}

/// Lets go of a link, and pins the next in its list.
strand_link* pin_next(strand_link& after, const stack& of) noexcept {
  const std::lock_guard guard{family_bucket_of(of).lock};
  strand_link* const next = pin_from(after.next, of);
  --after.pins;
  return next;
}

}  // namespace

family_bucket& family_bucket_of(const stack& s) noexcept {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(&s) * 0x9e3779b97f4a7c15u;
  return buckets[mixed >> (64 - buckets_log2)];
}

void link_strand(strand_link& link, const stack& of, strand_link* up, stack& place) noexcept {
  if (RAMIE_PLANT(strand_unlinked)) return;
  link.of = &of;
  link.place = &place;
  link.up = up;
  link.previous = nullptr;
  family_bucket& b = family_bucket_of(of);
  const std::lock_guard guard{b.lock};
  link.next = b.strands.load(std::memory_order_relaxed);
  if (link.next != nullptr) link.next->previous = &link;
  b.strands.store(&link, std::memory_order_relaxed);
}

void unlink_strand(strand_link& link) noexcept {
  if (link.of == nullptr) return;
  family_bucket& b = family_bucket_of(*link.of);
  for (int round = 0;; pause_a_little(round)) {
    const std::lock_guard guard{b.lock};
    if (link.pins != 0 && !RAMIE_PLANT(pinned_strand_unlinked)) continue;
    if (link.previous == nullptr) b.strands.store(link.next, std::memory_order_relaxed);
    else link.previous->next = link.next;
    if (link.next != nullptr) link.next->previous = link.previous;
    link.of = nullptr;
    return;
  }
}

void visit_strands(const stack& top, void (*visit)(void* argument, stack& s), void* argument) noexcept {
  for (strand_link* at = pin_first(top); at != nullptr;) {
    visit(argument, *at->place);
    if (strand_link* const below = pin_first(*at->place); below != nullptr) {
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
