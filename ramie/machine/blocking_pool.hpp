// Threads that make blocking calls on behalf of fibers, so that no worker is blocked.
#pragma once

#include <ramie/base/atomic.hpp>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

namespace ramie::detail {

/// One call. Lives on the stack of the fiber that waits for it.
struct blocking_call {
  void (*run)(blocking_call& self) noexcept;  // calls, keeps result or exception, wakes the fiber: the last touch
  blocking_call* next = nullptr;
};

/// Starts threads as calls come in, up to a limit; further calls queue, first in first out. A thread that finds no call
/// for ten seconds ends.
class blocking_pool {
 public:
  blocking_pool(std::size_t threads_most, std::string name) : threads_most_{threads_most}, name_{std::move(name)} {}
  /// No calls may be under way. When it returns, all threads have exited: the thread_local variables of what they
  /// called are destroyed.
  ~blocking_pool();
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;

  /// Throws resource_error if there is no thread at all and none can be started; the call was then not taken. Any
  /// thread.
  void submit(blocking_call& call);
  /// Takes back a call that no thread has begun. False: one has. Any thread.
  bool withdraw(blocking_call& call) noexcept;

  /// How many threads there are, or `busy` if a call waits or is under way. Any thread.
  [[nodiscard]] std::size_t threads_if_idle() noexcept;
  /// Approximate numbers of calls that wait for a thread and of threads that make one. Any thread; async-signal-safe.
  struct load {
    std::size_t waiting, under_way;
  };
  [[nodiscard]] load about() const noexcept;
  static constexpr std::size_t busy = ~std::size_t{0};

 private:
  void thread_main(os_thread& me) noexcept;
  static void join(os_thread* ended) noexcept;

  const std::size_t threads_most_;
  const std::string name_;
  os_mutex lock_;
  os_condition change_;
  blocking_call* first_ = nullptr;
  blocking_call* last_ = nullptr;
  std::size_t waiting_calls_ = 0;
  std::size_t idle_ = 0;
  std::size_t threads_ = 0;
  os_thread* ended_ = nullptr;  // the thread that ended last; it has joined the one before it, and so on
  bool ending_ = false;
};

}  // namespace ramie::detail
