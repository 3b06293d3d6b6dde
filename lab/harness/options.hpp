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
inline constexpr int repeat_ms_max = 60'000;  // of --least-ms and --pause-ms: a minute, far more than is of use

/// The options as on the command line. Lists are still text.
struct typed_options {
  std::string styles = "all";
  std::string workers;
  std::string placement = "work_stealing";
  std::string stacks = "guarded";
  bool pin_threads = false;
  std::string runs;
  std::string warmup;
  std::string least_ms = "0";
  std::string pause_ms = "0";
  std::map<std::string, std::string> parameters;
  bool json = false;
  bool counters = false;
  bool no_yardstick = false;
};

/// The options for `w` if the user gives none.
typed_options standard_options(const workload& w);

/// Declares the options of `w` on its subcommand. `typed` stores them and provides the defaults; it must outlive the
/// parsing.
void add_options(CLI::App& command, const workload& w, typed_options& typed);

/// One request for every combination of the lists: styles, numbers of workers, and each parameter. Styles that do
/// not run on the runtime appear once, with one worker. Throws usage_error.
std::vector<request> requests_for(const workload& w, const typed_options& typed);

/// Numbers of workers from a list of numbers and "all"; 0 means as many as the runtime picks. Throws usage_error.
std::vector<int> parse_workers(const std::string& text);

}  // namespace ramie::lab
