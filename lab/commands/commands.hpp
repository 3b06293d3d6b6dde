// The commands of `ramie-lab`. Each returns the exit code, and throws usage_error or lab_error if it fails.
#pragma once

#include <lab/harness/options.hpp>
#include <lab/harness/workload.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

/// Options of `load` besides those of the workloads `echo` and `http`, whose parameters it takes.
struct load_command_options {
  std::string system = "server";
  std::string style = "server";
  int workers = 1;
  int runs = 5;
  int warmup = 0;  // ignored: the server is a new process in every run; see the parameter `warm-up`
  std::map<std::string, std::int64_t> parameters;
  std::vector<std::string> server;  // the command that starts it; style and number of workers are added
};

/// Drives a server that is not ramie's, and prints its record as JSON.
int run_load(const load_command_options& options);

/// The whole program: reads and runs the command line. Prints exceptions and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace ramie::lab
