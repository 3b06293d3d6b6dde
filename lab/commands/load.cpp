// The command `load`: how a peer's server of experiment 6 or 7 comes to the same record as ramie's.
#include <lab/commands/commands.hpp>

#include <lab/harness/results.hpp>
#include <lab/load/measure.hpp>
#include <lab/workloads/registry.hpp>

#include <exception>
#include <iostream>

namespace ramie::lab {

int run_load(const load_command_options& options) {
  const workload& w = *find_workload(options.parameters.at("http") == 0 ? "echo" : "http");
  const parameter_values values{options.parameters.begin(), options.parameters.end()};
  echo_request asked = echo_request_of(values);
  asked.workers = options.workers;
  asked.server = options.server;
  asked.server.push_back("--style=" + options.style);
  asked.server.push_back("--workers=" + std::to_string(options.workers));

  record r;
  r.system = options.system;
  r.what = {.workload = w.name,
            .style = options.style,
            .workers = options.workers,
            .runs = options.runs,
            .parameters = values};
  r.workers = options.workers;
  r.unit = w.unit;
  r.ok = true;
  try {
    for (int run = 0; run < options.runs; ++run) {
      const run_result one = measure_echo(asked);
      r.units = one.units;
      r.seconds.push_back(one.seconds);
      for (const figure& f : one.figures) r.figures[f.name].push_back(f.value);
      r.ok = r.ok && one.ok;
    }
  } catch (const std::exception& e) {
    r.ok = false;
    r.error = e.what();
  }
  results all{std::cout, true};
  all.add(r);
  return all.finish();
}

}  // namespace ramie::lab
