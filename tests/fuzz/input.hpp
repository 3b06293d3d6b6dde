// Reads a fuzzer's bytes as choices; when there are no more, all choices are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace fuzz {

class input {
 public:
  input(const std::uint8_t* data, std::size_t size) noexcept : at_{data}, end_{data + size} {}
  [[nodiscard]] bool empty() const noexcept { return at_ == end_; }
  /// 0 to `most`.
  unsigned pick(unsigned most) noexcept { return at_ == end_ ? 0 : *at_++ % (most + 1); }
  std::string rest() const { return {reinterpret_cast<const char*>(at_), static_cast<std::size_t>(end_ - at_)}; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

}  // namespace fuzz

/// The target, which the fuzzer calls again and again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
