#include <ramie/context/frames.hpp>

#include <ramie/base/config.hpp>
#include <ramie/context/testing.hpp>
#include <ramie/inspect/symbols.hpp>

#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <array>
#include <cstring>
#include <string>

namespace ramie::detail {
namespace {

struct trace {
  std::array<std::uintptr_t, 64> pcs{};
  std::size_t count = 0;
};
trace taken;

stack_range own_stack() {
  const auto [low, size] = testing::thread_stack();
  return {static_cast<char*>(low), static_cast<char*>(low) + size};
}

/// A frame that saves much and has a variable size.
extern "C" RAMIE_NOINLINE int ramie_test_innermost(int n) {
  volatile char room[64];
  room[static_cast<std::size_t>(n % 64)] = 1;
  ucontext_t here{};
  ::getcontext(&here);
  taken.count = unwind(registers_of_interrupted(&here), own_stack(), taken.pcs.data(), taken.pcs.size());
  return room[0] + n;
}
extern "C" RAMIE_NOINLINE int ramie_test_recursive(int n) {
  int below = n == 0 ? ramie_test_innermost(n) : ramie_test_recursive(n - 1);
  asm volatile("" : "+r"(below));  // prevents a tail call
  return below + n * 3;
}
extern "C" RAMIE_NOINLINE int ramie_test_outermost(int n) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(n) * 100 + 1));
  room[0] = 1;
  return ramie_test_recursive(n) + room[0];
}

TEST(frames, are_those_of_the_calls) {
  ramie_test_outermost(5);
  symbol_finder symbols;
  std::string calls;
  for (std::size_t i = 0; i < taken.count; ++i) {
    const code_place place = symbols.find(taken.pcs[i]);
    if (place.function != nullptr && std::strncmp(place.function, "ramie_test_", 11) == 0) {
      const std::string name{place.function + 11};
      calls += name.substr(0, name.find('.')) + " ";  // copies that the compiler made have names like f.part.0
    }
  }
  EXPECT_EQ(calls, "innermost recursive recursive recursive recursive recursive recursive outermost ");
  ASSERT_GT(taken.count, 10u);  // up to main and beyond
  EXPECT_LT(taken.count, taken.pcs.size());
}

TEST(frames, stop_at_the_bound) {
  ramie_test_outermost(60);
  EXPECT_EQ(taken.count, taken.pcs.size());
}

TEST(frames, are_found_through_a_signal) {
  static stack_range range;
  range = own_stack();  // not in the handler: it reads a file
  struct sigaction action{}, before{};
  action.sa_sigaction = [](int, siginfo_t*, void* machine_context) {
    taken.count = unwind(registers_of_interrupted(machine_context), range, taken.pcs.data(), taken.pcs.size());
  };
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGUSR1, &action, &before);
  ::raise(SIGUSR1);
  ::sigaction(SIGUSR1, &before, nullptr);
  symbol_finder symbols;
  bool this_test = false;
  for (std::size_t i = 0; i < taken.count; ++i) {
    const code_place place = symbols.find(taken.pcs[i]);
    this_test |= place.function != nullptr &&
                 std::string{place.function}.find("are_found_through_a_signal") != std::string::npos;
  }
  EXPECT_TRUE(this_test);
}

TEST(frames, of_nonsense_are_few_and_harmless) {
  alignas(16) static std::array<char, 4096> memory;
  std::memset(memory.data(), 0x41, memory.size());
  frame_registers from;
  from.pc = 0x4141414141414141;
  from.value[frame_registers::stack_pointer] = reinterpret_cast<std::uintptr_t>(memory.data());
  from.value[frame_registers::frame_pointer] = 0x4141414141414141;
  EXPECT_LE(unwind(from, {memory.data(), memory.data() + memory.size()}, taken.pcs.data(), 64), 2u);
  from.pc = reinterpret_cast<std::uintptr_t>(&std::memcpy);
  EXPECT_LE(unwind(from, {memory.data(), memory.data() + memory.size()}, taken.pcs.data(), 64), 3u);
}

TEST(symbols, of_what_is_no_code) {
  symbol_finder symbols;
  EXPECT_EQ(symbols.find(8).path, nullptr);
  int local = 0;
  EXPECT_EQ(symbols.find(reinterpret_cast<std::uintptr_t>(&local)).function, nullptr);
}

}  // namespace
}  // namespace ramie::detail
