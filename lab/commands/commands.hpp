// The commands of `ramie-lab`. Each returns the exit code, and throws usage_error or lab_error if it fails.
#pragma once

#include <lab/harness/options.hpp>
#include <lab/harness/workload.hpp>

#include <string>

namespace ramie::lab {

/// Measures one workload as `typed` says and prints the records.
int run_workload(const workload& w, const typed_options& typed);

/// Prints every workload, and under it its styles; or one JSON object for each.
int list_workloads(bool as_json);

/// Prints describe_machine().
int show_machine(bool as_json);

struct bench_options {
  bool quick = false;
  bool json = false;
  std::string workers = "1,all";
  std::string placement = "work_stealing";
  std::string only = "all";  // a list of workloads
  std::string runs;          // empty: as planned
  std::string output;        // empty: a new file in build/bench
};

/// The main job: every experiment in every style, a table, and a file with the results.
int run_bench(const bench_options& options);

/// The whole program: reads and runs the command line. Prints exceptions and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace ramie::lab
