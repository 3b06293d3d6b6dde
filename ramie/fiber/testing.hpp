// For the tests of this floor: an event, objects that are counted, captured standard error.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/base/error.hpp>
#include <ramie/base/testing.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/task/wait.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ramie::fiber_tests {

using namespace std::chrono_literals;

inline constexpr bool sanitized = RAMIE_ASAN != 0 || RAMIE_TSAN != 0;
#if defined(__OPTIMIZE__)
inline constexpr bool optimized = !sanitized;
#else
inline constexpr bool optimized = false;
#endif

/// The number of repetitions, reduced under sanitizers, which are ten to fifty times as slow.
constexpr int scaled(int n) {
  const int divisor = RAMIE_TSAN != 0 ? 50 : RAMIE_ASAN != 0 ? 10 : optimized ? 1 : 3;
  return n / divisor > 1 ? n / divisor : 1;
}

/// Happens once; fibers and plain threads wait for it, parked. The floor above has a better one, which tests here
/// cannot use.
class event {
 public:
  void set() {
    std::vector<detail::waiter_ref> waiters;
    {
      std::lock_guard guard{lock_};
      is_set_ = true;
      waiters.swap(waiters_);
    }
    for (const detail::waiter_ref w : waiters) detail::wake(w);
  }

  void wait(detail::wait::kind kind = detail::wait::kind::cancellable) {
    while (!is_set()) {
      detail::wait pause{kind};
      {
        std::lock_guard guard{lock_};
        if (is_set_) {
          pause.withdraw();
          return;
        }
        waiters_.push_back(pause.ref());
      }
      ++parked_;
      const detail::wake_reason reason = pause.suspend();
      --parked_;
      if (reason == detail::wake_reason::cancelled) throw cancelled{};
    }
  }

  [[nodiscard]] bool is_set() const {
    std::lock_guard guard{lock_};
    return is_set_;
  }
  /// The number of waiters, including those about to wait.
  [[nodiscard]] int parked() const noexcept { return parked_.load(); }

 private:
  mutable std::mutex lock_;
  bool is_set_ = false;
  std::vector<detail::waiter_ref> waiters_;
  std::atomic<int> parked_{0};
};

/// Returns when `condition` holds, however long that takes. For fibers and plain threads; never cancelled.
template <class Condition>
void await(Condition condition) {
  for (unsigned n = 1; !condition(); ++n) {
    this_fiber::yield();
    if (n % 64 == 0) std::this_thread::yield();  // more workers than CPUs
  }
}

/// Counts its live copies, and records how it got its value.
struct counted {
  static inline std::atomic<int> alive{0}, copies{0}, moves{0};
  static void reset() { alive = copies = moves = 0; }

  int value = 0;
  explicit counted(int v = 0) : value{v} { ++alive; }
  counted(const counted& other) : value{other.value} {
    ++alive;
    ++copies;
  }
  counted(counted&& other) noexcept : value{std::exchange(other.value, -1)} {
    ++alive;
    ++moves;
  }
  counted& operator=(const counted&) = default;
  counted& operator=(counted&&) = default;
  ~counted() { --alive; }
};

/// Captures the process's standard error while it lives.
class captured_stderr {
 public:
  captured_stderr() { ::testing::internal::CaptureStderr(); }
  captured_stderr(const captured_stderr&) = delete;
  captured_stderr& operator=(const captured_stderr&) = delete;
  ~captured_stderr() {
    if (!taken_) static_cast<void>(text());
  }
  [[nodiscard]] std::string text() {
    taken_ = true;
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  bool taken_ = false;
};

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline int occurrences(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// The message of the exception that `f` throws, which must be an `Expected`.
template <class Expected, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Expected& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// The cases of a fixture made from this run with 1, 2 and 8 workers.
class with_workers : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static runtime_options options() {
    runtime_options o;
    o.workers = GetParam();
    return o;
  }
  /// Runs `f` in a fiber of a new runtime.
  template <class F>
  static auto in_runtime(F&& f) {
    runtime rt{options()};
    return rt.run(std::forward<F>(f));
  }
};

inline auto few_and_many() { return ::testing::Values(1, 2, 8); }

}  // namespace ramie::fiber_tests
