// For the tests of this floor: fibers without the floor that makes them comfortable, counts, and runs of the test
// itself with another environment.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/base/error.hpp>
#include <ramie/base/testing.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/task_memory.hpp>
#include <ramie/task/wait.hpp>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::detail::testing {

inline constexpr bool sanitized = RAMIE_ASAN != 0 || RAMIE_TSAN != 0;
#if defined(__OPTIMIZE__)
inline constexpr bool optimized = !sanitized;
#else
inline constexpr bool optimized = false;
#endif

/// How often to do what is only worth doing often: the sanitizers are ten to fifty times as slow.
constexpr int scaled(int n) noexcept {
  const int divisor = RAMIE_TSAN != 0 ? 50 : RAMIE_ASAN != 0 ? 10 : optimized ? 1 : 4;
  return n / divisor > 1 ? n / divisor : 1;
}

/// Returns when `condition` holds, however long that takes. For plain threads, and fibers that are to hold their worker
/// up.
template <class Condition>
void hold_until(Condition condition) {
  for (int round = 0; !condition(); ++round) {
    if (round < 100) spin_pause();
    else ::sched_yield();
  }
}

/// A task that runs `f` and goes away; `f` may end by `cancelled`, and by no other exception. `skipped`, if there is
/// one, counts those that never ran.
template <class F>
struct closure_task : task {
  F f;
  std::atomic<int>* skipped;

  closure_task(F function, std::atomic<int>* count) : f{std::move(function)}, skipped{count} {
    type = &how;
    completion.store(detached, std::memory_order_relaxed);
    list = task_cache::list_of(sizeof(closure_task));
  }
  static void run(task& t) noexcept {
    auto& self = static_cast<closure_task&>(t);
    try {
      self.f();
    } catch (const cancelled&) {
    }
    self.f.~F();
  }
  static void skip(task& t, std::exception_ptr) noexcept {
    auto& self = static_cast<closure_task&>(t);
    if (self.skipped != nullptr) self.skipped->fetch_add(1);
    self.f.~F();
  }
  static void drop(task&) noexcept {}
  static constexpr task_type how{&run, &skip, &drop};
};

template <class F>
task* make_task(F f, std::atomic<int>* skipped = nullptr) {
  using made = closure_task<F>;
  static_assert(alignof(made) <= task_alignment);
  constexpr std::uint8_t list = task_cache::list_of(sizeof(made));
  void* memory = list == task_cache::no_list ? ::operator new(sizeof(made), std::align_val_t{task_alignment_most})
                                             : allocate_task(list);
  return new (memory) made(std::move(f), skipped);
}

/// Hands `f` to the scheduler as a detached fiber. Any thread.
template <class F>
void start(scheduler& s, F f, std::atomic<int>* skipped = nullptr) {
  s.submit(make_task(std::move(f), skipped));
}

/// From within a fiber: another one on the same scheduler.
template <class F>
void start_here(F f) {
  start(*worker::current()->owner, std::move(f));
}

/// Runs `f` as a fiber and blocks the calling plain thread until it has returned.
template <class F>
void run_on(scheduler& s, F f) {
  std::atomic<bool> done{false};
  start(s, [&] {
    f();
    done.store(true, std::memory_order_release);
    done.notify_one();
  });
  done.wait(false, std::memory_order_acquire);
}

/// Returns when no task is left. One that has run its function is counted until its worker has seen to it.
inline void wait_until_empty(scheduler& s) {
  hold_until([&] { return s.live() == 0; });
}

/// Threads of this process, the sanitizers' included.
inline std::size_t threads_of_process() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator{"/proc/self/task"}) ++n;
  return n;
}

/// Counts down to zero; fibers and plain threads wait for that, parked.
class countdown {
 public:
  explicit countdown(std::size_t n) noexcept : left_{n} {}
  void down() noexcept {
    // The waiter may go away as soon as it sees zero: nothing of this is touched after the wake-up was sent.
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::uint64_t waiting = waiter_.exchange(over, std::memory_order_acq_rel);
    if (waiting != 0) wake(waiter_ref::from_bits(waiting));
  }
  void await() {
    detail::wait pause{detail::wait::kind::uninterruptible};
    std::uint64_t nobody = 0;
    if (waiter_.compare_exchange_strong(nobody, pause.ref().bits(), std::memory_order_acq_rel)) pause.suspend();
    else pause.withdraw();
  }

 private:
  static constexpr std::uint64_t over = 1;
  std::atomic<std::size_t> left_;
  std::atomic<std::uint64_t> waiter_{0};
};

/// Lets other fibers run, even if there is none: by way of a fresh loop, as after any other suspension.
inline void yield_always() { suspend_out_of_line(current_worker(), after_switch::make_ready); }

/// Suspends, cancellably, until the time has come.
inline void sleep_for(std::chrono::nanoseconds time) {
  detail::wait pause{detail::wait::kind::cancellable};
  if (pause.suspend_until(steady::now() + time) == wake_reason::cancelled) throw cancelled{};
}

/// f and g, g on offer to other workers meanwhile. What the floor above makes of the fork deque, without results and
/// exceptions.
template <class F, class G>
void fork_two(F&& f, G&& g) {
  struct job : fork_frame {
    std::remove_reference_t<G>* function;
  } offered;
  offered.function = &g;
  fork_deque* d = current_forks();
  fork_slot* slot = d == nullptr
                        ? fork_nowhere(offered)
                        : fork_push(*d, offered, [](fork_frame& it) noexcept { (*static_cast<job&>(it).function)(); });
  f();
  if (fork_take_back(offered, slot)) g();
  else wait_for_thief(offered);
}

/// Runs this test program with one more variable in its environment and some of its cases. Returns its exit status, 127
/// if it cannot be started: an emulator's guest is nothing that the kernel knows.
inline int run_self(const std::string& variable, const std::string& value, const std::string& filter) {
  // The environment is copied before the fork: between fork and exec there is no memory to be had safely.
  std::vector<std::string> kept;
  for (char** v = environ; *v != nullptr; ++v)
    if (std::string{*v}.rfind(variable + "=", 0) != 0) kept.emplace_back(*v);
  kept.push_back(variable + "=" + value);
  std::vector<char*> environment;
  for (std::string& v : kept) environment.push_back(v.data());
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string choice = "--gtest_filter=" + filter;
  char* const arguments[] = {program.data(), choice.data(), nullptr};
  const pid_t child = ::fork();
  if (child == 0) {
    ::execve(program.c_str(), arguments, environment.data());
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline runtime_options with_workers(int workers) { return {.workers = workers}; }

/// Runs `f` as a fiber of a scheduler of its own, and returns when both have ended.
template <class F>
void on_two_workers(F f) {
  scheduler s{with_workers(2)};
  run_on(s, f);
  s.stop();
}

/// Workers without threads, for tests of what a scheduler is made of.
struct idle_crew {
  explicit idle_crew(const runtime_options& options) : all{options} {
    init_fences();
    for (std::uint32_t i = 0; i < all.regular; ++i) {
      owned.push_back(std::make_unique<worker>(
          nullptr, worker_facts{i, stack_class_of(all.options.stack_size, guard_kind::automatic), all.most(),
                                all.near_first, all.regular == 1}));
      owned.back()->on_duty.store(true);
      all.workers.add(*owned.back());
    }
  }
  explicit idle_crew(int workers) : idle_crew{with_workers(workers)} {}
  worker& operator[](std::size_t i) const { return *owned[i]; }

  crew all;
  std::vector<std::unique_ptr<worker>> owned;
};

/// Tasks that are never run, to be put somewhere.
class idle_tasks {
 public:
  explicit idle_tasks(std::size_t n) : all_{new task[n]{}} {
    for (std::size_t i = 0; i < n; ++i) all_[i].type = &how_;
  }
  task& operator[](std::size_t i) const { return all_[i]; }

 private:
  static constexpr task_type how_{nullptr, nullptr, nullptr};
  std::unique_ptr<task[]> all_;
};

}  // namespace ramie::detail::testing
