// What plain threads wait by is not from malloc, whose addresses may carry tags where a reference has its epoch.
// A program of its own: it watches operator new.
#include <ramie/base/config.hpp>
#include <ramie/task/wait.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace {
std::atomic<int> aligned_blocks{0};
}  // namespace

#if RAMIE_ASAN == 0 && RAMIE_TSAN == 0

void* operator new(std::size_t size, std::align_val_t alignment) {
  aligned_blocks.fetch_add(1, std::memory_order_relaxed);
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit); memory != nullptr) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif

namespace ramie::detail {
namespace {

TEST(thread_descriptors, are_not_from_malloc) {
  constexpr int threads_most = 100;  // several chunks
  const int before = aligned_blocks;
  std::vector<waiter_ref> waits(threads_most);
  std::atomic<int> begun{0}, woken{0};
  std::vector<std::thread> threads;
  for (waiter_ref& mine : waits)
    threads.emplace_back([&] {
      wait pause{wait::kind::uninterruptible};
      mine = pause.ref();
      ++begun;
      pause.suspend();
      ++woken;
    });
  while (begun != threads_most) std::this_thread::yield();
  EXPECT_EQ(aligned_blocks, before);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(waits[i].who()) % alignof(stack), 0u);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(waits[i].who(), waits[j].who());
    EXPECT_TRUE(wake(waits[i]));
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(woken, threads_most);
}

}  // namespace
}  // namespace ramie::detail
