// Starting and stopping workers.
#pragma once

#include <ramie/fiber/spawn.hpp>
#include <ramie/runtime/statistics.hpp>
#include <ramie/sched/options.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
class scheduler;
}

/// A set of worker threads and the fibers they run. Several may live in a process, one after another or at once.
class runtime {
 public:
  /// Starts the workers. Throws invalid_argument, naming the option, its value and range; resource_error if threads or
  /// memory are refused, naming the limit. Any thread.
  explicit runtime(const runtime_options& options = {});
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;
  /// Same as `shutdown`.
  ~runtime();

  /// Starts a fiber here, as ramie::spawn does; any thread, and fibers of any runtime. Does not suspend. Throws
  /// usage_error if the runtime is shutting down (in one of its own fibers: `cancelled`), std::bad_alloc.
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

  /// Runs f(args...) as a fiber here and waits for it: returns its result, or rethrows its exception. Blocks a plain
  /// thread, suspends a fiber of any runtime. Throws also what `spawn` and join_handle::join throw.
  template <class F, class... Args>
  auto run(F&& f, Args&&... args) {
    return spawn(fiber_options{.name = "main"}, std::forward<F>(f), std::forward<Args>(args)...).join();
  }

  /// Stops accepting fibers, cancels the existing ones (those not yet started do not start), waits until all have
  /// ended, and ends the threads. A fiber that neither suspends nor ends is waited for. A fiber that hears of it sees
  /// what the caller wrote before. Idempotent; a concurrent call waits for the first. Blocks; any plain thread, or a
  /// fiber of another runtime. Throws usage_error from one of its own fibers.
  void shutdown();

  /// The number of workers, without spare workers.
  [[nodiscard]] int workers() const noexcept;
  [[nodiscard]] const runtime_options& options() const noexcept;  // with defaults resolved

  /// The sums over all workers. Any thread; costs the workers nothing.
  [[nodiscard]] runtime_counters counters() const noexcept;
  /// The same, worker by worker, with the lengths of queues now, and histograms if they are recorded. Any thread; costs
  /// the workers nothing. Throws std::bad_alloc.
  [[nodiscard]] runtime_statistics statistics() const;

  /// Starts to record what the workers do. False if a recording is under way. Throws std::bad_alloc. Any thread. Its
  /// cost is in docs/debugging.md. The memory of a recording is kept until the runtime ends.
  bool record(const recording_options& options = {});
  /// Ends the recording. Any thread.
  void stop_recording() noexcept;
  /// The last recording's trace, for ui.perfetto.dev or chrome://tracing (JSON). With RAMIE_TRACE=FILE in the
  /// environment each runtime records from its start, and writes the file (FILE, FILE.2, ...) at its end. Before
  /// shutdown. Any thread. Throws std::bad_alloc.
  [[nodiscard]] std::string trace() const;

  /// Internal.
  [[nodiscard]] detail::scheduler& internals() noexcept { return *scheduler_; }

 private:
  void submit(detail::task* t);
  void begin_shutdown() noexcept;
  std::unique_ptr<detail::scheduler> scheduler_;
};

/// For tools that show what runs in a process: they are told of each runtime, on the thread that makes or ends it.
/// `begins`: when its workers have begun; what it throws, the constructor of the runtime throws. `ends`: before its
/// fibers are cancelled, perhaps more than once; afterwards it is not to be used.
struct runtime_watch {
  void (*begins)(runtime&);
  void (*ends)(runtime&) noexcept;
};
/// From now on that one is told; the one from before no more, and null ends it. It has to stay. Any thread.
void watch_runtimes(const runtime_watch* by) noexcept;

/// Creates a runtime, runs f in it as a fiber, then shuts the runtime down: fibers that are still alive are cancelled.
/// Returns f's result if that is convertible to int, otherwise 0: fit for `return` in main. Rethrows f's exception;
/// throws what the constructor of runtime throws. Blocks; for plain threads.
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
