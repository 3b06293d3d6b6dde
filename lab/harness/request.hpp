// A request to measure, and its outcome: the two values that travel between the program and its measuring children.
#pragma once

#include <lab/harness/statistics.hpp>
#include <lab/harness/workload.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ramie::lab {

/// One measurement: one style of one workload on one number of workers.
struct request {
  std::string workload;
  std::string style;
  int workers = 0;  // 0: as many as the runtime picks
  std::string placement = "work_stealing";
  std::string stacks = "guarded";
  bool pin_threads = false;
  int runs = 5;
  int warmup = 1;
  int least_ms = 0;  // a measured run repeats the work until it has taken so long
  int pause_ms = 0;  // between repetitions, in which the workers find nothing to do
  bool yardstick = true;
  bool counters = false;
  parameter_values parameters = {};
};

/// The outcome of a request. Measured values are kept run by run; derived ones are computed when asked for.
struct record {
  std::string system = "ramie";
  request what = {};
  int workers = 0;  // the actual number
  std::string unit = {};
  std::int64_t units = 0;
  std::vector<double> seconds = {};        // of each run; of one repetition, where a run has several
  std::vector<std::int64_t> repeats = {};  // in each run
  std::vector<double> plain_seconds = {};  // of the yardstick just before each run; for the yardstick itself, the same
  std::int64_t plain_units = 0;
  std::vector<double> busy_cores = {};  // see session::busy_cores()
  std::vector<double> plain_busy_cores = {};
  std::map<std::string, std::vector<double>> figures = {};
  std::map<std::string, std::int64_t> counters = {};
  std::int64_t peak_rss_bytes = 0;
  std::int64_t base_rss_bytes = 0;  // before the first run and before the runtime
  bool ok = false;
  std::string error = {};  // why it is not ok, if more is known than a wrong result

  /// Nothing if no run completed.
  [[nodiscard]] std::optional<summary> ns_per_unit() const;
  [[nodiscard]] std::optional<double> plain_ns_per_unit() const;
  /// How many times the yardstick's time per unit, by paired runs.
  [[nodiscard]] std::optional<double> ratio_to_plain() const;
  /// The median of busy_cores.
  [[nodiscard]] std::optional<double> busy() const;
  /// As ratio_to_plain(), by the CPU time of all threads: how much more work it is. Not blurred by other programs.
  [[nodiscard]] std::optional<double> cpu_ratio_to_plain() const;
};

nlohmann::ordered_json json_of(const request& r);
request request_from_json(const nlohmann::ordered_json& j);

/// The object of one line of `--json`, see lab/README.md. `machine` becomes its last member.
nlohmann::ordered_json json_of(const record& r, const nlohmann::ordered_json& machine);
record record_from_json(const nlohmann::ordered_json& j);

/// One measurement made of several processes, each with a part of its runs. `parts` must not be empty.
record merge(const std::vector<record>& parts);

}  // namespace ramie::lab
