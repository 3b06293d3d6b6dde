#include <ramie/sched/task_memory.hpp>

#include <ramie/sched/task.hpp>
#include <ramie/sched/worker.hpp>

#include <new>

namespace ramie::detail {

void task_cache::spill(free_list& l, std::size_t keep) noexcept {
  while (l.count > keep) {
    block* b = l.first;
    l.first = b->next;
    --l.count;
    ::operator delete(b);
  }
}

void task_cache::flush() noexcept {
  for (free_list& l : lists_) spill(l, 0);
}

void* allocate_task(std::uint8_t list) {
  if (worker* w = current_worker(); w != nullptr) [[likely]]
    if (void* memory = w->blocks.take(list); memory != nullptr) [[likely]]
      return memory;
  return ::operator new(task_cache::block_sizes[list]);
}

void free_task_memory(void* memory, std::uint8_t list) noexcept {
  worker* w = current_worker();
  if (w == nullptr) [[unlikely]]
    ::operator delete(memory);
  else w->blocks.give(list, memory);
}

}  // namespace ramie::detail
