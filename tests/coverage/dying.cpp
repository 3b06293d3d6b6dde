// For builds that count executed lines: what a process has counted is written when it exits, and lost where it ends on
// purpose, as the processes of death tests do. Here these ends write it first. Of a segmentation fault this handler is
// told by ramie's, as any handler that was there before.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

extern "C" void __gcov_dump(void);

namespace {

/// Once: a second thread that dies meanwhile is not to wait for the first.
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
