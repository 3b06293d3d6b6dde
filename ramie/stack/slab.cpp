#include <ramie/stack/slab.hpp>

#include <ramie/stack/pool.hpp>
#include <ramie/stack/system.hpp>

#include <sys/mman.h>

#include <cerrno>
#include <functional>
#include <new>

namespace ramie::detail {

namespace {

constinit std::atomic<slab*> all_slabs{nullptr};

char* round_down(char* address, std::size_t unit) noexcept {
  return address - reinterpret_cast<std::uintptr_t>(address) % unit;
}

std::size_t round_up(std::size_t size, std::size_t unit) noexcept { return (size + unit - 1) / unit * unit; }

/// Null and errno if the system refuses.
void* map_small_pages(std::size_t size) noexcept {
  void* memory = calls().map(size);
  // Fails only where the kernel has no huge pages at all.
  if (memory != nullptr) static_cast<void>(calls().advise(memory, size, MADV_NOHUGEPAGE));
  return memory;
}

/// `size` is a multiple of `alignment`, a power of two; `slack` is what must be mapped in addition to find an aligned
/// place. Null and errno if the system refuses.
char* map_aligned(std::size_t size, std::size_t alignment, std::size_t slack) noexcept {
  auto* low = static_cast<char*>(map_small_pages(size + slack));
  if (low == nullptr) return nullptr;
  // As high as possible: mappings come top down, so the next slab will end where this one begins, and both are one
  // mapping.
  char* const high = low + size + slack;
  char* const base = round_down(high - size, alignment);
  // If the system refuses these, some address space stays reserved, but no memory.
  if (base != low) calls().unmap(low, static_cast<std::size_t>(base - low));
  if (base + size != high) calls().unmap(base + size, static_cast<std::size_t>(high - (base + size)));
  return base;
}

}  // namespace

slab* map_slab(stack_class& owner, std::size_t slot_size, std::uint32_t slots, std::uint32_t first_index,
               refusal& why) noexcept {
  const std::size_t size = slots * slot_size;
  const std::size_t descriptors_size = round_up(sizeof(slab) + slots * sizeof(stack), page_size());
  void* descriptors = map_small_pages(descriptors_size);
  if (descriptors == nullptr) {
    why = {refusal::call::map_descriptors, errno, descriptors_size};
    return nullptr;
  }
  const std::size_t slack = slot_size - page_size();
  char* base = map_aligned(size, slot_size, slack);
  if (base == nullptr) {
    why = {refusal::call::map_stacks, errno, descriptors_size + size + slack};
    calls().unmap(descriptors, descriptors_size);
    return nullptr;
  }
  return new (descriptors) slab{base, slot_size, &owner, nullptr, slots, first_index, 0};
}

void publish(slab& s) noexcept {
  s.next = all_slabs.load(std::memory_order_relaxed);
  // Release: S2. Slabs are never taken out, so an equal head is the same head.
  while (!all_slabs.compare_exchange_weak(s.next, &s, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

const void* slab_list() noexcept { return &all_slabs; }

stack* hand_out(slab& s) noexcept {
  const std::uint32_t slot = s.handed_out.load(std::memory_order_relaxed);  // written only under the lock
  const std::uint32_t index = s.first_index + slot;
  auto* made = new (s.descriptor(slot)) stack{};  // zero, wait_word included
  made->owner = s.owner;
  made->top = s.base + (std::size_t{slot} + 1) * s.slot_size - index % colours * colour_step;
  s.handed_out.store(slot + 1, std::memory_order_release);  // S3
  return made;
}

stack* find_stack(const void* address) noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (slab* s = all_slabs.load(std::memory_order_acquire); s != nullptr; s = s->next) {
    // Below the slab this wraps around, and is too large as well.
    const std::uintptr_t slot = (wanted - reinterpret_cast<std::uintptr_t>(s->base)) / s->slot_size;
    if (slot < s->slots) return slot < s->handed_out.load(std::memory_order_acquire) ? s->descriptor(slot) : nullptr;
  }
  return nullptr;
}

bool is_made(const stack* s) noexcept {
  for (slab* of = all_slabs.load(std::memory_order_acquire); of != nullptr; of = of->next)
    if (std::less_equal<const stack*>{}(of->descriptor(0), s) &&
        std::less<const stack*>{}(s, of->descriptor(of->slots)))
      return std::less<const stack*>{}(s, of->descriptor(of->handed_out.load(std::memory_order_acquire)));
  return false;
}

void for_each_stack(void (*visit)(void* argument, stack& s), void* argument) {
  for (slab* s = all_slabs.load(std::memory_order_acquire); s != nullptr; s = s->next) {
    const std::uint32_t made = s->handed_out.load(std::memory_order_acquire);
    for (std::uint32_t slot = 0; slot < made; ++slot) visit(argument, *s->descriptor(slot));
  }
}

}  // namespace ramie::detail
