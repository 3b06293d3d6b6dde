// Random numbers that need not be secure: which victim, which of several ready cases.
#pragma once

#include <ramie/base/config.hpp>

#include <cstdint>

namespace ramie::detail {

/// xorshift64* (S. Vigna, 2014). One thread at a time.
class random_source {
 public:
  /// `seed`: any but zero.
  constexpr explicit random_source(std::uint64_t seed) noexcept : state_{seed} {}

  /// From [0, bound); exactly even only for a bound that is a power of two.
  RAMIE_ALWAYS_INLINE std::uint32_t below(std::uint32_t bound) noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>(((state_ * 2685821657736338717u) >> 32) * bound >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace ramie::detail
