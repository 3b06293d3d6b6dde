// The tools that watch memory and threads find real errors on a fresh stack, and report no false ones.
#include <ramie/context/sanitizer.hpp>

#include <ramie/context/testing.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::have_program;
using testing::run_program;
using testing::scaled;
using testing::side_stack;

#if RAMIE_ASAN

/// Reads a variable after its scope has ended.
RAMIE_NOINLINE int use_after_scope() {
  int* volatile kept;
  {
    int inner[16] = {1, 2, 3};
    kept = inner;
    asm volatile("" ::"r"(kept) : "memory");
  }
  return *kept;
}

RAMIE_NOINLINE int overflow_a_buffer(int index) {
  int buffer[8] = {};
  const int* inside = buffer;
  asm volatile(
      ""
      : "+r"(inside)::"memory");  // else UndefinedBehaviorSanitizer, which knows the array, is first to complain
  return inside[index];
}

class watched : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, testing::death_test_style()); }
};

TEST_F(watched, use_after_scope_is_found_on_a_fresh_stack) {
  EXPECT_DEATH(
      {
        side_stack side{[](side_stack&) { std::exit(use_after_scope()); }};
        side.resume();
      },
      "stack-use-after-scope");
}

TEST_F(watched, use_after_scope_is_found_after_switches) {
  EXPECT_DEATH(
      {
        side_stack side{[](side_stack& self) {
          for (int i = 0; i < 10; ++i) self.suspend();
          std::exit(use_after_scope());
        }};
        for (int i = 0; i < 11; ++i) side.resume();
      },
      "stack-use-after-scope");
}

TEST_F(watched, overflow_is_found_on_the_thread_after_switches) {
  EXPECT_DEATH(
      {
        side_stack side{[](side_stack& self) { self.suspend(); }};
        side.resume();
        side.resume();
        std::exit(overflow_a_buffer(9));
      },
      "stack-buffer-overflow");
}

#endif

RAMIE_NOINLINE void throw_with_frames(int depth) {
  volatile char block[300];
  std::memset(const_cast<char*>(block), depth, sizeof block);
  if (depth == 0) throw depth;
  throw_with_frames(depth - 1);
  asm volatile("" ::"r"(block) : "memory");
}

TEST(unwatched, exceptions_and_reuse_leave_nothing_behind) {
  // Frames left by an exception stay poisoned unless the sanitizer knows which stack it is on.
  for (int i = 0; i < scaled(1000); ++i) {
    int caught = 0;
    side_stack side{[&](side_stack& self) {
      for (int k = 0; k < 3; ++k) {
        try {
          throw_with_frames(20);
        } catch (int) {
          ++caught;
        }
        volatile char block[7000];
        std::memset(const_cast<char*>(block), 1, sizeof block);
        self.suspend();
      }
    }};
    while (!side.ended()) side.resume();
    ASSERT_EQ(caught, 3);
  }
}

TEST(unwatched, a_stack_that_migrates_is_no_race) {
  // Handing the stack over by a join orders everything; nothing else does. A fiber unknown to ThreadSanitizer would
  // race with itself.
  long sum = 0;
  side_stack side{[&](side_stack& self) {
    for (int i = 0;; ++i) {
      sum += i;
      if (self.suspend().word == 0) return;
    }
  }};
  const int rounds = scaled(1000);
  for (int i = 0; i < rounds; ++i) std::thread{[&] { side.resume({1, nullptr}); }}.join();
  side.resume();
  EXPECT_EQ(sum, static_cast<long>(rounds) * (rounds - 1) / 2);
}

TEST(valgrind, finds_nothing_wrong) {
  if (RAMIE_ASAN != 0 || RAMIE_TSAN != 0) GTEST_SKIP() << "a sanitizer is at it already";
  if (!have_program("valgrind")) GTEST_SKIP() << "no valgrind here";
  if (testing::emulated()) GTEST_SKIP() << "valgrind would see the emulator";
  const std::string own = testing::own_path();
  const auto result =
      run_program("valgrind --error-exitcode=99 --leak-check=no -q " + own + " --gtest_filter='valgrind_target.*'");
  // An instruction set newer than valgrind is not our error.
  if (result.output.find("unhandled instruction") != std::string::npos)
    GTEST_SKIP() << "valgrind does not know this CPU";
  EXPECT_EQ(result.status, 0) << result.output;
  // Without registered stacks, it asks whether the stack pointer was switched.
  EXPECT_EQ(result.output.find("client switching stacks"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("[  PASSED  ]"), std::string::npos) << result.output;
}

TEST(valgrind_target, runs_many_stacks) {
  std::vector<std::unique_ptr<side_stack>> all;
  int sum = 0;
  for (int i = 0; i < 50; ++i)
    all.push_back(std::make_unique<side_stack>([&sum, i](side_stack& self) {
      std::vector<int> numbers(100, i);
      for (int k = 0; k < 5; ++k) {
        sum += numbers[static_cast<std::size_t>(k)];
        self.suspend();
        try {
          throw_with_frames(5);
        } catch (int) {
          sum += 1;
        }
      }
    }));
  for (int k = 0; k < 6; ++k)
    for (const auto& s : all)
      if (!s->ended()) s->resume();
  EXPECT_EQ(sum, 5 * (49 * 50 / 2) + 5 * 50);
}

}  // namespace
}  // namespace ramie::detail
