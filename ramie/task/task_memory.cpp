#include <ramie/task/task_memory.hpp>

#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/current.hpp>

#include <mutex>
#include <new>

namespace ramie::detail {

namespace {

/// Magazines of one size, with any number of blocks.
struct depot {
  alignas(64) spin_lock lock;
  task_cache::block* first = nullptr;

  void push(task_cache::block* magazine, std::size_t count) noexcept {
    magazine->count = count;
    std::lock_guard guard{lock};
    magazine->next_magazine = first;
    first = magazine;
  }
  task_cache::block* pop() noexcept {
    std::lock_guard guard{lock};
    task_cache::block* magazine = first;
    if (magazine != nullptr) first = magazine->next_magazine;
    return magazine;
  }
};

constinit std::array<depot, task_cache::block_sizes.size()> depots;  // outlives every thread

}  // namespace

void* task_cache::take_slowly(std::size_t list) noexcept {
  pair& p = lists_[list];
  if (p.reserve.count() != 0) {
    std::swap(p.used, p.reserve);
  } else {
    block* stored = depots[list].pop();
    if (stored == nullptr) return nullptr;
    p.used = {stored, magazine_size - stored->count};
  }
  block* b = p.used.first;
  p.used.first = b->next;
  ++p.used.room;
  return b;
}

void task_cache::put_by(std::size_t list) noexcept {
  pair& p = lists_[list];
  if (p.reserve.count() != 0) depots[list].push(p.reserve.first, p.reserve.count());
  p.reserve = std::exchange(p.used, {});
}

void task_cache::flush() noexcept {
  for (std::size_t list = 0; list < lists_.size(); ++list) {
    pair& p = lists_[list];
    if (p.used.count() != 0) depots[list].push(p.used.first, p.used.count());
    if (p.reserve.count() != 0) depots[list].push(p.reserve.first, p.reserve.count());
    p = {};
  }
}

void trim_task_memory() noexcept {
  for (depot& d : depots) {
    while (task_cache::block* b = d.pop()) {
      while (b != nullptr) ::operator delete(static_cast<void*>(std::exchange(b, b->next)));
    }
  }
}

void* allocate_task(std::uint8_t list) {
  if (worker_base* w = current_worker(); w != nullptr) [[likely]] {
    if (void* memory = w->blocks_here->take(list); memory != nullptr) [[likely]]
      return memory;
  }
  return ::operator new(task_cache::block_sizes[list]);
}

void free_task_memory(void* memory, std::uint8_t list) noexcept {
  worker_base* w = current_worker();
  if (w == nullptr) [[unlikely]]
    ::operator delete(memory);
  else w->blocks_here->give(list, memory);
}

}  // namespace ramie::detail
