#include <ramie/context/sanitizer.hpp>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

namespace ramie::detail {

void valgrind_register_stack([[maybe_unused]] const void* low, [[maybe_unused]] const void* high) noexcept {
#if defined(VALGRIND_STACK_REGISTER)
  // Never deregistered: slots are not unmapped.
  static_cast<void>(VALGRIND_STACK_REGISTER(low, high));
#endif
}

}  // namespace ramie::detail
