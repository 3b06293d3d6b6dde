// What a style uses while it runs: its options, the runtime, and the clock.
#pragma once

#include <lab/harness/workload.hpp>
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace ramie::lab {

/// CPU time that all threads of this process have used so far.
double process_cpu_seconds();

/// Lives as long as the process measures, so that warm-up runs warm what later runs use. Not thread-safe.
class session {
 public:
  /// No runtime is started yet.
  session(parameter_values parameters, ramie::runtime_options options)
      : parameters_{std::move(parameters)}, options_{std::move(options)} {}

  /// The value of a declared parameter. Throws std::out_of_range for any other name.
  [[nodiscard]] std::int64_t parameter(std::string_view name) const;

  /// Starts the runtime on first use. Throws what ramie::runtime's constructor throws.
  ramie::runtime& runtime();
  [[nodiscard]] bool has_runtime() const noexcept { return runtime_ != nullptr; }

  /// The number of measuring workers: the runtime's if there is one, else this thread alone.
  [[nodiscard]] int workers() const;

  /// Runs `f` where the style requires, on this thread or as a fiber of the runtime, and returns how many seconds `f`
  /// itself took: the way to the runtime and back is not counted. Rethrows what `f` throws.
  template <class F>
  double time(F&& f) {
    if (!on_runtime_) return time_here(std::forward<F>(f));
    double seconds = 0;
    runtime().run([&] { seconds = time_here(std::forward<F>(f)); });
    return seconds;
  }

  /// How many cores this process kept busy during the last time(): its CPU time by real time. Tells whether "one
  /// worker" was one thread, and how much work several workers had. Nothing if time() was not called since begin().
  [[nodiscard]] std::optional<double> busy_cores() const noexcept { return busy_cores_; }

  /// From now on `of` is what runs. For the harness.
  void begin(const style& of) noexcept {
    on_runtime_ = of.on_runtime;
    busy_cores_.reset();
  }

 private:
  template <class F>
  double time_here(F&& f) {
    const double cpu_before = process_cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    std::forward<F>(f)();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds > 0) busy_cores_ = (process_cpu_seconds() - cpu_before) / seconds;
    return seconds;
  }

  parameter_values parameters_;
  ramie::runtime_options options_;
  bool on_runtime_ = false;
  std::optional<double> busy_cores_;
  std::unique_ptr<ramie::runtime> runtime_;
};

}  // namespace ramie::lab
