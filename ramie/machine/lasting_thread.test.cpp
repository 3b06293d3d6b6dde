#include <ramie/machine/lasting_thread.hpp>

#include <ramie/base/config.hpp>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

std::thread::id its_id() {
  std::thread::id id;
  auto f = [&id] { id = std::this_thread::get_id(); };
  on_lasting_thread(duty::starts_children, f);
  return id;
}

TEST(lasting_thread, is_one_for_all) {
  std::vector<std::thread> callers;
  std::vector<std::thread::id> seen(8);
  int calls = 0;
  for (std::size_t i = 0; i < seen.size(); ++i)
    callers.emplace_back([&, i] {
      for (int k = 0; k < 100; ++k) {
        seen[i] = its_id();
        auto f = [&calls] { ++calls; };  // one after the other: TSan would see it
        on_lasting_thread(duty::starts_children, f);
      }
    });
  for (std::thread& c : callers) c.join();
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1u);
  EXPECT_NE(seen[0], std::this_thread::get_id());
  EXPECT_EQ(calls, 800);
}

TEST(lasting_thread, is_another_for_each_duty_and_blocks_signals) {
  static_cast<void>(its_id());
  std::thread::id id;
  sigset_t mask;
  ::sigemptyset(&mask);
  auto f = [&] {
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    id = std::this_thread::get_id();
  };
  on_lasting_thread(duty::takes_signals, f);
  EXPECT_NE(id, its_id());
  EXPECT_EQ(lasting_threads(), 2u);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&mask, SIGINT), 1);
  EXPECT_EQ(::sigismember(&mask, SIGSEGV), 0);
}

TEST(lasting_thread, is_another_in_a_child) {
  if (RAMIE_TSAN) GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads";
  const std::thread::id mine = its_id();
  const pid_t child = ::fork();
  if (child == 0) {
    int calls = 0;
    auto f = [&calls] { ++calls; };
    const std::size_t none = lasting_threads();
    on_lasting_thread(duty::starts_children, f);
    on_lasting_thread(duty::starts_children, f);
    ::_exit(calls == 2 && none == 0 && lasting_threads() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(its_id(), mine);
}

}  // namespace
}  // namespace ramie::detail
