#include <ramie/sync/identity.hpp>

#include <ramie/base/config.hpp>

#include <cstdint>

namespace ramie::detail {

// Called by fibers, too, and again after they changed the thread: a caller must not keep what it was told before, as a
// compiler that sees this body would let it.
RAMIE_NOINLINE const void* thread_identity() noexcept {
  static thread_local std::uint64_t own_address;
  asm volatile("");
  return reinterpret_cast<const char*>(&own_address) + 1;
}

}  // namespace ramie::detail
