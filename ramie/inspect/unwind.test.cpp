// Every walker of a fresh stack (the C++ runtime, a profiler, a debugger) finds its way and stops at the base.
#include <ramie/context/context.hpp>

#include <ramie/context/testing.hpp>

#include <gtest/gtest.h>
#include <unwind.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie::detail {
namespace {

using testing::have_program;
using testing::run_program;
using testing::scaled;
using testing::side_stack;

RAMIE_NOINLINE int throw_from_depth(int depth) {
  if (depth == 0) throw std::runtime_error{"from below"};
  volatile char padding[200];
  padding[0] = static_cast<char>(depth);
  const int below = throw_from_depth(depth - 1);
  return below + padding[0];
}

TEST(unwinding, exceptions_are_caught_on_a_fresh_stack) {
  int caught = 0;
  side_stack side{[&](side_stack& self) {
    for (int i = 0; i < scaled(200); ++i) {
      try {
        throw_from_depth(50);
      } catch (const std::runtime_error& e) {
        if (std::strcmp(e.what(), "from below") == 0) ++caught;
      }
      self.suspend();
    }
  }};
  while (!side.ended()) side.resume();
  EXPECT_EQ(caught, scaled(200));
}

TEST(unwinding, exceptions_pass_frames_that_have_switched) {
  // The frame that switches has a correct description on both sides of the switch.
  struct counts_ends {
    int& ends;
    ~counts_ends() { ++ends; }
  };
  int ends = 0;
  int caught = 0;
  side_stack side{[&](side_stack& self) {
    try {
      const counts_ends outer{ends};
      [&] {
        const counts_ends inner{ends};
        self.suspend();
        throw 42;
      }();
    } catch (int n) {
      caught = n;
    }
  }};
  side.resume();
  EXPECT_EQ(ends, 0);
  try {
    // Here too, around the switch.
    side.resume();
    throw std::logic_error{"after the switch"};
  } catch (const std::logic_error&) {
    ++ends;
  }
  EXPECT_EQ(ends, 3);
  EXPECT_EQ(caught, 42);
}

TEST(unwinding, several_stacks_unwind_in_turn) {
  // Exceptions in flight belong to the thread, and higher floors put them aside; here each is caught before the next
  // switch.
  constexpr int stacks = 20;
  int caught = 0;
  std::vector<std::unique_ptr<side_stack>> all;
  for (int i = 0; i < stacks; ++i)
    all.push_back(std::make_unique<side_stack>([&caught, i](side_stack& self) {
      for (int round = 0; round < 10; ++round) {
        try {
          throw_from_depth(i);
        } catch (const std::exception&) {
          ++caught;
        }
        self.suspend();
      }
    }));
  for (int round = 0; round < 10; ++round)
    for (const auto& s : all) s->resume();
  EXPECT_EQ(caught, stacks * 10);
  for (const auto& s : all) s->resume();
}

struct trace {
  std::vector<std::uintptr_t> places;
  static constexpr std::size_t most = 200;

  static _Unwind_Reason_Code add(_Unwind_Context* at, void* self) {
    auto& places = static_cast<trace*>(self)->places;
    places.push_back(_Unwind_GetIP(at));
    return places.size() >= most ? _URC_NORMAL_STOP : _URC_NO_REASON;
  }
};

/// The base is a few instructions long.
bool in_start(std::uintptr_t place) {
  const auto start = reinterpret_cast<std::uintptr_t>(&ramie_context_start);
  return place >= start && place < start + 64;
}

TEST(unwinding, a_backtrace_ends_at_the_base) {
  trace first;
  trace later;
  int result = -1;
  side_stack side{[&](side_stack& self) {
    result = _Unwind_Backtrace(&trace::add, &first);
    self.suspend();
    static_cast<void>(_Unwind_Backtrace(&trace::add, &later));
  }};
  side.resume();
  side.resume();
  EXPECT_EQ(result, _URC_END_OF_STACK);
  for (const trace* t : {&first, &later}) {
    ASSERT_GT(t->places.size(), 2u);
    ASSERT_LT(t->places.size(), trace::most);
    // An unwinder may or may not report the outermost frame's own caller, as zero.
    auto places = t->places;
    if (places.back() == 0) places.pop_back();
    EXPECT_TRUE(in_start(places.back()));
    for (std::size_t i = 0; i + 1 < places.size(); ++i) EXPECT_FALSE(in_start(places[i])) << i;
  }
}

TEST(unwinding, a_backtrace_on_the_thread_is_what_it_was) {
  trace before;
  trace after;
  side_stack side{[](side_stack& self) { self.suspend(); }};
  static_cast<void>(_Unwind_Backtrace(&trace::add, &before));
  side.resume();
  static_cast<void>(_Unwind_Backtrace(&trace::add, &after));
  side.resume();
  ASSERT_EQ(before.places.size(), after.places.size());
  for (std::size_t i = 1; i < before.places.size(); ++i) EXPECT_EQ(before.places[i], after.places[i]) << i;
}

TEST(unwinding, the_first_frame_pointer_is_zero) {
  // Walkers by frame pointers need this, whether or not this build keeps them further up.
  static void* found;
  static context home;
  struct entry {
    __attribute__((noinline)) static void run(std::uintptr_t, void*) noexcept {
#if RAMIE_TSAN || RAMIE_ASAN
      found = nullptr;
#else
      // The frame record that this function made holds the frame pointer that the base handed over.
      found = *static_cast<void**>(__builtin_frame_address(0));
#endif
      context here;
      static_cast<void>(switch_context(here, home, {}));
    }
  };
  if (RAMIE_ASAN != 0 || RAMIE_TSAN != 0) GTEST_SKIP() << "a bare switch without the sanitizer's knowledge";
  alignas(64) static char memory[64 * 1024];
  found = memory;
  const context start = fresh_context(memory + sizeof memory, &entry::run);
  static_cast<void>(switch_context(home, start, {}));
  EXPECT_EQ(found, nullptr);
}

bool is_landing_pad(const void* place) {
  std::uint32_t instruction;
  std::memcpy(&instruction, place, sizeof instruction);
#if defined(__x86_64__)
  return instruction == 0xfa1e'0ff3u;  // endbr64
#else
  return instruction == 0xd503'249fu || instruction == 0xd503'24dfu;  // bti j, bti jc
#endif
}

TEST(landing_pads, are_wherever_a_switch_may_land) {
  side_stack side{[](side_stack& self) { self.suspend(); }};
  EXPECT_TRUE(is_landing_pad(reinterpret_cast<const void*>(&ramie_context_start)));
  EXPECT_EQ(side.saved().pc, reinterpret_cast<void*>(&ramie_context_start));
  side.resume();
  EXPECT_NE(side.saved().pc, reinterpret_cast<void*>(&ramie_context_start));
  EXPECT_TRUE(is_landing_pad(side.saved().pc));
  side.resume();
}

}  // namespace

// Where the debugger is told to stop. It needs this name, so it is not in the unnamed namespace.
extern "C" RAMIE_NOINLINE void ramie_test_stop_here() { asm volatile(""); }
extern "C" RAMIE_NOINLINE void ramie_test_on_the_fiber() {
  ramie_test_stop_here();
  asm volatile("");
}

namespace {

TEST(debugger, stopped_here) {
  // Not a test by itself: the test below runs it in gdb.
  side_stack side{[](side_stack& self) {
    ramie_test_on_the_fiber();
    self.suspend();
    ramie_test_on_the_fiber();
  }};
  side.resume();
  side.resume();
}

TEST(debugger, backtrace_through_a_fiber_stops_cleanly) {
  if (!have_program("gdb")) GTEST_SKIP() << "no gdb here";
  if (testing::emulated()) GTEST_SKIP() << "gdb would see the emulator";
  const std::string gdb =
      "gdb -q -batch -nx -ex 'set debuginfod enabled off' -ex 'set confirm off' -ex 'set breakpoint pending off' "
      "-ex 'handle SIGUSR1 SIGUSR2 SIGSEGV nostop noprint pass' ";
  const auto probe = run_program(gdb + "-ex starti --args " + testing::own_path());
  if (probe.output.find("Program stopped") == std::string::npos)
    GTEST_SKIP() << "gdb may not trace here:\n" << probe.output;
  // Twice: when the fiber starts, and after it was resumed.
  const auto result = run_program(gdb + "-ex 'break ramie_test_stop_here' -ex run -ex bt -ex continue -ex bt --args " +
                                  testing::own_path() + " --gtest_filter=debugger.stopped_here");
  std::size_t bases = 0;
  std::size_t last_frames = 0;
  std::string last;
  for (std::size_t at = 0; at < result.output.size();) {
    const std::size_t end = std::min(result.output.find('\n', at), result.output.size());
    const std::string line = result.output.substr(at, end - at);
    at = end + 1;
    if (line.rfind('#', 0) == 0) {
      last = line;
      if (line.find("ramie_context_start") != std::string::npos) ++bases;
    } else if (!last.empty() && line.rfind(' ', 0) != 0) {
      if (last.find("ramie_context_start") != std::string::npos) ++last_frames;
      last.clear();
    }
  }
  if (!last.empty() && last.find("ramie_context_start") != std::string::npos) ++last_frames;
  EXPECT_EQ(bases, 2u) << result.output;
  EXPECT_EQ(last_frames, 2u) << result.output;
  for (const char* complaint : {"corrupt stack", "Cannot access memory", "previous frame", "??"})
    EXPECT_EQ(result.output.find(complaint), std::string::npos) << result.output;
}

}  // namespace
}  // namespace ramie::detail
