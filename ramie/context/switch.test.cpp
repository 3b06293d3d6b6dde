// The switch itself: control passes over and comes back, with what was sent; any number of stacks; any thread.
#include <ramie/context/context.hpp>

#include <ramie/context/testing.hpp>

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::scaled;
using testing::side_stack;

void* as_pointer(std::uintptr_t n) { return reinterpret_cast<void*>(n); }  // NOLINT(performance-no-int-to-ptr)

TEST(context_switch, goes_over_and_comes_back) {
  std::vector<int> steps;
  side_stack side{[&](side_stack& self) {
    steps.push_back(2);
    self.suspend();
    steps.push_back(4);
  }};
  steps.push_back(1);
  side.resume();
  EXPECT_FALSE(side.ended());
  steps.push_back(3);
  side.resume();
  EXPECT_TRUE(side.ended());
  EXPECT_EQ(steps, (std::vector{1, 2, 3, 4}));
}

TEST(context_switch, carries_both_words_each_way) {
  // All bits of both, so that a half register or a mixed-up pair shows.
  constexpr std::uintptr_t step = 0x9e37'79b9'7f4a'7c15u;
  const int rounds = scaled(100'000);
  int wrong_inside = 0;
  side_stack side{[&](side_stack& self) {
    if (self.first_sent().worker != as_pointer(~std::uintptr_t{0})) ++wrong_inside;
    transfer got = self.suspend({0, nullptr});
    for (int i = 0; i < rounds; ++i) {
      const auto n = static_cast<std::uintptr_t>(i) * step;
      if (got.word != n || got.worker != as_pointer(~n)) ++wrong_inside;
      got = self.suspend({n + 1, as_pointer(~n - 1)});
    }
  }};
  side.resume({0, as_pointer(~std::uintptr_t{0})});
  int wrong_outside = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto n = static_cast<std::uintptr_t>(i) * step;
    const transfer got = side.resume({n, as_pointer(~n)});
    if (got.word != n + 1 || got.worker != as_pointer(~n - 1)) ++wrong_outside;
  }
  side.resume();
  EXPECT_TRUE(side.ended());
  EXPECT_EQ(wrong_inside, 0);
  EXPECT_EQ(wrong_outside, 0);
}

TEST(context_switch, gives_entry_its_words) {
  // Directly from fresh_context, with none of our code between.
  static context home;
  static transfer arrived;
  static void* home_fiber;
  struct entry {
    static void run(std::uintptr_t word, void* worker) noexcept {
      sanitizer_switch::arrived();
      arrived = {word, worker};
      context here;
      sanitizer_switch around;
      const auto [low, size] = testing::thread_stack();
      around.before(low, size, home_fiber, true);
      static_cast<void>(switch_context(here, home, {word + 1, static_cast<char*>(worker) + 1}));
    }
  };
  home_fiber = sanitizer_thread_fiber();
  static_cast<void>(testing::thread_stack());
  alignas(64) static char memory[64 * 1024];
  char* const top = memory + sizeof memory;
  sanitizer_start(top);
  const context start = fresh_context(top - sanitizer_reserve, &entry::run);
  EXPECT_EQ(start.sp, top - sanitizer_reserve);
  sanitizer_switch around;
  void* fiber = nullptr;
#if RAMIE_TSAN
  fiber = tsan_fiber_of(top);
#endif
  around.before(memory, sizeof memory, fiber, false);
  const transfer back = switch_context(home, start, {0x0123'4567'89ab'cdefu, as_pointer(0xfedc'ba98'7654'3210u)});
  around.after();
  sanitizer_finish(top);
  EXPECT_EQ(arrived.word, 0x0123'4567'89ab'cdefu);
  EXPECT_EQ(arrived.worker, as_pointer(0xfedc'ba98'7654'3210u));
  EXPECT_EQ(back.word, 0x0123'4567'89ab'cdf0u);
  EXPECT_EQ(back.worker, as_pointer(0xfedc'ba98'7654'3211u));
}

/// The address of a variable with the strictest alignment that the ABI guarantees by default.
RAMIE_NOINLINE bool frame_is_aligned() {
  struct alignas(16) block {
    char bytes[16];
  } volatile b{};
  b.bytes[0] = 1;
  return reinterpret_cast<std::uintptr_t>(&b) % 16 == 0;
}

TEST(context_switch, enters_with_an_aligned_stack) {
  // The compiler trusts the ABI: what it assumes about alignment is true only if the entry was right.
  std::uintptr_t frame = 0;
  bool aligned = false;
  side_stack side{[&](side_stack&) {
    frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    aligned = frame_is_aligned();
#if defined(__x86_64__)
    char text[128];  // an aligned SSE store faults on a stack that is off by eight
    std::snprintf(text, sizeof text, "%.3f %.3f", 1.5, 2.25);
    aligned = aligned && std::strcmp(text, "1.500 2.250") == 0;
#endif
  }};
  side.resume();
  EXPECT_TRUE(aligned);
  EXPECT_EQ(frame % 16, 0u);
  EXPECT_GT(frame, reinterpret_cast<std::uintptr_t>(side.low()));
  EXPECT_LT(frame, reinterpret_cast<std::uintptr_t>(side.top()));
}

TEST(context_switch, keeps_thousands_of_stacks_apart) {
  const int stacks = RAMIE_TSAN != 0 ? 1000 : 5000;  // ThreadSanitizer has room for 8,128 threads and fibers
  constexpr int rounds = 5;
  int wrong = 0;
  std::vector<std::unique_ptr<side_stack>> all;
  for (int i = 0; i < stacks; ++i) {
    all.push_back(std::make_unique<side_stack>(
        [i, &wrong](side_stack& self) {
          volatile int mine[64];
          for (int& m : const_cast<int(&)[64]>(mine)) m = i;
          for (int round = 0; round < rounds; ++round) {
            const transfer got = self.suspend({static_cast<std::uintptr_t>(i), nullptr});
            if (got.word != static_cast<std::uintptr_t>(i) + static_cast<std::uintptr_t>(round)) ++wrong;
            for (const volatile int& m : mine) wrong += m != i ? 1 : 0;
          }
        },
        std::size_t{32} * 1024));
    all.back()->resume();
  }
  for (int round = 0; round < rounds; ++round)
    // A different order each time: nothing may depend on the stacks taking turns.
    for (int k = 0; k < stacks; ++k) {
      const int i = static_cast<int>((static_cast<long>(k) * 2003 + round) % stacks);
      all[static_cast<std::size_t>(i)]->resume(
          {static_cast<std::uintptr_t>(i) + static_cast<std::uintptr_t>(round), nullptr});
    }
  for (const auto& s : all) wrong += s->ended() ? 0 : 1;
  EXPECT_EQ(wrong, 0);
}

TEST(context_switch, nests) {
  std::vector<int> order;
  constexpr int depth = 30;
  // Each level resumes the next from its own stack. Only the outermost returns to the thread's stack, so under
  // AddressSanitizer the bounds that side_stack announces would be wrong for the others.
  if (RAMIE_ASAN != 0) GTEST_SKIP() << "side stacks tell AddressSanitizer that they were resumed from a thread's stack";
  std::function<void(int)> level = [&](int n) {
    if (n == depth) return;
    side_stack inner{[&, n](side_stack& self) {
      order.push_back(n);
      level(n + 1);
      self.suspend();
      order.push_back(-n);
    }};
    inner.resume();
    inner.resume();
  };
  level(0);
  ASSERT_EQ(order.size(), 2u * depth);
  for (int i = 0; i < depth; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(order[static_cast<std::size_t>(2 * depth - 1 - i)], -i);
  }
}

TEST(context_switch, goes_on_on_another_thread) {
  const int rounds = scaled(500);
  std::vector<std::thread::id> seen;
  side_stack side{[&](side_stack& self) {
    for (int i = 0; i < rounds; ++i) {
      seen.push_back(std::this_thread::get_id());
      self.suspend();
    }
  }};
  std::vector<std::thread::id> resumers;
  for (int i = 0; i < rounds; ++i) {
    std::thread t{[&] {
      resumers.push_back(std::this_thread::get_id());
      side.resume();
    }};
    t.join();
  }
  EXPECT_EQ(seen, resumers);
  side.resume();
  EXPECT_TRUE(side.ended());
}

TEST(context_switch, leaves_signal_mask_and_rounding_to_the_thread) {
  sigset_t before, blocked, inside, after;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  const int rounding = std::fegetround();
  int rounding_inside = -1;
  side_stack side{[&](side_stack& self) {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &inside);
    rounding_inside = std::fegetround();
    std::fesetround(FE_DOWNWARD);
    self.suspend();
  }};
  std::fesetround(FE_UPWARD);
  side.resume();
  EXPECT_EQ(rounding_inside, FE_UPWARD);
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  side.resume();
  std::fesetround(rounding);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, &after), 0);
  EXPECT_EQ(::sigismember(&inside, SIGUSR2), 1);
  EXPECT_EQ(::sigismember(&after, SIGUSR2), 1);
}

std::atomic<const char*> handler_frame{nullptr};

TEST(context_switch, takes_signals_on_a_fresh_stack) {
  // Without SA_ONSTACK the handler runs on top of the stack that was interrupted, red zone and all.
  struct sigaction action{};
  struct sigaction old{};
  action.sa_handler = [](int) { handler_frame.store(static_cast<const char*>(__builtin_frame_address(0))); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &old), 0);
  long sum = 0;
  const int rounds = scaled(1000);
  side_stack side{[&](side_stack& self) {
    for (int i = 0; i < rounds; ++i) {
      ::raise(SIGUSR1);
      sum += i;
      self.suspend();
    }
  }};
  for (int i = 0; i < rounds; ++i) side.resume();
  EXPECT_EQ(sum, static_cast<long>(rounds) * (rounds - 1) / 2);
  if (RAMIE_TSAN == 0) {  // ThreadSanitizer calls handlers later, from wherever the thread is then
    EXPECT_GE(handler_frame.load(), side.low());
    EXPECT_LT(handler_frame.load(), side.top());
  }
  side.resume();
  ASSERT_EQ(::sigaction(SIGUSR1, &old, nullptr), 0);
}

}  // namespace
}  // namespace ramie::detail
