#include <ramie/sync/identity.hpp>

#include <cstdint>

namespace ramie::detail {

const void* thread_identity() noexcept {
  static thread_local std::uint64_t own_address;
  return reinterpret_cast<const char*>(&own_address) + 1;
}

}  // namespace ramie::detail
