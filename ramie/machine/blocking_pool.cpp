#include <ramie/machine/blocking_pool.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/machine/peek.hpp>

#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace ramie::detail {

blocking_pool::~blocking_pool() {
  std::unique_lock guard{lock_};
  ending_ = true;
  change_.notify_all();
  change_.wait(guard, [this] { return threads_ == 0; });
  guard.unlock();
  join(ended_);
}

void blocking_pool::join(os_thread* ended) noexcept {
  if (ended == nullptr) return;
  ended->join();
  delete ended;
}

void blocking_pool::submit(blocking_call& call) {
  std::unique_lock guard{lock_};
  if (idle_ <= waiting_calls_ && threads_ < threads_most_) {
    try {
      auto fresh = std::make_unique<os_thread>();
      *fresh = os_thread{[this, me = fresh.get()] { thread_main(*me); }};
      static_cast<void>(fresh.release());  // NOLINT(bugprone-unused-return-value): its joiner deletes it
      ++threads_;
    } catch (const std::system_error& e) {
      if (threads_ == 0)
        throw resource_error{"ramie: blocking: cannot start a helper thread: " + e.code().message() +
                                 " (limits: RLIMIT_NPROC, kernel.threads-max, the cgroup's pids.max)",
                             e.code().value()};
      // The existing threads will run it.
    }
  }
  call.next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = &call;
  last_ = &call;
  ++waiting_calls_;
  guard.unlock();
  change_.notify_one();
}

bool blocking_pool::withdraw(blocking_call& call) noexcept {
  const std::lock_guard guard{lock_};
  blocking_call* before = nullptr;
  blocking_call* at = first_;
  for (; at != nullptr && at != &call; at = at->next) before = at;
  if (at == nullptr) return false;
  (before == nullptr ? first_ : before->next) = call.next;
  if (last_ == &call) last_ = before;
  --waiting_calls_;
  return true;
}

blocking_pool::load blocking_pool::about() const noexcept {
  const std::size_t threads = peek(threads_), idle = peek(idle_);
  return {peek(waiting_calls_), threads > idle ? threads - idle : 0};
}

std::size_t blocking_pool::threads_if_idle() noexcept {
  const std::lock_guard guard{lock_};
  return waiting_calls_ == 0 && idle_ == threads_ ? threads_ : busy;
}

void blocking_pool::thread_main(os_thread& me) noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "%.10s/blk", name_.c_str());
  ::pthread_setname_np(::pthread_self(), name);
  std::unique_lock guard{lock_};
  for (;;) {
    if (first_ == nullptr && !ending_) {
      ++idle_;
      const bool call_came =
          change_.wait_for(guard, std::chrono::seconds{10}, [this] { return first_ != nullptr || ending_; });
      --idle_;
      if (!call_came) break;
    }
    if (first_ == nullptr) break;
    blocking_call* call = first_;
    first_ = call->next;
    --waiting_calls_;
    guard.unlock();
    call->run(*call);
    guard.lock();
  }
  --threads_;
  os_thread* before = std::exchange(ended_, &me);
  change_.notify_all();
  guard.unlock();
  join(before);
}

}  // namespace ramie::detail
