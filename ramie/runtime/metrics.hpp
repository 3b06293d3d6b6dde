// The statistics of a runtime as named metrics, for any output format.
#pragma once

#include <ramie/runtime/statistics.hpp>

#include <cstdint>
#include <vector>

namespace ramie {

/// One of the numbers in runtime_statistics, as a server of metrics shows it.
struct metric {
  enum class kind : std::uint8_t { counter, gauge, histogram };
  struct value {
    int worker;  // -1: of the whole runtime
    std::uint64_t number;
  };

  const char* name;
  const char* help;
  kind type;
  std::vector<value> values;              // of a counter or gauge
  const time_histogram* times = nullptr;  // of a histogram: one of those in the statistics
};

/// One bucket of a histogram, cumulative as in Prometheus.
struct metric_bucket {
  double bound_s;
  std::uint64_t below;  // how many took less time than that
};

/// All of `s`, always in the same order; histograms only if they have been recorded. The result refers to `s`.
/// Throws std::bad_alloc. Does not suspend; any thread.
[[nodiscard]] std::vector<metric> metrics_of(const runtime_statistics& s);

/// With the same bounds each time, 16 ns to 69 s. Throws std::bad_alloc. Does not suspend; any thread.
[[nodiscard]] std::vector<metric_bucket> buckets_of(const time_histogram& h);

}  // namespace ramie
