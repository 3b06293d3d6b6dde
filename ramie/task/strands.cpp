#include <ramie/task/strands.hpp>

#include <ramie/base/plant.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/stack/pool.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

namespace ramie::detail {

namespace {

struct alignas(64) bucket {
  spin_lock lock;
  strand_link* first = nullptr;  // inside the lock
};

// Guesses. So many buckets that workers seldom meet in one, except for strands of one fiber.
constexpr std::size_t buckets_log2 = RAMIE_INTERLEAVE ? 1 : 7;
constexpr std::size_t copied_most = RAMIE_INTERLEAVE ? 2 : 256;

constinit std::array<bucket, std::size_t{1} << buckets_log2> buckets{};

bucket& bucket_of(const void* root) noexcept {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(root) * 0x9e3779b97f4a7c15u;
  return buckets[mixed >> (64 - buckets_log2)];
}

}  // namespace

void link_strand(strand_link& link, const void* root, stack& place) noexcept {
  link.root = root;
  link.place = &place;
  if (RAMIE_PLANT(strand_unlinked)) return;
  bucket& b = bucket_of(root);
  const std::lock_guard guard{b.lock};
  link.next = b.first;
  if (link.next != nullptr) link.next->previous = &link;
  b.first = &link;
}

void unlink_strand(strand_link& link) noexcept {
  if (link.root == nullptr || RAMIE_PLANT(strand_unlinked)) return;
  bucket& b = bucket_of(link.root);
  const std::lock_guard guard{b.lock};
  (link.previous == nullptr ? b.first : link.previous->next) = link.next;
  if (link.next != nullptr) link.next->previous = link.previous;
  link.root = nullptr;
}

namespace {
/// How many there are; the first `room` of them in `places`.
std::size_t copy_places(const void* root, stack** places, std::size_t room) noexcept {
  std::size_t n = 0;
  bucket& b = bucket_of(root);
  const std::lock_guard guard{b.lock};
  for (const strand_link* l = b.first; l != nullptr; l = l->next) {
    if (l->root != root) continue;
    if (n < room) places[n] = l->place;
    ++n;
  }
  return n;
}
}  // namespace

void visit_strands(const void* root, void (*visit)(void* argument, stack& s), void* argument) noexcept {
  std::array<stack*, copied_most> few;
  std::unique_ptr<stack*[]> many;
  stack** places = few.data();
  for (std::size_t room = few.size();;) {
    const std::size_t n = copy_places(root, places, room);
    if (n <= room) {
      for (std::size_t i = 0; i < n; ++i) visit(argument, *places[i]);
      return;
    }
    room = 2 * n;  // others may fork meanwhile
    many.reset(new (std::nothrow) stack*[room]);
    if (many == nullptr) return for_each_stack(visit, argument);
    places = many.get();
  }
}

}  // namespace ramie::detail
