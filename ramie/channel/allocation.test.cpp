// Sending, receiving and selecting take no memory.
// A program of its own: it counts all allocations.
#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> asked_for{0};
}  // namespace

#if RAMIE_ASAN == 0 && RAMIE_TSAN == 0

void* operator new(std::size_t size) {
  asked_for.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size); memory != nullptr) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
// Inlined, gcc 12 takes it for a mistake.
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  asked_for.fetch_add(1, std::memory_order_relaxed);
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit); memory != nullptr) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif

namespace ramie {
namespace {

using namespace channel_tests;

constexpr auto ignore_value = [](auto&&) {};

/// All operations between two parties, waiting in each way; ends when both have done it `rounds` times.
void converse(channel<int>& a, channel<int>& b, channel<int>& never, int rounds, bool first) {
  for (int i = 0; i < rounds; ++i) {
    if (first) {
      static_cast<void>(a.send(i));
      select(on_recv(b, ignore_value), on_recv(never, ignore_value));
      select(on_send(a, i, ignore_value), on_send(never, i, ignore_value), on_recv(b, ignore_value));
      static_cast<void>(a.send_for(i, 1h));
      b.recv();
      select(on_recv(b, ignore_value), on_timeout(1h, [] {}));
    } else {
      select(on_recv(a, ignore_value), on_recv(never, ignore_value));
      static_cast<void>(b.send(i));
      a.recv_for(1h);
      select(on_recv(a, ignore_value), on_send(never, i, ignore_value), on_timeout(1h, [] {}));
      select(on_send(b, i, ignore_value), on_recv(never, ignore_value));
      b.try_send(i) == channel_status::ok ? void() : void(b.send(i));
    }
    select(on_recv(never, ignore_value), otherwise([] {}));
    select(on_recv(never, ignore_value), on_send(never, i, ignore_value), on_timeout(0s, [] {}));
    never.recv_for(1us);
  }
}

TEST(allocation, there_is_none_in_channels_and_selects) {
#if RAMIE_ASAN != 0 || RAMIE_TSAN != 0
  GTEST_SKIP() << "the sanitizer's own operator new is in use";
#endif
  // What this thread needs for the first time that it waits, which may be at any moment after the fiber's beginning.
  EXPECT_EQ(channel<int>{}.recv_for(1us), std::nullopt);
  // No spare workers, whose threads would take memory of their own.
  // Without notices: to look for circles, once a second, the monitor takes memory.
  run(runtime_options{.workers = 1, .spare_workers = 0, .notices = false}, [] {
    for (const std::size_t capacity : {0u, 1u}) {
      channel<int> a{capacity};
      channel<int> b{capacity};
      channel<int> never;
      channel<int> start;
      auto other = spawn([&] {
        converse(a, b, never, 10, false);  // timers and stacks that will be needed again
        start.recv();
        converse(a, b, never, 300, false);
        start.recv();
      });
      converse(a, b, never, 10, true);
      static_cast<void>(start.send(1));
      const long before = asked_for.load();
      converse(a, b, never, 300, true);
      EXPECT_EQ(asked_for.load(), before);
      static_cast<void>(start.send(2));
      other.join();
    }
  });
}

TEST(allocation, a_channel_asks_once_for_its_buffer) {
#if RAMIE_ASAN != 0 || RAMIE_TSAN != 0
  GTEST_SKIP() << "the sanitizer's own operator new is in use";
#endif
  const long before = asked_for.load();
  {
    channel<int> none;
    EXPECT_EQ(asked_for.load(), before);
    channel<int> some{100};
    EXPECT_EQ(asked_for.load(), before + 1);
    for (int i = 0; i < 100; ++i) static_cast<void>(some.send(i));
    for (int i = 0; i < 100; ++i) some.recv();
  }
  EXPECT_EQ(asked_for.load(), before + 1);
}

}  // namespace
}  // namespace ramie
