// Something that is done once, by the first caller, as std::call_once.
//
//  O1 The number: not done, under way, done. The caller that finds "not done" makes it "under way" and calls the
//     function, with the lock free.
//  O2 Callers that find "under way" wait.
//  O3 When the function has returned, the number becomes "done" and all waiters are woken. If it threw, the number
//     becomes "not done", and they are woken too: the first to run is the next to try.
// The rest as in wait_queue.hpp.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <functional>
#include <utility>

namespace ramie {

class once_flag;
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args);

/// Whether it has been done. Fibers and plain threads may use the same one.
class once_flag {
 public:
  constexpr once_flag() noexcept = default;
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;

 private:
  template <class F, class... Args>
  friend void call_once(once_flag& flag, F&& f, Args&&... args);

  static constexpr std::uint64_t not_done = 0, under_way = 1, done = 2;

  [[nodiscard]] bool is_done() const noexcept { return queue_.is(done); }
  /// True if the caller is to do it. Suspends while another caller does. Throws usage_error if the caller itself does.
  bool begin();
  void end(bool success) noexcept;

  detail::wait_queue queue_;
  detail::atomic<const void*> by_{nullptr};  // the caller that does it (identity.hpp)
};

/// Calls f(args...) unless an earlier call through `flag` has succeeded; waits for a call in progress (suspends). What
/// f throws is thrown to its caller, and the next one tries again. f may suspend. Throws usage_error if f calls
/// call_once with the same flag, which would wait for itself; `cancelled` if the fiber is asked to stop while it waits.
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  if (flag.is_done()) [[likely]]
    return;
  if (!flag.begin()) return;
  struct attempt {
    once_flag& flag;
    bool success = false;
    ~attempt() { flag.end(success); }
  } now{flag};
  std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
  now.success = true;
}

}  // namespace ramie
