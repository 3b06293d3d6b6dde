#include <ramie/machine/thread_end.hpp>

#include <cxxabi.h>

// Tells the C library the object that `give` belongs to, which then stays loaded until the call.
extern "C" void* __dso_handle;  // NOLINT(bugprone-reserved-identifier)

namespace ramie::detail {

// What the compiler calls for each thread_local with a destructor. A thread_local itself would not do: it is made once,
// so what its destructor released could not be taken again.
bool at_thread_end(void (*give)(void* kept), void* kept) noexcept {
  return abi::__cxa_thread_atexit(give, kept, &__dso_handle) == 0;
}

}  // namespace ramie::detail
