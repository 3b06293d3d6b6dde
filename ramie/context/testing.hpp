// For the tests of this floor: code that runs on a stack of its own, with nothing but the switch; programs run from a
// test.
#pragma once

#include <ramie/base/testing.hpp>
#include <ramie/context/context.hpp>
#include <ramie/context/sanitizer.hpp>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

namespace ramie::detail::testing {

/// Scales a number of repetitions down under sanitizers, which are ten to fifty times slower.
constexpr int scaled(int n) noexcept {
  const int divisor = RAMIE_TSAN != 0 ? 50 : RAMIE_ASAN != 0 ? 10 : 1;
  return n / divisor > 1 ? n / divisor : 1;
}

/// Bounds of the calling thread's own stack.
inline std::pair<void*, std::size_t> thread_stack() noexcept {
  struct bounds {
    void* low = nullptr;
    std::size_t size = 0;
    bounds() noexcept {
      pthread_attr_t attributes;
      ::pthread_getattr_np(::pthread_self(), &attributes);
      ::pthread_attr_getstack(&attributes, &low, &size);
      ::pthread_attr_destroy(&attributes);
    }
  };
  static thread_local const bounds mine;
  return {mine.low, mine.size};
}

/// A stack on which one function runs, suspends and resumes, as its holder says.
class side_stack {
 public:
  static constexpr std::size_t size_default = 128 * 1024;

  explicit side_stack(std::function<void(side_stack&)> body, std::size_t size = size_default)
      : body_{std::move(body)}, size_{size} {
    low_ = static_cast<char*>(
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (low_ == MAP_FAILED) std::abort();
    // No guard page: guards belong to the next floor.
    sanitizer_start(top());
    valgrind_register_stack(low_, top());
    saved_ = fresh_context(top() - sanitizer_reserve, &arrive);
  }
  side_stack(const side_stack&) = delete;
  side_stack& operator=(const side_stack&) = delete;
  ~side_stack() {
    sanitizer_finish(top());
#if RAMIE_ASAN
    ASAN_UNPOISON_MEMORY_REGION(low_, size_);
#endif
    ::munmap(low_, size_);
  }

  /// Resumes the body until it suspends or returns. Returns what `suspend` was given; `suspend` returns `sent`.
  transfer resume(transfer sent = {}) {
    sanitizer_switch around;
    void* fiber = nullptr;
#if RAMIE_TSAN
    fiber = tsan_fiber_of(top());
#endif
    home_fiber_ = sanitizer_thread_fiber();
    home_stack_ = RAMIE_ASAN != 0 ? thread_stack() : std::pair<void*, std::size_t>{};
    first_sent_ = sent;
    const bool first = !std::exchange(started_, true);
    around.before(low_, size_, fiber, false);
    const transfer back =
        switch_context(home_, saved_, first ? transfer{reinterpret_cast<std::uintptr_t>(this), sent.worker} : sent);
    around.after();
    return back;
  }
  /// Called by the body.
  transfer suspend(transfer sent = {}) {
    sanitizer_switch around;
    around.before(home_stack_.first, home_stack_.second, home_fiber_, false);
    const transfer back = switch_context(saved_, home_, sent);
    around.after();
    return back;
  }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] char* low() const noexcept { return low_; }
  [[nodiscard]] char* top() const noexcept { return low_ + size_; }
  [[nodiscard]] const context& saved() const noexcept { return saved_; }
  /// What the first `resume` was given.
  [[nodiscard]] transfer first_sent() const noexcept { return first_sent_; }

 private:
  static void arrive(std::uintptr_t word, void* worker) noexcept {
    sanitizer_switch::arrived();
    auto* self = reinterpret_cast<side_stack*>(word);
    self->first_sent_.worker = worker;
    self->body_(*self);
    self->ended_ = true;
    // After this call nothing of this frame may be touched: the sanitizer frees the frames that it keeps elsewhere.
    self->leaving_.before(self->home_stack_.first, self->home_stack_.second, self->home_fiber_, true);
    static_cast<void>(switch_context(self->saved_, self->home_, {}));
    __builtin_unreachable();
  }

  std::function<void(side_stack&)> body_;
  std::size_t size_;
  char* low_ = nullptr;
  context saved_;
  context home_;
  void* home_fiber_ = nullptr;
  std::pair<void*, std::size_t> home_stack_{};
  transfer first_sent_{};
  sanitizer_switch leaving_;
  bool started_ = false;
  bool ended_ = false;
};

struct program_result {
  int status = -1;  // as from exit; 128 + signal if it was killed, -1 if it could not be run
  std::string output;
};

/// Runs a shell command; its standard error is part of the output.
inline program_result run_program(const std::string& command) {
  program_result result;
  std::FILE* pipe =
      ::popen(("exec 2>&1; " + command).c_str(), "r");  // NOLINT(bugprone-command-processor): fixed commands
  if (pipe == nullptr) return result;
  std::array<char, 4096> part;
  for (std::size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) != 0;) result.output.append(part.data(), n);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

inline bool have_program(const char* name) { return run_program(std::string{"command -v "} + name).status == 0; }

inline std::string own_path() {
  std::array<char, 4096> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : std::string{};
}

}  // namespace ramie::detail::testing
