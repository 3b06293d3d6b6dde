// Options for tests and measurements, not for programs: all of it may change at any time.
//
// As variables of the environment, read when a runtime starts:
//   RAMIE_MIGRATE_ALWAYS  1: each resume is on another worker than the one before, if there is one
//   RAMIE_SPREADING       together, at_home, by_waker: where what was woken runs (spread.hpp), instead of trying it;
//                         for work_stealing with several workers
//   RAMIE_MEMBARRIER      0: full fences in place of membarrier(2), as where the kernel has none (fence.hpp)
//   RAMIE_RANDOM_YIELDS   a number P up to 90, in sanitized builds: a fiber that resumes after a wait yields with a
//                         probability of P in a hundred, again and again, so that it comes after everything that
//                         fails to wait for it
#pragma once

#include <ramie/machine/topology.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace ramie::detail {

inline constexpr const char* migrate_always_variable = "RAMIE_MIGRATE_ALWAYS";
inline constexpr const char* spreading_variable = "RAMIE_SPREADING";
inline constexpr const char* membarrier_variable = "RAMIE_MEMBARRIER";
inline constexpr const char* random_yields_variable = "RAMIE_RANDOM_YIELDS";

enum class spreading : std::uint8_t { automatic, together, at_home, by_waker };

struct test_options {
  bool migrate_always = false;                         // false: as the variable says
  detail::spreading spreading = spreading::automatic;  // automatic: as the variable says
  std::optional<topology> machine = std::nullopt;      // worker i is taken to be on its i-th CPU
};

/// Runtimes that this thread creates during its life have these options.
class with_test_options {
 public:
  explicit with_test_options(test_options options) noexcept : options_{std::move(options)}, outer_{current_} {
    current_ = &options_;
  }
  ~with_test_options() { current_ = outer_; }
  with_test_options(const with_test_options&) = delete;
  with_test_options& operator=(const with_test_options&) = delete;

  /// The options of a runtime that this thread creates now.
  [[nodiscard]] static test_options now() { return current_ == nullptr ? test_options{} : *current_; }

 private:
  static inline thread_local const test_options* current_ = nullptr;
  test_options options_;
  const test_options* outer_;
};

}  // namespace ramie::detail
