// What base/atomic.hpp names in builds for interleaving tests: the same operations, each of which first asks a
// simulated scheduler which thread continues. Not part of a normal build; docs/design/interleaving.md says how it
// works. The simulator itself is in tests/interleave/.
//
// Outside a simulation (before and after a run) all of this works as on a single thread.
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

/// The simulator's hooks. `size`: 1, 2, 4 or 8 bytes. Each may let other simulated threads run first.
std::uint64_t load(const void* at, unsigned size, std::memory_order o) noexcept;
void store(void* at, unsigned size, std::uint64_t value, std::memory_order o) noexcept;
std::uint64_t modify(void* at, unsigned size, rmw op, std::uint64_t operand, std::memory_order o) noexcept;
std::uint64_t system_modify(void* at, unsigned size, rmw op,
                            std::uint64_t operand) noexcept;  // by the system's mutexes
bool compare_exchange(void* at, unsigned size, std::uint64_t& expected, std::uint64_t desired, bool weak,
                      std::memory_order o, std::memory_order failed) noexcept;
/// An atomic begins or ends its life here. `at` then holds a pattern by which later uses are caught.
void construct(void* at, unsigned size) noexcept;
void destroy(void* at, unsigned size) noexcept;

void full_fence() noexcept;
void heavy_fence() noexcept;  // membarrier(2), a full fence of all threads; or of this one, as the run has it
void pause() noexcept;
void yield() noexcept;
void sleep(std::int64_t duration_ns) noexcept;
std::int64_t now_ns() noexcept;
std::uint64_t cycles() noexcept;
void wait_on(const void* at, unsigned size, std::uint64_t expected, std::int64_t timeout_ns) noexcept;
void wake(const void* at, int how_many) noexcept;
/// Ends the run as failed if one is under way; otherwise returns.
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
  using order = std::memory_order;
  using rmw = interleave::rmw;
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
  static constexpr order of_failure(order o) noexcept {
    return o == order::acq_rel ? order::acquire : o == order::release ? order::relaxed : o;
  }

 public:
  explicit atomic_ref(T& at) noexcept : at_{&at} {}

  [[gnu::always_inline]] T load(std::memory_order o = std::memory_order_seq_cst) const noexcept {
    return value(interleave::load(at_, size, o));
  }
  [[gnu::always_inline]] void store(T v, std::memory_order o = std::memory_order_seq_cst) const noexcept {
    interleave::store(at_, size, bits(v), o);
  }
  [[gnu::always_inline]] T exchange(T v, order o = order::seq_cst) const noexcept {
    return modify(rmw::exchange, v, o);
  }
  [[gnu::always_inline]] T fetch_add(T v, order o = order::seq_cst) const noexcept { return modify(rmw::add, v, o); }
  [[gnu::always_inline]] T fetch_sub(T v, order o = order::seq_cst) const noexcept {
    return modify(rmw::subtract, v, o);
  }
  [[gnu::always_inline]] T fetch_and(T v, order o = order::seq_cst) const noexcept {
    return modify(rmw::bit_and, v, o);
  }
  [[gnu::always_inline]] T fetch_or(T v, order o = order::seq_cst) const noexcept { return modify(rmw::bit_or, v, o); }
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T desired, order o = order::seq_cst) const noexcept {
    return compare_exchange_strong(expected, desired, o, of_failure(o));
  }
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T desired, order o, order failed) const noexcept {
    return swap_if(expected, desired, false, o, failed);
  }
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T desired, order o = order::seq_cst) const noexcept {
    return compare_exchange_weak(expected, desired, o, of_failure(o));
  }
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T desired, order o, order failed) const noexcept {
    return swap_if(expected, desired, true, o, failed);
  }

 private:
  [[gnu::always_inline]] T modify(rmw how, T v, order o) const noexcept {
    return value(interleave::modify(at_, size, how, bits(v), o));
  }
  [[gnu::always_inline]] bool swap_if(T& expected, T desired, bool weak, std::memory_order o,
                                      std::memory_order failed) const noexcept {
    std::uint64_t seen = bits(expected);
    const bool done = interleave::compare_exchange(at_, size, seen, bits(desired), weak, o, failed);
    if (!done) expected = value(seen);
    return done;
  }
  T* at_;
};

template <class T>
class atomic {
  using ref = atomic_ref<T>;
  using order = std::memory_order;

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
  [[gnu::always_inline]] T exchange(T v, order o = order::seq_cst) noexcept { return at().exchange(v, o); }
  [[gnu::always_inline]] T fetch_add(T v, order o = order::seq_cst) noexcept { return at().fetch_add(v, o); }
  [[gnu::always_inline]] T fetch_sub(T v, order o = order::seq_cst) noexcept { return at().fetch_sub(v, o); }
  [[gnu::always_inline]] T fetch_and(T v, order o = order::seq_cst) noexcept { return at().fetch_and(v, o); }
  [[gnu::always_inline]] T fetch_or(T v, order o = order::seq_cst) noexcept { return at().fetch_or(v, o); }
  template <class... Orders>
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T desired, Orders... o) noexcept {
    return at().compare_exchange_strong(expected, desired, o...);
  }
  template <class... Orders>
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T desired, Orders... o) noexcept {
    return at().compare_exchange_weak(expected, desired, o...);
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
  bool try_lock() noexcept { return change(1) == 0; }
  void unlock() noexcept {
    change(0);
    interleave::wake(&held_, 1 << 20);
  }

 private:
  std::uint64_t change(std::uint32_t to) noexcept {
    return interleave::system_modify(&held_, sizeof held_, interleave::rmw::exchange, to);
  }
  std::uint32_t held_ = 0;
};

class os_condition {
 public:
  void notify_all() noexcept {
    turn(1);
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
    const std::uint64_t seen = turn(0);
    lock.unlock();
    interleave::wait_on(&turn_, sizeof turn_, seen, timeout_ns);
    lock.lock();
  }
  std::uint64_t turn(std::uint32_t add) noexcept {
    return interleave::system_modify(&turn_, sizeof turn_, interleave::rmw::add, add);
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
