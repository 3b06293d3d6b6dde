// For builds that count executed lines: what a process has counted is written when it exits, and lost where it ends on
// purpose, as the processes of death tests do. Here these ends write it first.
#include <dlfcn.h>
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

}  // namespace

extern "C" {

[[noreturn]] void abort() noexcept {
  write_counts();
  real<void()>("abort")();
  __builtin_unreachable();
}

[[noreturn]] void _exit(int status) noexcept {
  write_counts();
  real<void(int)>("_exit")(status);
  __builtin_unreachable();
}

[[noreturn]] void _Exit(int status) noexcept { _exit(status); }

}  // extern "C"
