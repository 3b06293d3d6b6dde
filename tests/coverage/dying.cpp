// For builds that count executed lines: a process writes its counts when it exits, and loses them if it ends on
// purpose, as in death tests. Here these ends write the counts first. On a segmentation fault ramie's handler calls
// this one, as any handler that was there before.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

extern "C" void __gcov_dump(void);

namespace {

/// Once: a second thread that dies meanwhile must not wait for the first.
void write_counts() noexcept {
  static std::atomic<bool> begun{false};
  if (!begun.exchange(true)) __gcov_dump();
}

template <class Function>
Function* real(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void write_counts_and_die(int signal) {
  write_counts();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

[[gnu::constructor]] void expect_faults() {
  struct sigaction action{};
  action.sa_handler = write_counts_and_die;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

extern "C" {

void abort() noexcept {
  write_counts();
  real<void()>("abort")();
  __builtin_unreachable();
}

void _exit(int status) {
  write_counts();
  real<void(int)>("_exit")(status);
  __builtin_unreachable();
}

void _Exit(int status) noexcept { _exit(status); }

}  // extern "C"
