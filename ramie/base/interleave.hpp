// What base/atomic.hpp names in builds for interleaving tests: the same operations, each of which first asks a
// simulated scheduler who goes on. Not part of a normal build; docs/design/interleaving.md says how it works. The
// simulator itself is in tests/interleave/.
//
// Outside of a simulation (before and after a run) all of this works as on a single thread.
#pragma once

#include <ramie/base/plant.hpp>

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace ramie::interleave {

enum class rmw : std::uint8_t { exchange, add, subtract, bit_and, bit_or };
enum class order : std::uint8_t { weak, sequential };

/// The simulator's hooks. `size`: 1, 2, 4 or 8 bytes. Each may let other simulated threads go first.
std::uint64_t load(const void* at, unsigned size) noexcept;
void store(void* at, unsigned size, std::uint64_t value, order o) noexcept;
std::uint64_t modify(void* at, unsigned size, rmw op, std::uint64_t operand) noexcept;
bool compare_exchange(void* at, unsigned size, std::uint64_t& expected, std::uint64_t desired, bool weak) noexcept;
/// An atomic begins or ends its life here. `at` holds a pattern afterwards that later uses are caught by.
void construct(void* at, unsigned size) noexcept;
void destroy(void* at, unsigned size) noexcept;

void full_fence() noexcept;
void heavy_fence() noexcept;  // membarrier(2): all threads' stores become visible
void pause() noexcept;
void yield() noexcept;
void sleep(std::int64_t duration_ns) noexcept;
std::int64_t now_ns() noexcept;
std::uint64_t cycles() noexcept;
void wait_on(const void* at, unsigned size, std::uint64_t expected, std::int64_t timeout_ns) noexcept;
void wake(const void* at, int how_many) noexcept;
/// Ends the run as failed, if one is under way; else returns.
void fail(const char* what, const char* file, int line) noexcept;

struct sim_thread;
sim_thread* start_thread(std::function<void()> body);
void join_thread(sim_thread* t) noexcept;
[[nodiscard]] pthread_t handle_of(sim_thread* t) noexcept;

}  // namespace ramie::interleave

namespace ramie::detail {

template <class T>
class atomic_ref {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  static constexpr unsigned size = sizeof(T);
  static std::uint64_t bits(T value) noexcept {
    std::uint64_t all = 0;
    __builtin_memcpy(&all, &value, sizeof(T));
    return all;
  }
  static T value(std::uint64_t all) noexcept {
    T out;
    __builtin_memcpy(&out, &all, sizeof(T));
    return out;
  }
  static interleave::order to_order(std::memory_order o) noexcept {
    return o == std::memory_order_seq_cst ? interleave::order::sequential : interleave::order::weak;
  }

 public:
  explicit atomic_ref(T& at) noexcept : at_{&at} {}

  [[gnu::always_inline]] T load(std::memory_order = std::memory_order_seq_cst) const noexcept {
    return value(interleave::load(at_, size));
  }
  [[gnu::always_inline]] void store(T v, std::memory_order o = std::memory_order_seq_cst) const noexcept {
    interleave::store(at_, size, bits(v), to_order(o));
  }
  [[gnu::always_inline]] T exchange(T v, std::memory_order = std::memory_order_seq_cst) const noexcept {
    return value(interleave::modify(at_, size, interleave::rmw::exchange, bits(v)));
  }
  [[gnu::always_inline]] T fetch_add(T v, std::memory_order = std::memory_order_seq_cst) const noexcept {
    return value(interleave::modify(at_, size, interleave::rmw::add, bits(v)));
  }
  [[gnu::always_inline]] T fetch_sub(T v, std::memory_order = std::memory_order_seq_cst) const noexcept {
    return value(interleave::modify(at_, size, interleave::rmw::subtract, bits(v)));
  }
  [[gnu::always_inline]] T fetch_and(T v, std::memory_order = std::memory_order_seq_cst) const noexcept {
    return value(interleave::modify(at_, size, interleave::rmw::bit_and, bits(v)));
  }
  [[gnu::always_inline]] T fetch_or(T v, std::memory_order = std::memory_order_seq_cst) const noexcept {
    return value(interleave::modify(at_, size, interleave::rmw::bit_or, bits(v)));
  }
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T desired, std::memory_order,
                                                      std::memory_order = {}) const noexcept {
    return swap_if(expected, desired, false);
  }
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T desired, std::memory_order,
                                                    std::memory_order = {}) const noexcept {
    return swap_if(expected, desired, true);
  }

 private:
  [[gnu::always_inline]] bool swap_if(T& expected, T desired, bool weak) const noexcept {
    std::uint64_t seen = bits(expected);
    const bool done = interleave::compare_exchange(at_, size, seen, bits(desired), weak);
    if (!done) expected = value(seen);
    return done;
  }
  T* at_;
};

template <class T>
class atomic {
  using ref = atomic_ref<T>;

 public:
  constexpr atomic() noexcept : atomic{T{}} {}
  constexpr atomic(T v) noexcept : value_{v} {
    if (!std::is_constant_evaluated()) {
      interleave::construct(&value_, sizeof(T));
      value_ = v;
    }
  }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  constexpr ~atomic() {
    if (!std::is_constant_evaluated()) interleave::destroy(&value_, sizeof(T));
  }

  [[gnu::always_inline]] T load(std::memory_order o = std::memory_order_seq_cst) const noexcept { return at().load(o); }
  [[gnu::always_inline]] void store(T v, std::memory_order o = std::memory_order_seq_cst) noexcept { at().store(v, o); }
  [[gnu::always_inline]] T exchange(T v, std::memory_order = {}) noexcept { return at().exchange(v); }
  [[gnu::always_inline]] T fetch_add(T v, std::memory_order = {}) noexcept { return at().fetch_add(v); }
  [[gnu::always_inline]] T fetch_sub(T v, std::memory_order = {}) noexcept { return at().fetch_sub(v); }
  [[gnu::always_inline]] T fetch_and(T v, std::memory_order = {}) noexcept { return at().fetch_and(v); }
  [[gnu::always_inline]] T fetch_or(T v, std::memory_order = {}) noexcept { return at().fetch_or(v); }
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T desired, std::memory_order = {},
                                                      std::memory_order = {}) noexcept {
    return at().compare_exchange_strong(expected, desired, {});
  }
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T desired, std::memory_order = {},
                                                    std::memory_order = {}) noexcept {
    return at().compare_exchange_weak(expected, desired, {});
  }

 private:
  [[gnu::always_inline]] ref at() const noexcept { return ref{const_cast<T&>(value_)}; }
  T value_;
};

class os_mutex {
 public:
  constexpr os_mutex() noexcept = default;
  void lock() noexcept {
    while (!try_lock()) interleave::wait_on(&held_, sizeof held_, 1, -1);
  }
  bool try_lock() noexcept { return interleave::modify(&held_, sizeof held_, interleave::rmw::exchange, 1) == 0; }
  void unlock() noexcept {
    interleave::modify(&held_, sizeof held_, interleave::rmw::exchange, 0);
    interleave::wake(&held_, 1 << 20);
  }

 private:
  std::uint32_t held_ = 0;
};

class os_condition {
 public:
  void notify_all() noexcept {
    interleave::modify(&turn_, sizeof turn_, interleave::rmw::add, 1);
    interleave::wake(&turn_, 1 << 20);
  }
  void notify_one() noexcept { notify_all(); }
  template <class Predicate>
  void wait(std::unique_lock<os_mutex>& lock, Predicate done) {
    while (!done()) wait_once(lock, -1);
  }
  template <class Duration, class Predicate>
  bool wait_for(std::unique_lock<os_mutex>& lock, Duration most, Predicate done) {
    const std::int64_t end = interleave::now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(most).count();
    while (!done()) {
      const std::int64_t left = end - interleave::now_ns();
      if (left <= 0) return done();
      wait_once(lock, left);
    }
    return true;
  }

 private:
  void wait_once(std::unique_lock<os_mutex>& lock, std::int64_t timeout_ns) {
    const std::uint64_t seen = interleave::load(&turn_, sizeof turn_);
    lock.unlock();
    interleave::wait_on(&turn_, sizeof turn_, seen, timeout_ns);
    lock.lock();
  }
  std::uint32_t turn_ = 0;
};

class os_thread {
 public:
  os_thread() noexcept = default;
  explicit os_thread(std::function<void()> body) : thread_{interleave::start_thread(std::move(body))} {}
  os_thread(os_thread&& other) noexcept : thread_{std::exchange(other.thread_, nullptr)} {}
  os_thread& operator=(os_thread&& other) noexcept {
    std::swap(thread_, other.thread_);
    return *this;
  }
  [[nodiscard]] bool joinable() const noexcept { return thread_ != nullptr; }
  void join() noexcept { interleave::join_thread(std::exchange(thread_, nullptr)); }
  void detach() noexcept { thread_ = nullptr; }
  [[nodiscard]] pthread_t native_handle() const noexcept { return interleave::handle_of(thread_); }

 private:
  interleave::sim_thread* thread_ = nullptr;
};

inline void os_yield() noexcept { interleave::yield(); }
inline void os_sleep(std::int64_t duration_ns) noexcept { interleave::sleep(duration_ns); }
inline std::chrono::steady_clock::time_point os_now() noexcept {
  return std::chrono::steady_clock::time_point{std::chrono::nanoseconds{interleave::now_ns()}};
}

}  // namespace ramie::detail

#define RAMIE_PLANT(name) (::ramie::interleave::planted == ::ramie::interleave::plant::name)
#define RAMIE_UNMONITORED (::ramie::interleave::unmonitored)
