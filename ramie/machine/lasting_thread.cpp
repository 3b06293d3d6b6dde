// A call writes itself into the desk under the lock, if no other is there, and waits until the thread has taken it out
// and done it. In a child of fork(2) the desk, and its lock, are as they were at that moment, with nobody behind them:
// so they are forgotten there.
#include <ramie/machine/lasting_thread.hpp>

#include <ramie/base/error.hpp>
#include <ramie/machine/signal_mask.hpp>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace ramie::detail {

namespace {

struct call {
  void (*f)(void* context);
  void* context;
  bool done = false;
};

struct desk {
  std::mutex lock;
  std::condition_variable changed;
  call* next = nullptr;  // lock
  bool over = false;     // lock: another desk was first

  void serve() {
    std::unique_lock guard{lock};
    for (;;) {
      changed.wait(guard, [this] { return next != nullptr || over; });
      if (over) return;
      call& one = *next;
      guard.unlock();
      one.f(one.context);
      guard.lock();
      one.done = true;
      next = nullptr;
      changed.notify_all();
    }
  }
  void make(call& one) {
    std::unique_lock guard{lock};
    changed.wait(guard, [this] { return next == nullptr; });
    next = &one;
    changed.notify_all();
    changed.wait(guard, [&one] { return one.done; });
  }
};

constexpr std::size_t duties = 2;
constinit std::array<std::atomic<desk*>, duties> desks{};

void start(std::shared_ptr<desk> own) {
  sigset_t before;
  block_signals(before);
  struct put_back {
    const sigset_t& mask;
    ~put_back() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const afterwards{before};
  std::thread{[d = std::move(own)] {
    ::pthread_setname_np(::pthread_self(), "ramie/last");
    cpu_set_t processors;
    if (::sched_getaffinity(::getpid(), sizeof processors, &processors) == 0)
      ::sched_setaffinity(0, sizeof processors, &processors);  // not those of the worker that started it
    d->serve();
  }}.detach();
}

void forget_desks() noexcept {
  for (auto& one : desks) one.store(nullptr, std::memory_order_relaxed);
}

desk& desk_of(duty d) {
  std::atomic<desk*>& latest = desks[static_cast<std::size_t>(d)];
  for (desk* there = latest.load(std::memory_order_acquire);;) {
    if (there != nullptr) return *there;
    static const int forgets = ::pthread_atfork(nullptr, nullptr, &forget_desks);
    if (forgets != 0)
      throw resource_error{"ramie: pthread_atfork failed: " + std::generic_category().message(forgets), forgets};
    // The thread's reference outlives the process, or ends with the thread, if another one was first.
    const auto fresh = std::make_shared<desk>();
    try {
      start(fresh);
    } catch (const std::system_error& e) {
      throw resource_error{
          "ramie: cannot start a thread that starts children, or takes signals: " + e.code().message() +
              " (limits: RLIMIT_NPROC, kernel.threads-max, the cgroup's pids.max)",
          e.code().value()};
    }
    if (latest.compare_exchange_strong(there, fresh.get(), std::memory_order_acq_rel, std::memory_order_acquire))
      return *fresh;
    const std::lock_guard guard{fresh->lock};
    fresh->over = true;
    fresh->changed.notify_all();
  }
}

}  // namespace

std::size_t lasting_threads() noexcept {
  std::size_t n = 0;
  for (const auto& one : desks) n += one.load(std::memory_order_acquire) != nullptr ? 1 : 0;
  return n;
}

void on_lasting_thread(duty d, void (*f)(void* context), void* context) {
  call one{f, context};
  desk_of(d).make(one);
}

}  // namespace ramie::detail
