// Asymmetric fences, by the litmus test that they are for: each side stores its own word, fences, and loads the
// other's. Without fences both may find the other's word still unset; with them, never.
#include <ramie/machine/fence.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

namespace ramie::detail {
namespace {

using testing::hold_until;
using testing::scaled;

/// Lets both sides go through `rounds` cells, close to each other in time. Returns how often both missed the other.
template <class Left, class Right>
int both_missed(int rounds, Left left_fence, Right right_fence) {
  struct alignas(64) cell {
    std::atomic<int> left{0};
    alignas(64) std::atomic<int> right{0};
    alignas(64) int left_saw = 0;
    alignas(64) int right_saw = 0;
  };
  constexpr int cells = 512;
  const auto all = std::make_unique<cell[]>(cells);
  struct alignas(64) progress {
    std::atomic<int> at{0};
  } left_at, right_at, batch, ready;
  // Waits for the other side to reach the same cell, but not for long: it may have been preempted.
  auto meet = [](std::atomic<int>& mine, const std::atomic<int>& other, int i) {
    mine.store(i + 1, std::memory_order_relaxed);
    // No spin_pause: it would make the meeting too inexact for the few nanoseconds until a store is seen.
    for (int look = 0; look < 1000 && other.load(std::memory_order_relaxed) <= i; ++look) compiler_fence();
  };
  std::thread right{[&] {
    for (int first = 0; first < rounds; first += cells) {
      hold_until([&] { return batch.at.load(std::memory_order_acquire) > first; });
      for (int i = 0; i < cells; ++i) {
        meet(right_at.at, left_at.at, first + i);
        cell& c = all[static_cast<std::size_t>(i)];
        c.right.store(1, std::memory_order_relaxed);
        right_fence();
        c.right_saw = c.left.load(std::memory_order_relaxed);
      }
      ready.at.store(first + 1, std::memory_order_release);
    }
  }};
  int missed = 0;
  for (int first = 0; first < rounds; first += cells) {
    batch.at.store(first + 1, std::memory_order_release);
    for (int i = 0; i < cells; ++i) {
      meet(left_at.at, right_at.at, first + i);
      cell& c = all[static_cast<std::size_t>(i)];
      c.left.store(1, std::memory_order_relaxed);
      left_fence();
      c.left_saw = c.right.load(std::memory_order_relaxed);
    }
    hold_until([&] { return ready.at.load(std::memory_order_acquire) > first; });
    for (int i = 0; i < cells; ++i) {
      cell& c = all[static_cast<std::size_t>(i)];
      if (c.left_saw == 0 && c.right_saw == 0) ++missed;
      c.left.store(0, std::memory_order_relaxed);
      c.right.store(0, std::memory_order_relaxed);
    }
  }
  right.join();
  return missed;
}

TEST(fences, light_against_heavy) {
  // With compiler fences on both sides, hundreds of that many rounds see both sides miss each other. A heavy fence
  // takes up to 20 us while the other processor is awake.
  init_fences();
  EXPECT_EQ(both_missed(scaled(100'000), [] { light_fence(); }, [] { heavy_fence(); }), 0);
  EXPECT_EQ(both_missed(scaled(100'000), [] { heavy_fence(); }, [] { light_fence(); }), 0);
}

TEST(fences, heavy_against_heavy) {
  init_fences();
  EXPECT_EQ(both_missed(scaled(100'000), [] { heavy_fence(); }, [] { heavy_fence(); }), 0);
}

TEST(fences, full_against_full) {
  EXPECT_EQ(both_missed(scaled(1'000'000), [] { full_fence(); }, [] { full_fence(); }), 0);
}

TEST(fences, are_decided_once) {
  init_fences();
  const bool decided = asymmetric_fences;
  ASSERT_EQ(::setenv("RAMIE_MEMBARRIER", decided ? "0" : "1", 1), 0);
  init_fences();
  EXPECT_EQ(asymmetric_fences, decided);
  ::unsetenv("RAMIE_MEMBARRIER");
}

TEST(fences_of_a_child, are_as_the_environment_says) {
  const char* wish = std::getenv("RAMIE_MEMBARRIER");
  if (wish == nullptr || *wish != '0') GTEST_SKIP() << "for the test below";
  init_fences();
  EXPECT_FALSE(asymmetric_fences);
}

TEST(fences, hold_without_membarrier) {
  if (const char* wish = std::getenv("RAMIE_MEMBARRIER"); wish != nullptr) GTEST_SKIP() << "is the child";
  const int status = testing::run_self("RAMIE_MEMBARRIER", "0", "fences_of_a_child.*:fences.light*:fences.heavy*");
  if (status == 127) GTEST_SKIP() << "this program cannot start itself here";
  EXPECT_EQ(status, 0);
}

/// From now on membarrier fails with `error` in all threads of this process: the call `command`, or all if that is
/// negative. False if the system has no seccomp.
bool forbid_membarrier(int command, std::uint32_t error) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),  // the lower half: both are little-endian
      BPF_JUMP(BPF_JMP | (command < 0 ? BPF_JGE : BPF_JEQ) | BPF_K,
               static_cast<std::uint32_t>(command < 0 ? 0 : command), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

constexpr int cannot = 77;

/// In a child process: a runtime begins, then the sandbox, then workers need heavy fences.
void sandbox_a_runtime(int command, std::uint32_t error) {
  scheduler runtime{testing::with_workers(2)};
  if (!asymmetric_fences || !forbid_membarrier(command, error)) ::_exit(cannot);
  for (int i = 0; i < 3; ++i) {
    errno = EDOM;
    heavy_fence();
    if (errno != EDOM) ::_exit(1);
    int jobs = 0;
    testing::run_on(runtime, [&] { testing::fork_two([&] { ++jobs; }, [] {}); });
    if (jobs != 1) ::_exit(2);
  }
  ::_exit(0);
}

/// The exit status of a child that does that, 128 and more for signals, and what it said on standard error.
int run_sandboxed(int command, std::uint32_t error, std::string& said) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    sandbox_a_runtime(command, error);
  }
  ::close(ends[1]);
  char text[256];
  for (ssize_t n; (n = ::read(ends[0], text, sizeof text)) > 0;) said.append(text, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(sandboxes, without_membarrier_end_with_a_message) {
  std::string said;
  const int status = run_sandboxed(-1, EPERM, said);
  if (status == cannot) GTEST_SKIP() << "no seccomp or no membarrier here";
  EXPECT_EQ(status, 128 + SIGABRT);
  EXPECT_NE(said.find("membarrier"), std::string::npos) << said;
  EXPECT_NE(said.find("seccomp"), std::string::npos) << said;
}
TEST(sandboxes, with_a_kernel_out_of_memory_fence_globally) {
  std::string said;
  const int status = run_sandboxed(MEMBARRIER_CMD_PRIVATE_EXPEDITED, ENOMEM, said);
  if (status == cannot) GTEST_SKIP() << "no seccomp or no membarrier here";
  EXPECT_EQ(status, 0) << said;
}
TEST(sandboxes, with_a_kernel_out_of_memory_for_all_end_with_a_message) {
  std::string said;
  const int status = run_sandboxed(-1, ENOMEM, said);
  if (status == cannot) GTEST_SKIP() << "no seccomp or no membarrier here";
  EXPECT_EQ(status, 128 + SIGABRT);
  EXPECT_NE(said.find("out of memory"), std::string::npos) << said;
}

}  // namespace
}  // namespace ramie::detail
