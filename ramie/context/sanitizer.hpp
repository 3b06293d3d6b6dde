// What sanitizers and valgrind must be told about stacks. Empty in a plain build.
//
// AddressSanitizer needs the bounds of the destination stack before a switch, and a call after it when the stack was
// reached; it may keep a "fake stack" per fiber, which is released when a stack is left for good. ThreadSanitizer keeps
// a shadow call stack per fiber, so a stack gets a fresh one each time it is started and releases it when it is left.
#pragma once

#include <ramie/base/config.hpp>

#include <cstddef>

#if RAMIE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
/// ASan's own: each function asks it before it places its variables elsewhere.
extern "C" int __asan_option_detect_stack_use_after_return;
#endif
#if RAMIE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace ramie::detail {

/// Bytes at a stack's top that the sanitizer keeps for itself.
inline constexpr std::size_t sanitizer_reserve = RAMIE_TSAN ? 64 : 0;

#if RAMIE_TSAN
inline void*& tsan_fiber_of(char* top) noexcept { return *reinterpret_cast<void**>(top - 64); }
#endif

/// Before the first fiber of the process. Local variables must lie on the stack: regions, scopes and fork jobs are
/// told apart by their addresses there (task/region.hpp). So this switches off the detection of uses after return
/// (on by default in clang). Throws usage_error if ThreadSanitizer instruments the program but not the library: it
/// would miss every wait, and take switches of stacks for races.
void sanitizer_begin();

/// A stack is about to be started (again). Called before its first switch.
inline void sanitizer_start([[maybe_unused]] char* top) noexcept {
#if RAMIE_TSAN
  tsan_fiber_of(top) = __tsan_create_fiber(0);
#endif
}

/// A stack was left for good. Called from another stack.
inline void sanitizer_finish([[maybe_unused]] char* top) noexcept {
#if RAMIE_TSAN
  __tsan_destroy_fiber(tsan_fiber_of(top));
#endif
}

/// The fiber of a thread's own stack.
inline void* sanitizer_thread_fiber() noexcept {
#if RAMIE_TSAN
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}

/// Around one switch: construct, `before`, switch, `after`.
class sanitizer_switch {
 public:
  /// `low`, `size`: bounds of the destination; `fiber`: its TSan fiber; `for_good`: the stack left will not be switched
  /// to again.
  RAMIE_ALWAYS_INLINE void before([[maybe_unused]] const void* low, [[maybe_unused]] std::size_t size,
                                  [[maybe_unused]] void* fiber, [[maybe_unused]] bool for_good) noexcept {
#if RAMIE_ASAN
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack_, low, size);
#endif
#if RAMIE_TSAN
    __tsan_switch_to_fiber(fiber, 0);
#endif
  }
  RAMIE_ALWAYS_INLINE void after() noexcept {
#if RAMIE_ASAN
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
  }
  /// On the first arrival at a fresh stack.
  static RAMIE_ALWAYS_INLINE void arrived() noexcept {
#if RAMIE_ASAN
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  }

#if RAMIE_ASAN
 private:
  void* fake_stack_ = nullptr;
#endif
};

/// Tells valgrind, if this process runs under it and its header was there at build time, that [low, high) is a stack.
void valgrind_register_stack(const void* low, const void* high) noexcept;

}  // namespace ramie::detail
