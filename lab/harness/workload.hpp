// A workload as the harness sees it: a table of styles and whole-number options, and functions that run once and report
// the result.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ramie {
struct runtime_options;
}

namespace ramie::lab {

class session;

/// A whole-number option of a workload, `--name` on the command line.
struct parameter {
  std::string name;
  std::string help;
  std::int64_t standard;  // its value when not given
  std::int64_t min;
  std::int64_t max;
  /// Null, or returns what is wrong with a value in the range ("must be a power of ten"); empty if nothing is.
  std::string (*objection)(std::int64_t value) = nullptr;
  /// Off by default; naming it turns it on.
  [[nodiscard]] bool is_switch() const { return standard == 0 && min == 0 && max == 1; }
};

using parameter_values = std::map<std::string, std::int64_t, std::less<>>;

/// A result of a run other than time. Units come last in the name: `resident_bytes_per_fiber`.
struct figure {
  std::string name;
  double value;
};

struct run_result {
  double seconds;      // of the workload alone
  std::int64_t units;  // what was counted, see workload::unit
  bool ok;             // the result was checked and is right
  std::vector<figure> figures = {};
};

/// One way to write a workload.
struct style {
  std::string name;
  std::string summary;
  bool on_runtime;  // false: plain code on a plain thread, where the number of workers has no meaning
  /// Runs once. An exception is reported as a wrong result.
  run_result (*run)(session& s);
  /// If not null: changes the runtime's options, for a style that does not measure the standard ones.
  void (*adjust)(ramie::runtime_options& options) = nullptr;
};

struct workload {
  std::string name;
  std::string summary;
  std::string unit;  // what is counted, in the singular
  std::vector<parameter> parameters;
  std::vector<style> styles;
  /// The style that alternates with every other one, so that both see the same machine; empty: none.
  std::string yardstick = "plain";
  int standard_runs = 5;
  int standard_warmup = 1;
  std::string standard_workers = "all";
  /// Every run needs a process of its own, because an earlier one would leave warm memory behind.
  bool fresh_process_each_run = false;
  bool hidden = false;  // not for users: not in lists and help

  /// Null if there is none of that name.
  [[nodiscard]] const style* find_style(std::string_view style_name) const;
};

}  // namespace ramie::lab
