// The options that every workload takes, as typed and as checked requests.
#pragma once

#include <lab/harness/request.hpp>
#include <lab/harness/workload.hpp>

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ramie::lab {

inline constexpr int runs_max = 100'000;

/// As they stand on the command line. Lists are still text.
struct typed_options {
  std::string styles = "all";
  std::string workers;
  std::string placement = "work_stealing";
  std::string stacks = "guarded";
  bool pin_threads = false;
  std::string runs;
  std::string warmup;
  std::map<std::string, std::string> parameters;
  bool json = false;
  bool counters = false;
  bool no_yardstick = false;
};

/// What `w` is measured with if the user says nothing.
typed_options standard_options(const workload& w);

/// Declares the options of `w` on its subcommand, with `typed`, which must outlive the parsing, as their place and as
/// their defaults.
void add_options(CLI::App& command, const workload& w, typed_options& typed);

/// One request for every combination of the lists: styles, numbers of workers, and each parameter. Styles that
/// do not run on the runtime are asked for once, with one worker. Throws usage_error.
std::vector<request> requests_for(const workload& w, const typed_options& typed);

/// Numbers of workers from a list of numbers and "all"; 0 stands for as many as the runtime picks. Throws usage_error.
std::vector<int> parse_workers(const std::string& text);

}  // namespace ramie::lab
