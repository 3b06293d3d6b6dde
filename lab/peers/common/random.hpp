// Experiment 5's random walks, the same for ramie and for the executors that it is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace peer {

/// xorshift64: the same numbers in every run, and cheap beside a cache miss.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) noexcept : state_{seed * 0x9e3779b97f4a7c15u + 1} {}
  std::uint64_t next() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  /// In [0, end).
  std::size_t below(std::size_t end) noexcept {
    return static_cast<std::size_t>((static_cast<unsigned __int128>(next()) * end) >> 64);
  }

 private:
  std::uint64_t state_;
};

/// What a message does to its actor's state.
inline void touch(std::vector<std::uint64_t>& words, std::int64_t accesses, random_numbers& random) noexcept {
  for (std::int64_t i = 0; i < accesses; ++i) ++words[random.below(words.size())];
}

}  // namespace peer
