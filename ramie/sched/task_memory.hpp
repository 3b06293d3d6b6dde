// A worker's cache of task blocks, in front of the process's allocator.
//
// glibc serves 104 bytes from a chunk of 112, so a small task that waits in a spawn deque (8 bytes a slot, 16 right
// after growth) costs 128 bytes at most. Blocks are freed where the task ended, which may be another worker: a cache
// that overflows returns half of it to malloc, which moves memory between threads well enough for what is left.
#pragma once

#include <ramie/base/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

class task_cache {
 public:
  static constexpr std::array<std::size_t, 3> block_sizes{104, 232, 488};
  static constexpr std::uint8_t no_list = 3;

  task_cache() = default;
  task_cache(const task_cache&) = delete;
  task_cache& operator=(const task_cache&) = delete;
  ~task_cache() { flush(); }

  /// Which list serves `bytes`; no_list if none does.
  static constexpr std::uint8_t list_of(std::size_t bytes) noexcept {
    return bytes <= block_sizes[0] ? 0 : bytes <= block_sizes[1] ? 1 : bytes <= block_sizes[2] ? 2 : no_list;
  }
  /// Null if the list is empty.
  RAMIE_ALWAYS_INLINE void* take(std::size_t list) noexcept {
    free_list& l = lists_[list];
    block* b = l.first;
    if (b == nullptr) return nullptr;
    l.first = b->next;
    --l.count;
    return b;
  }
  RAMIE_ALWAYS_INLINE void give(std::size_t list, void* memory) noexcept {
    free_list& l = lists_[list];
    auto* b = static_cast<block*>(memory);
    b->next = l.first;
    l.first = b;
    if (++l.count > kept_most) [[unlikely]]
      spill(l, kept_most / 2);
  }
  void flush() noexcept;

 private:
  static constexpr std::size_t kept_most = 1024;  // blocks a list; at most 870 KB a worker in all
  struct block {
    block* next;
  };
  struct free_list {
    block* first = nullptr;
    std::size_t count = 0;
  };
  RAMIE_COLD static void spill(free_list& l, std::size_t keep) noexcept;

  std::array<free_list, block_sizes.size()> lists_;
};

}  // namespace ramie::detail
