// A program may be compiled with a sanitizer and linked with a library that was not, such as an installed one.

#include <ramie/context/sanitizer.hpp>

#include <ramie/base/error.hpp>

// Null unless a sanitizer is part of the program.
extern "C" {
#if !RAMIE_ASAN
[[gnu::weak]] extern int __asan_option_detect_stack_use_after_return;
#endif
#if !RAMIE_TSAN && !RAMIE_INTERLEAVE  // the simulator has such a function of its own
[[gnu::weak]] void __tsan_init();
#endif
}

namespace ramie::detail {

void sanitizer_begin() {
#if RAMIE_ASAN
  __asan_option_detect_stack_use_after_return = 0;
#else
  if (&__asan_option_detect_stack_use_after_return != nullptr) __asan_option_detect_stack_use_after_return = 0;
#endif
#if !RAMIE_TSAN && !RAMIE_INTERLEAVE
  if (&__tsan_init != nullptr)
    throw usage_error{"ramie: the program is built with ThreadSanitizer, but the ramie library is not"};
#endif
}

}  // namespace ramie::detail
