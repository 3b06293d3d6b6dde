// The counts and measurements of a runtime.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ramie {

/// The counts of a runtime since its start, over all workers. Each worker's part was read at a slightly different
/// moment: not a snapshot, but no number ever decreases.
struct runtime_counters {
  std::uint64_t dispatches = 0;       // tasks, jobs and fibers that a worker took up
  std::uint64_t spawned = 0;          // fibers and actors
  std::uint64_t ended = 0;            // fibers and actors
  std::uint64_t steals_tried = 0;     // looks into another worker's queue that was not empty
  std::uint64_t steals = 0;           // those that got something
  std::uint64_t wakes = 0;            // fibers and actors that a worker made ready to run on itself
  std::uint64_t wakes_elsewhere = 0;  // those that it sent to another worker instead
  std::uint64_t migrations = 0;       // woken, or stolen while ready, away from the worker that ran them last
  std::uint64_t sleeps = 0;           // times a worker went to sleep, or tried to
  std::uint64_t injected = 0;         // fibers and actors taken from the injection queue, where other threads put them
  std::uint64_t time_slices = 0;      // turns that actors ended after 64 messages, to let others run
  std::uint64_t io_waits = 0;         // times a fiber waited for a descriptor (ramie::net)
  std::uint64_t bytes_read = 0;  // by fibers, from sockets, pipes and files; a message that was cut short counts whole
  std::uint64_t bytes_written = 0;  // by fibers, to sockets, pipes and files
  std::uint64_t threads = 0;        // present workers and spare workers
};

/// Durations, by powers of two.
struct time_histogram {
  static constexpr std::size_t buckets = 48;
  std::array<std::uint64_t, buckets> counts{};  // [i]: 2^i ns or more, and less than bound_ns(i); [0]: from 0 on
  std::uint64_t sum_ns = 0;

  [[nodiscard]] static std::uint64_t bound_ns(std::size_t i) noexcept { return std::uint64_t{2} << i; }
  [[nodiscard]] std::uint64_t count() const noexcept;
  /// An upper bound for the share `q` (0 to 1) of all; 0 if there are none.
  [[nodiscard]] std::uint64_t quantile_ns(double q) const noexcept;
};

/// One worker, at the time of the call.
struct worker_statistics {
  int number = 0;            // constant for the runtime's life; spares come after the others
  runtime_counters counted;  // this worker's; `threads` is 1
  std::size_t ready = 0;     // fibers and actors in its queue that are ready again
  std::size_t fresh = 0;     // spawned there and not started
  bool sleeps = false;
  bool spare = false;
};

/// All that runtime::statistics returns: the sums, each worker, and histograms if they are recorded.
struct runtime_statistics {
  std::string name;
  runtime_counters counted;
  std::uint64_t live = 0;              // fibers and actors that were spawned and have not ended
  std::size_t injected = 0;            // woken or spawned by other threads and not yet taken up
  std::size_t blocking_under_way = 0;  // ramie::blocking
  std::size_t blocking_waiting = 0;
  std::uint64_t io_polls = 0;              // how often the kernel was asked for events (ramie::net)
  std::uint64_t io_events = 0;             // what it told
  std::uint64_t io_descriptors = 0;        // open now, and waited for at least once
  std::vector<worker_statistics> workers;  // on duty
  // Empty unless recorded, see recording_options::histograms.
  time_histogram run;   // of a fiber's turns, from one switch to the next
  time_histogram wait;  // from being spawned or woken to running
};

/// What runtime::record records.
struct recording_options {
  bool trace = true;
  /// Kept of each worker, 112 bytes each; older ones are overwritten.
  std::size_t events = 32 * 1024;
  /// Also records fibers that run to their end without waiting; otherwise they are counted.
  bool every_fiber = false;
  bool histograms = false;
};

/// The statistics in the text format that Prometheus reads: serve it under /metrics. Throws std::bad_alloc.
[[nodiscard]] std::string to_prometheus(const runtime_statistics& s);
/// Of several runtimes, which the label `runtime` tells apart: give them names that differ.
[[nodiscard]] std::string to_prometheus(std::span<const runtime_statistics> all);

}  // namespace ramie
