// The soak test: a random mix of everything, from a seed, for any time. Each act does something with ramie and checks
// the result; rounds of acts run side by side on runtimes of random shape.
#pragma once

#include <ramie/ramie.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace soak {

/// Random numbers of one act. Each act has its own, so that it depends on the seed alone.
class dice {
 public:
  explicit dice(std::uint64_t seed) noexcept : state_{seed * 0x9e3779b97f4a7c15u + 1} {}
  std::uint64_t next() noexcept {  // splitmix64
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// From `low` to `high`, both included.
  int between(int low, int high) noexcept {
    return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(int n) noexcept { return between(1, n) == 1; }
  std::chrono::microseconds us(int low, int high) noexcept { return std::chrono::microseconds{between(low, high)}; }

 private:
  std::uint64_t state_;
};

/// An object that must be destroyed as often as it was made. Each act leaves some in fibers, closures, elements,
/// messages.
class tracked {
 public:
  explicit tracked(int v = 0) noexcept : value{v} { add(1); }
  tracked(const tracked& other) noexcept : value{other.value} { add(1); }
  tracked(tracked&& other) noexcept : value{other.value} { add(1); }
  tracked& operator=(const tracked&) noexcept = default;
  tracked& operator=(tracked&&) noexcept = default;
  ~tracked() { add(-1); }
  int value;
  static std::int64_t alive() noexcept { return alive_.load(std::memory_order_acquire); }

 private:
  static void add(int n) noexcept { alive_.fetch_add(n, std::memory_order_acq_rel); }
  inline static std::atomic<std::int64_t> alive_{0};
};

/// An invariant does not hold: prints which, and the seed, and ends the process.
[[noreturn]] void fail(std::string_view what);
inline void require(bool holds, std::string_view what) {
  if (!holds) fail(what);
}

/// How large the acts are; less under sanitizers.
extern int scale;

/// One act, in a fiber of the round's runtime. May throw `cancelled` if the round is cut short.
using act = void (*)(dice&);
struct named_act {
  const char* name;
  act run;
};

/// acts.cpp, acts_actors.cpp, acts_ends.cpp
extern const std::array<named_act, 6> plain_acts;
extern const std::array<named_act, 6> actor_acts;
extern const std::array<named_act, 6> end_acts;

}  // namespace soak
