// Workers, started and stopped.
#pragma once

#include <ramie/fiber/spawn.hpp>
#include <ramie/sched/options.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
class scheduler;
}

/// What a runtime has counted since its start, over all workers. Each number is one worker's count or another's a
/// moment ago: not a snapshot, but none ever goes back.
struct runtime_counters {
  std::uint64_t dispatches;       // tasks, jobs and fibers that a worker took up
  std::uint64_t spawned;          // fibers
  std::uint64_t ended;            // fibers
  std::uint64_t steals_tried;     // looks into another worker's queue that had something
  std::uint64_t steals;           // those that brought something
  std::uint64_t wakes;            // fibers and actors that a worker made ready to run there
  std::uint64_t wakes_elsewhere;  // those that it sent to another worker instead
  std::uint64_t migrations;       // woken, or stolen while ready, away from the worker that ran them last
  std::uint64_t sleeps;           // times a worker found nothing to do and went to sleep, or was about to
  std::uint64_t threads;          // workers and spare workers there are now
};

/// A set of worker threads and the fibers they run. Several may live in a process, one after another or at once.
class runtime {
 public:
  /// Starts the workers. Throws invalid_argument, naming the option, its value and range; resource_error if threads or
  /// memory are refused, naming the limit. Any thread.
  explicit runtime(const runtime_options& options = {});
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;
  /// As `shutdown`.
  ~runtime();

  /// Starts a fiber here, see ramie::spawn. Any thread, any runtime's fibers.
  template <class F, class... Args>
    requires(!std::same_as<std::decay_t<F>, fiber_options>)
  auto spawn(F&& f, Args&&... args) {
    return detail::submit_made(detail::make_task(std::forward<F>(f), std::forward<Args>(args)...), nullptr,
                               [this](detail::task* t) { submit(t); });
  }
  template <class F, class... Args>
  auto spawn(const fiber_options& options, F&& f, Args&&... args) {
    return detail::submit_made(detail::make_task(std::forward<F>(f), std::forward<Args>(args)...), &options,
                               [this](detail::task* t) { detail::submit_with_options(t, internals()); });
  }

  /// Runs f(args...) as a fiber here and waits for it: its result, or what it threw.
  template <class F, class... Args>
  auto run(F&& f, Args&&... args) {
    return spawn(fiber_options{.name = "main"}, std::forward<F>(f), std::forward<Args>(args)...).join();
  }

  /// Stops accepting fibers, cancels those that are there (fibers not yet started do not start), waits until all have
  /// ended, and ends the threads. A fiber that neither suspends nor ends is waited for. Once; later calls return at
  /// once. Blocks; any plain thread, or a fiber of another runtime. Throws usage_error from one of its own fibers.
  void shutdown();

  [[nodiscard]] int workers() const noexcept;
  [[nodiscard]] const runtime_options& options() const noexcept;  // as completed from environment and machine

  /// Any thread; costs the workers nothing.
  [[nodiscard]] runtime_counters counters() const noexcept;

  /// For ramie's own floors.
  [[nodiscard]] detail::scheduler& internals() noexcept { return *scheduler_; }

 private:
  void submit(detail::task* t);
  std::unique_ptr<detail::scheduler> scheduler_;
};

/// Runs f as a fiber on a runtime of its own, which ends with it: fibers still alive are cancelled then. Returns what f
/// returns if that is convertible to int, else 0: fit for `return` in main. Rethrows what leaves f.
template <class F>
int run(const runtime_options& options, F&& f) {
  runtime rt{options};
  if constexpr (std::is_convertible_v<std::invoke_result_t<std::decay_t<F>>, int>) {
    return rt.run(std::forward<F>(f));
  } else {
    rt.run(std::forward<F>(f));
    return 0;
  }
}

template <class F>
int run(F&& f) {
  return run(runtime_options{}, std::forward<F>(f));
}

}  // namespace ramie
