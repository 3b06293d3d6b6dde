// What happens to the process from outside: storms of signals, fork and exec, stop and continue, workers starved by the
// machine. None of it may change a result.
#include <ramie/ramie.hpp>

#include <ramie/sched/testing.hpp>

#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

using namespace std::chrono_literals;
using ramie::detail::testing::scaled;

/// The thread ids of this process.
std::vector<pid_t> threads_of_process() {
  std::vector<pid_t> all;
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return all;
  while (const dirent* entry = ::readdir(tasks))
    if (const pid_t id = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)); id > 0) all.push_back(id);
  ::closedir(tasks);
  return all;
}

long fib(int n) {
  if (n < 2) return n;
  auto [a, b] = ramie::fork_join([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return a + b;
}

/// Forks, channels, timers, blocking calls, plain waits: system calls and computations of all kinds.
void work() {
  const int rounds = scaled(10'000);
  ramie::channel<int> there, back{4};
  auto echo = ramie::spawn([&] {
    while (const std::optional<int> v = there.recv()) static_cast<void>(back.send(*v));
    back.close();
  });
  auto sleeper = ramie::spawn([&] {
    for (int i = 0; i < rounds / 100 + 1; ++i) ramie::this_fiber::sleep_for(200us);
  });
  auto caller = ramie::spawn([&] {
    int sum = 0;
    for (int i = 0; i < rounds / 100 + 1; ++i) sum += ramie::blocking([] { return 1; });
    return sum;
  });
  ASSERT_EQ(fib(22), 17711);
  for (int i = 0; i < rounds; ++i) {
    static_cast<void>(there.send(i));
    ASSERT_EQ(back.recv(), i);
  }
  there.close();
  ASSERT_EQ(back.recv(), std::nullopt);
  echo.join();
  sleeper.join();
  ASSERT_EQ(caller.join(), rounds / 100 + 1);
}

ramie::runtime_options workers(int n) { return {.workers = n, .name = "process", .report_deadlocks = false}; }

std::atomic<std::uint64_t> signals_seen{0};
void count_signal(int) { signals_seen.fetch_add(1, std::memory_order_relaxed); }

/// Installs the counting handler; without SA_RESTART, so that system calls end early.
class counted_signal {
 public:
  explicit counted_signal(int number) : number_{number} {
    struct sigaction action{};
    action.sa_handler = &count_signal;
    ::sigaction(number, &action, &before_);
    signals_seen = 0;
  }
  ~counted_signal() { ::sigaction(number_, &before_, nullptr); }

 private:
  int number_;
  struct sigaction before_{};
};

TEST(signals, storms_change_nothing) {
  const counted_signal counted{SIGUSR1};
  std::atomic<bool> over{false};
  ramie::runtime rt{workers(3)};
  std::thread storm{[&] {
    const pid_t process = ::getpid(), self = static_cast<pid_t>(::syscall(SYS_gettid));
    while (!over.load(std::memory_order_acquire)) {
      for (const pid_t id : threads_of_process())
        if (id != self && id != process) ::syscall(SYS_tgkill, process, id, SIGUSR1);
      ::sched_yield();
    }
  }};
  do {
    rt.run([] { work(); });
  } while (signals_seen == 0);
  over.store(true, std::memory_order_release);
  storm.join();
}

TEST(signals, of_a_profiler_change_nothing) {
  const counted_signal counted{SIGPROF};
  const itimerval often{{0, 500}, {0, 500}};
  ASSERT_EQ(::setitimer(ITIMER_PROF, &often, nullptr), 0);
  {
    ramie::runtime rt{workers(2)};
    do {
      rt.run([] { work(); });
    } while (signals_seen == 0);
  }
  const itimerval never{};
  ::setitimer(ITIMER_PROF, &never, nullptr);
}

/// Spare workers are started by the monitor, whose own mask blocks nearly everything.
TEST(signals, are_blocked_in_no_worker_but_those_that_the_first_thread_blocked) {
  sigset_t chosen, before;
  ::sigemptyset(&chosen);
  ::sigaddset(&chosen, SIGUSR2);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &chosen, &before), 0);
  {
    ramie::runtime_options one = workers(1);
    one.spare_workers = 2;
    ramie::runtime rt{one};
    std::atomic<int> checked{0};
    const auto check = [&] {
      sigset_t here;
      ::pthread_sigmask(SIG_BLOCK, nullptr, &here);
      for (int number = 1; number < SIGRTMIN; ++number) {
        if (number == SIGSTOP || number == SIGKILL) continue;
        EXPECT_EQ(::sigismember(&here, number), number == SIGUSR2 || ::sigismember(&before, number) == 1) << number;
      }
      ++checked;
    };
    rt.run([&] {
      check();
      auto sleeper = ramie::spawn([&] {  // for the reserve: it wakes up while the only worker is held up
        ramie::this_fiber::sleep_for(1ms);
        check();
      });
      ramie::this_fiber::yield();
      auto fresh = ramie::spawn(check);  // for a spare worker
      while (checked != 3) {
      }
      sleeper.join();
      fresh.join();
    });
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(processes, fork_and_exec_from_fibers) {
  ramie::runtime rt{workers(3)};
  rt.run([] {
    std::vector<ramie::join_handle<int>> all;
    for (int i = 0; i < 6; ++i)
      all.push_back(ramie::spawn([i] {
        ramie::this_fiber::yield();
        const std::string script = "exit " + std::to_string(i);
        const pid_t child = ::fork();
        if (child == 0) {
          ::execl("/bin/sh", "sh", "-c", script.c_str(), static_cast<char*>(nullptr));
          ::_exit(127);
        }
        return ramie::blocking([child] {
          int status = 0;
          while (::waitpid(child, &status, 0) < 0)
            if (errno != EINTR) return -1;
          return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        });
      }));
    work();
    for (int i = 0; i < 6; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].join(), i);
  });
}

TEST(processes, stop_and_continue) {
  // By another process, a few times, while work is under way.
  const std::string script = "for i in 1 2 3 4; do sleep 0.02; kill -STOP " + std::to_string(::getpid()) +
                             "; sleep 0.05; kill -CONT " + std::to_string(::getpid()) + "; done";
  std::string shell = "sh", option = "-c", text = script;
  char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t other = 0;
  ASSERT_EQ(::posix_spawn(&other, "/bin/sh", nullptr, nullptr, arguments, environ), 0);
  ramie::runtime rt{workers(2)};
  int status = 0;
  do {
    rt.run([] { work(); });
  } while (::waitpid(other, &status, WNOHANG) == 0);
  EXPECT_EQ(status, 0);
}

TEST(machines, that_starve_a_worker_change_nothing) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  ramie::runtime rt{workers(3)};
  rt.run([] {});
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  // All on one processor, and each other thread as nice as can be.
  const std::vector<pid_t> threads = threads_of_process();
  for (std::size_t i = 0; i < threads.size(); ++i) {
    ::sched_setaffinity(threads[i], sizeof one, &one);
    if (i % 2 == 1) ::setpriority(PRIO_PROCESS, static_cast<id_t>(threads[i]), 19);
  }
  rt.run([] { work(); });
  ::sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
