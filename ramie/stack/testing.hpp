// For the tests of this floor: system calls that fail, code that runs on a stack of the pool, memory as others see it.
#pragma once

#include <ramie/base/testing.hpp>
#include <ramie/context/context.hpp>
#include <ramie/context/sanitizer.hpp>
#include <ramie/context/testing.hpp>
#include <ramie/stack/guard.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/stack/system.hpp>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace ramie::detail::testing {

/// While it lives, system calls number `first` to `last` (from 0) of this floor fail with `code`. One at a time.
class failing_calls {
 public:
  failing_calls(std::size_t first, std::size_t last, int code = ENOMEM) noexcept {
    made_ = 0;
    first_ = first;
    last_ = last;
    code_ = code;
    replace_calls(&table);
  }
  ~failing_calls() { replace_calls(nullptr); }
  failing_calls(const failing_calls&) = delete;
  failing_calls& operator=(const failing_calls&) = delete;

  /// Calls made so far, those that failed included.
  [[nodiscard]] static std::size_t made() noexcept { return made_; }

 private:
  static bool fails() noexcept {
    const std::size_t number = made_++;
    if (number < first_ || number > last_) return false;
    errno = code_;
    return true;
  }
  static void* map(std::size_t size) noexcept { return fails() ? nullptr : kernel_calls.map(size); }
  static int unmap(void* address, std::size_t size) noexcept {
    return fails() ? -1 : kernel_calls.unmap(address, size);
  }
  static int advise(void* address, std::size_t size, int advice) noexcept {
    return fails() ? -1 : kernel_calls.advise(address, size, advice);
  }
  static ssize_t advise_ranges(const iovec* ranges, std::size_t count, int advice) noexcept {
    return fails() ? -1 : kernel_calls.advise_ranges(ranges, count, advice);
  }
  static int protect(void* address, std::size_t size, int protection) noexcept {
    return fails() ? -1 : kernel_calls.protect(address, size, protection);
  }

  static inline const memory_calls table{map, unmap, advise, advise_ranges, protect, kernel_calls.max_map_count};
  static inline std::atomic<std::size_t> made_{0}, first_{0}, last_{0};
  static inline std::atomic<int> code_{0};
};

/// While it lives, `replacement` is in use.
class replaced_calls {
 public:
  explicit replaced_calls(const memory_calls& replacement) noexcept { replace_calls(&replacement); }
  ~replaced_calls() { replace_calls(nullptr); }
  replaced_calls(const replaced_calls&) = delete;
  replaced_calls& operator=(const replaced_calls&) = delete;
};

/// Whether the byte can be read, without a signal: the kernel reads it for us. One thread at a time.
inline bool readable(const void* address) noexcept {
  static int ends[2] = {-1, -1};
  if (ends[0] < 0 && ::pipe(ends) != 0) std::abort();
  // Bypasses the sanitizers' wrappers, which would report the byte themselves.
  if (::syscall(SYS_write, ends[1], address, 1) != 1) return false;
  char byte;
  return ::syscall(SYS_read, ends[0], &byte, 1) == 1;
}

inline std::vector<stack*> acquire_many(stack_class& c, std::size_t count) {
  std::vector<stack*> stacks(count);
  for (stack*& s : stacks) s = acquire_stack(c);
  return stacks;
}

inline void release_all(std::vector<stack*>& stacks) {
  for (stack* s : stacks) release_stack(s);
  stacks.clear();
}

/// The kinds of guard available here.
inline std::vector<guard_kind> kinds() {
  std::vector<guard_kind> here{guard_kind::mprotect, guard_kind::none};
  if (kernel_has_guard_advice()) here.push_back(guard_kind::madvise);
  return here;
}

/// Runs `f` on `s` and returns when it returns. If it never does, `abandon` switches back from within it.
class excursion {
 public:
  explicit excursion(stack& s) noexcept : stack_{s} {}

  template <typename F>
  void run(F f) {
    function_ = [](void* it) { (*static_cast<F*>(it))(); };
    argument_ = &f;
    char* const top = stack_.top - sanitizer_reserve;
    sanitizer_start(stack_.top);
    const context start = fresh_context(top, arrive);
    home_fiber_ = sanitizer_thread_fiber();
    home_stack_ = thread_stack();
    sanitizer_switch around;
    void* fiber = nullptr;
#if RAMIE_TSAN
    fiber = tsan_fiber_of(stack_.top);
#endif
    around.before(lowest_usable(stack_), usable_size(stack_), fiber, false);
    static_cast<void>(switch_context(home_, start, {reinterpret_cast<std::uintptr_t>(this), nullptr}));
    around.after();
    sanitizer_finish(stack_.top);
  }

  [[noreturn]] void abandon() noexcept {
    // After this call nothing of this frame may be touched: the sanitizer frees the frames that it keeps elsewhere.
    leaving_.before(home_stack_.first, home_stack_.second, home_fiber_, true);
    static_cast<void>(switch_context(never_, home_, {}));
    __builtin_unreachable();
  }

 private:
  static void arrive(std::uintptr_t word, void*) noexcept {
    sanitizer_switch::arrived();
    auto* self = reinterpret_cast<excursion*>(word);
    self->function_(self->argument_);
    self->abandon();
  }

  stack& stack_;
  context home_;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
  void* home_fiber_ = nullptr;
  std::pair<void*, std::size_t> home_stack_{};
  context never_;
  sanitizer_switch leaving_;
};

}  // namespace ramie::detail::testing
