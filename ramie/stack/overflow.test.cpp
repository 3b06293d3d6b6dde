// Every case here ends its process, so each runs entirely in a child (a death test).
#include <ramie/stack/overflow.hpp>

#include <ramie/base/error.hpp>
#include <ramie/stack/guard.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/stack/testing.hpp>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace ramie::detail {
namespace {

using testing::excursion;
using testing::failing_calls;

/// A sanitizer may have its own handler below ours; then the process ends in the sanitizer's way.
bool ended_by_the_signal(int status) {
  constexpr bool sanitizer = RAMIE_ASAN != 0 || RAMIE_TSAN != 0;
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGSEGV;
  return sanitizer && WIFEXITED(status) && WEXITSTATUS(status) != 0;
}

void say(const char* text) { static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text))); }

RAMIE_NOINLINE int recurse(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : recurse(depth - 1) + frame[0];
}

constexpr int without_end = 1'000'000'000;

void overflow(stack& s) {
  const alternate_signal_stack signals;
  excursion{s}.run([] { recurse(without_end); });
}

void name_gamma(const stack&, char* buffer, std::size_t size) noexcept {
  std::snprintf(buffer, size, "fiber \"gam\nma\"");
}

class overflow_report : public ::testing::TestWithParam<guard_kind> {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, testing::death_test_style());
    if (GetParam() == guard_kind::madvise && !kernel_has_guard_advice()) GTEST_SKIP() << "no MADV_GUARD_INSTALL here";
  }
};

INSTANTIATE_TEST_SUITE_P(kinds, overflow_report, ::testing::Values(guard_kind::madvise, guard_kind::mprotect),
                         [](const auto& parameter) {
                           return parameter.param == guard_kind::madvise ? "madvise" : "mprotect";
                         });

TEST_P(overflow_report, names_the_fiber_its_size_and_the_remedy) {
  const auto run = [] {
    install_overflow_handler();
    set_occupant_namer(name_gamma);
    overflow(*acquire_stack(stack_class_of(256 << 10, GetParam())));
  };
  EXPECT_EXIT(
      run(), ended_by_the_signal,
      "ramie: stack overflow in fiber \"gam.ma\": it used up its 240 KiB stack \\(slot 256 KiB at 0x[0-9a-f]+\\)\\. "
      "Raise fiber_options::stack_size, runtime_options::stack_size or RAMIE_STACK_SIZE\\.");
}

TEST_P(overflow_report, does_without_a_name_and_on_other_threads) {
  const auto run = [] {
    install_overflow_handler();
    install_overflow_handler();
    std::thread{[] { overflow(*acquire_stack(stack_class_of(32 << 10, GetParam()))); }}.join();
  };
  EXPECT_EXIT(run(), ended_by_the_signal,
              "overflow in a fiber without a name: it used up its 28 KiB stack \\(slot 32 KiB at");
}

TEST_P(overflow_report, comes_for_a_stack_that_was_used_before) {
  const auto run = [] {
    install_overflow_handler();
    stack_class& c = stack_class_of(64 << 10, GetParam());
    stack* s = acquire_stack(c);
    excursion{*s}.run([] { recurse(10); });
    release_stack(s);
    trim(c);
    overflow(*acquire_stack(c));
  };
  EXPECT_EXIT(run(), ended_by_the_signal, "it used up its 48 KiB stack");
}

void hit_from_elsewhere(guard_kind kind) {
  const alternate_signal_stack signals;
  install_overflow_handler();
  set_occupant_namer(name_gamma);
  const stack* s = acquire_stack(stack_class_of(64 << 10, kind));
  *static_cast<volatile char*>(lowest_usable(*s) - 1) = 1;
}

TEST_P(overflow_report, tells_a_stray_access_from_an_overflow) {
  EXPECT_EXIT(
      hit_from_elsewhere(GetParam()), ended_by_the_signal,
      "ramie: access to 0x[0-9a-f]+fff, in the guard of the stack of fiber \"gam.ma\", by code that runs elsewhere");
}

// Handlers installed before ramie's.

/// An emulator itself reports that the process died.
const char* silence() { return testing::emulated() ? "" : "^$"; }

class chaining : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, testing::death_test_style()); }
};

void set_action(int number, void (*plain)(int), void (*full)(int, siginfo_t*, void*), int flags) {
  struct sigaction action{};
  if (full != nullptr) {
    action.sa_sigaction = full;
    flags |= SA_SIGINFO;
  } else {
    action.sa_handler = plain;
  }
  action.sa_flags = flags;
  sigaddset(&action.sa_mask, SIGUSR1);
  ASSERT_EQ(::sigaction(number, &action, nullptr), 0);
}

bool blocked(int number) {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return ::sigismember(&mask, number) == 1;
}

RAMIE_NOINLINE void fault_at(std::uintptr_t address) {
  volatile std::uintptr_t hidden = address;  // from the compiler
  *reinterpret_cast<volatile char*>(hidden) = 1;
}

char* page_without_access() {
  return static_cast<char*>(::mmap(nullptr, page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

TEST_F(chaining, an_overflow_reaches_the_previous_handler_after_the_report) {
  const auto run = [] {
    set_action(
        SIGSEGV, nullptr,
        [](int, siginfo_t* info, void* machine) {
          say(in_guard(*find_stack(info->si_addr), info->si_addr) && machine != nullptr ? "previous saw the guard\n"
                                                                                        : "previous is confused\n");
          ::_exit(42);
        },
        0);
    install_overflow_handler();
    overflow(*acquire_stack(stack_class_of(64 << 10)));
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(42), "stack overflow in a fiber.*\nprevious saw the guard");
}

char* expected_address = nullptr;

TEST_F(chaining, other_faults_reach_it_with_their_address_and_its_mask) {
  if (testing::emulated()) GTEST_SKIP() << "an emulator may name another address";
  const auto run = [] {
    set_action(
        SIGSEGV, nullptr,
        [](int number, siginfo_t* info, void*) {
          say(number == SIGSEGV && info->si_addr == expected_address ? "right address, " : "wrong address, ");
          say(blocked(SIGUSR1) && blocked(SIGSEGV) ? "right mask\n" : "wrong mask\n");
          ::_exit(42);
        },
        0);
    install_overflow_handler();
    expected_address = page_without_access();
    *static_cast<volatile char*>(expected_address) = 1;
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(42), "^right address, right mask\n$");
}

TEST_F(chaining, a_handler_without_siginfo_may_mend_the_fault_again_and_again) {
  if (testing::emulated()) GTEST_SKIP() << "an emulator may meet the fault at another address";
  const auto run = [] {
    set_action(
        SIGSEGV,
        [](int) {
          say(blocked(SIGSEGV) ? "blocked\n" : "mended\n");
          ::mprotect(expected_address, page_size(), PROT_READ | PROT_WRITE);
        },
        nullptr, SA_NODEFER);
    install_overflow_handler();
    for (int i = 0; i < 3; ++i) {
      expected_address = page_without_access();
      *static_cast<volatile char*>(expected_address) = 1;
    }
    ::_exit(blocked(SIGSEGV) || blocked(SIGUSR1) ? 1 : 42);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(42), "^mended\nmended\nmended\n$");
}

TEST_F(chaining, bus_errors_go_the_same_way) {
  const auto run = [] {
    set_action(
        SIGBUS,
        [](int number) {
          say(number == SIGBUS ? "bus\n" : "other\n");
          ::_exit(42);
        },
        nullptr, 0);
    install_overflow_handler();
    std::FILE* empty = std::tmpfile();
    void* beyond_the_end = ::mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, ::fileno(empty), 0);
    *static_cast<volatile char*>(beyond_the_end) = 1;
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(42), "^bus\n$");
}

TEST_F(chaining, a_handler_for_one_time_is_called_one_time) {
  const auto run = [] {
    set_action(SIGSEGV, [](int) { say("once\n"); }, nullptr, static_cast<int>(SA_RESETHAND));
    install_overflow_handler();
    fault_at(8);
  };
  EXPECT_EXIT(run(), ::testing::KilledBySignal(SIGSEGV), "^once\n");
}

TEST_F(chaining, default_kills) {
  const auto run = [](bool fault) {
    set_action(SIGSEGV, SIG_DFL, nullptr, 0);
    install_overflow_handler();
    if (fault) fault_at(8);
    ::raise(SIGSEGV);
    ::_exit(42);
  };
  EXPECT_EXIT(run(true), ::testing::KilledBySignal(SIGSEGV), silence());
  EXPECT_EXIT(run(false), ::testing::KilledBySignal(SIGSEGV), silence());
}

TEST_F(chaining, an_ignored_signal_is_ignored_but_a_fault_is_not) {
  const auto run = [](bool fault) {
    set_action(SIGSEGV, SIG_IGN, nullptr, 0);
    install_overflow_handler();
    if (fault) fault_at(8);
    ::raise(SIGSEGV);
    ::_exit(42);
  };
  EXPECT_EXIT(run(true), ::testing::KilledBySignal(SIGSEGV), silence());
  EXPECT_EXIT(run(false), ::testing::ExitedWithCode(42), silence());
}

TEST_F(chaining, a_signal_that_was_sent_is_never_taken_for_an_overflow) {
  const auto run = [] {
    set_action(SIGSEGV, [](int) { say("sent\n"); }, nullptr, 0);
    install_overflow_handler();
    siginfo_t info{};
    info.si_addr = slot_base(*acquire_stack(stack_class_of(64 << 10)));
    info.si_signo = SIGSEGV;
    info.si_code = SI_QUEUE;
    ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGSEGV, &info);
    ::_exit(42);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(42), "^sent\n$");
}

// The alternate stack.

stack_t present() {
  stack_t s{};
  ::sigaltstack(nullptr, &s);
  return s;
}

/// A thread without one, even if a sanitizer has installed its own.
template <typename F>
void on_a_thread_without(F f) {
  std::thread{[&] {
    const stack_t before = present();
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
    f();
    ::sigaltstack(&before, nullptr);
  }}.join();
}

TEST(alternate_stack, is_large_enough_guarded_and_taken_away) {
  on_a_thread_without([] {
    const char* low = nullptr;
    {
      const alternate_signal_stack signals;
      EXPECT_EQ(present().ss_flags & SS_DISABLE, 0);
      EXPECT_GE(present().ss_size, 64u << 10);
      low = static_cast<const char*>(present().ss_sp);
      EXPECT_TRUE(testing::readable(low));
      EXPECT_FALSE(testing::readable(low - 1));
    }
    EXPECT_NE(present().ss_flags & SS_DISABLE, 0);
    EXPECT_FALSE(testing::readable(low));
  });
}

TEST(alternate_stack, lets_be_what_the_thread_has) {
  on_a_thread_without([] {
    static char own[128 << 10];
    stack_t mine{};
    mine.ss_sp = own;
    mine.ss_size = sizeof own;
    ASSERT_EQ(::sigaltstack(&mine, nullptr), 0);
    {
      const alternate_signal_stack signals;
      EXPECT_EQ(present().ss_sp, own);
    }
    EXPECT_EQ(present().ss_sp, own);
  });
}

TEST(alternate_stack, leaves_alone_what_came_after_it) {
  on_a_thread_without([] {
    static char own[128 << 10];
    stack_t mine{};
    mine.ss_sp = own;
    mine.ss_size = sizeof own;
    {
      const alternate_signal_stack signals;
      ASSERT_EQ(::sigaltstack(&mine, nullptr), 0);
    }
    EXPECT_EQ(present().ss_sp, own);
  });
}

TEST(alternate_stack, throws_when_the_system_refuses) {
  on_a_thread_without([] {
    for (std::size_t n = 0; n < 2; ++n) {
      const failing_calls failing{n, n};
      try {
        const alternate_signal_stack signals;
        ADD_FAILURE() << "call " << n << " failed, and nothing was thrown";
      } catch (const resource_error& e) {
        EXPECT_EQ(e.code(), ENOMEM);
        EXPECT_NE(std::string{e.what()}.find("signal stack"), std::string::npos) << e.what();
      }
      EXPECT_NE(present().ss_flags & SS_DISABLE, 0);
    }
  });
}

}  // namespace
}  // namespace ramie::detail
