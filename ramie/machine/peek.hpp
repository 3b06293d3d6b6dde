// Reads of what other threads write.
#pragma once

#include <ramie/base/config.hpp>

namespace ramie::detail {

/// A plain variable that another thread writes, read as it is.
template <class T>
RAMIE_UNWATCHED T peek(const T& variable) noexcept {
  return *const_cast<const volatile T*>(&variable);
}

}  // namespace ramie::detail
