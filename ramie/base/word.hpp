// Words that several threads share, for the few places where the shape of the machine code matters.
//
// std::atomic would do, but compilers treat each atomic operation as a barrier to optimisation: values that live in
// registers are stored and loaded again around it. On the fork path that is half of the instructions. A volatile access
// of an aligned word is the same instruction as a relaxed atomic one, keeps its order among volatile accesses, and
// leaves everything else alone. ThreadSanitizer does not see volatile as synchronisation, so its builds use the
// builtins.
#pragma once

#include <ramie/base/atomic.hpp>

#include <type_traits>

namespace ramie::detail {

#if RAMIE_TSAN || !defined(__x86_64__)
inline constexpr bool volatile_words = false;
#else
inline constexpr bool volatile_words = true;
#endif

#if RAMIE_INTERLEAVE
template <class T>
class word {
 public:
  word() noexcept = default;
  constexpr explicit word(T value) noexcept : value_{value} {}
  word(const word&) = delete;
  word& operator=(const word&) = delete;

  [[nodiscard]] T load_relaxed() const noexcept { return value_.load(std::memory_order_relaxed); }
  [[nodiscard]] T load_acquire() const noexcept { return value_.load(std::memory_order_acquire); }
  void store_relaxed(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void store_release(T value) noexcept { value_.store(value, std::memory_order_release); }
  void publish(T value) noexcept { value_.store(value, std::memory_order_release); }
  bool compare_exchange(T& expected, T value) noexcept {
    return value_.compare_exchange_strong(expected, value, std::memory_order_acq_rel);
  }

 private:
  atomic<T> value_;
};

inline void order_words() noexcept {}
#else
template <class T>
class word {
  static_assert(sizeof(T) == sizeof(void*) && std::is_trivially_copyable_v<T>);

 public:
  word() noexcept = default;  // no value: writing one would cost an instruction
  constexpr explicit word(T value) noexcept : value_{value} {}
  word(const word&) = delete;
  word& operator=(const word&) = delete;

  [[nodiscard]] RAMIE_ALWAYS_INLINE T load_relaxed() const noexcept {
    if constexpr (volatile_words) return *const_cast<const volatile T*>(&value_);
    else return __atomic_load_n(&value_, __ATOMIC_RELAXED);
  }
  [[nodiscard]] RAMIE_ALWAYS_INLINE T load_acquire() const noexcept {
    return __atomic_load_n(&value_, __ATOMIC_ACQUIRE);
  }
  RAMIE_ALWAYS_INLINE void store_relaxed(T value) noexcept {
    if constexpr (volatile_words) *const_cast<volatile T*>(&value_) = value;
    else __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
  }
  RAMIE_ALWAYS_INLINE void store_release(T value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  bool compare_exchange(T& expected, T value) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }

  /// store_release that orders earlier stores only: what the compiler knows about memory stays valid.
  /// (x86-64 keeps stores in order by itself; the assembly below claims to read any memory that others could reach, and
  /// writes none.)
  RAMIE_ALWAYS_INLINE void publish(T value) noexcept {
#if defined(__GNUC__) && !defined(__clang__)
    if constexpr (volatile_words) {
      struct all_memory {
        char bytes[1];
      };
      const all_memory* anywhere;
      asm("" : "=r"(anywhere));
      asm volatile("" : : "m"(*reinterpret_cast<const char(*)[0x7fff'ffff'ffff]>(anywhere)));
      store_relaxed(value);
      return;
    }
#endif
    store_release(value);
  }

 private:
  T value_;
};

/// Orders a volatile store before a later volatile load, for the compiler; ramie's heavy fences order them for the
/// processor (machine/fence.hpp).
RAMIE_ALWAYS_INLINE void order_words() noexcept {
  if constexpr (volatile_words) asm volatile("");
  else asm volatile("" ::: "memory");
}
#endif

}  // namespace ramie::detail
