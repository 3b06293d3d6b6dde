// A worker's caches of task blocks, a depot that all workers share, and behind it the process's allocator.
//
// The caches are magazines (J. Bonwick, J. Adams, "Magazines and Vmem", USENIX 2001): a worker holds two stacks of
// blocks a size, one in use and one full or empty in reserve, and trades whole ones with the depot. So blocks that are
// freed where the task ended, maybe on another worker, come back at the cost of a lock every `magazine_size` blocks.
// The depot keeps its blocks until its runtimes have been idle for a while: returning a burst of a million tasks to
// malloc, and touching that memory again for the next burst, cost 60 ns a task.
//
// glibc serves 104 bytes from a chunk of 112, so a small task that waits in a spawn deque (8 bytes a slot, 16 right
// after growth) costs 128 bytes at most.
#pragma once

#include <ramie/base/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ramie::detail {

class task_cache {
 public:
  static constexpr std::array<std::size_t, 3> block_sizes{104, 248, 488};
  static constexpr std::uint8_t no_list = 3;
  static constexpr std::size_t magazine_size = 256;  // picked so that a full one costs no more than a small working set

  task_cache() = default;
  task_cache(const task_cache&) = delete;
  task_cache& operator=(const task_cache&) = delete;
  ~task_cache() { flush(); }

  /// Which list serves `bytes`; no_list if none does.
  static constexpr std::uint8_t list_of(std::size_t bytes) noexcept {
    return bytes <= block_sizes[0] ? 0 : bytes <= block_sizes[1] ? 1 : bytes <= block_sizes[2] ? 2 : no_list;
  }
  /// Null if neither the cache nor the depot has one.
  RAMIE_ALWAYS_INLINE void* take(std::size_t list) noexcept {
    magazine& m = lists_[list].used;
    block* b = m.first;
    if (b == nullptr) [[unlikely]]
      return take_slowly(list);
    m.first = b->next;
    ++m.room;
    return b;
  }
  /// The same if it takes only a few instructions; null: call take.
  RAMIE_ALWAYS_INLINE void* try_take(std::size_t list) noexcept {
    magazine& m = lists_[list].used;
    block* b = m.first;
    if (b != nullptr) [[likely]] {
      m.first = b->next;
      ++m.room;
    }
    return b;
  }
  RAMIE_ALWAYS_INLINE void give(std::size_t list, void* memory) noexcept {
    magazine& m = lists_[list].used;
    auto* b = static_cast<block*>(memory);
    b->next = m.first;
    m.first = b;
    if (--m.room == 0) [[unlikely]]
      put_by(list);
  }
  /// Returns all to the depot.
  void flush() noexcept;

  struct block {
    block* next;
    block* next_magazine;  // this and
    std::size_t count;     // this: in the depot, of a magazine's first block
  };

 private:
  struct magazine {
    block* first = nullptr;
    std::size_t room = magazine_size;  // left: counting down to zero needs no comparison
    [[nodiscard]] std::size_t count() const noexcept { return magazine_size - room; }
  };
  struct pair {
    magazine used;
    magazine reserve;
  };
  RAMIE_COLD void* take_slowly(std::size_t list) noexcept;
  RAMIE_COLD void put_by(std::size_t list) noexcept;

  std::array<pair, block_sizes.size()> lists_;
};

/// Memory for a task, 16-byte aligned, from the calling worker's cache; `list` as task_cache::list_of says. Throws
/// std::bad_alloc.
void* allocate_task(std::uint8_t list);
void free_task_memory(void* memory, std::uint8_t list) noexcept;

/// Returns the depot's blocks to the process's allocator. Any thread.
void trim_task_memory() noexcept;

}  // namespace ramie::detail
