// Experiment 7: hello over HTTP. ramie's server is ramie-web (lab/web/servers/hello.cpp), a program of its own since it
// is linked with ramie::http; lab/web/serve.py starts it and those of peers in the way that lab/load/measure.hpp wants.
#include <lab/harness/child.hpp>
#include <lab/harness/error.hpp>
#include <lab/harness/session.hpp>
#include <lab/load/measure.hpp>
#include <lab/workloads/registry.hpp>

#include <filesystem>
#include <string>

namespace ramie::lab {
namespace {

run_result by_fibers(session& s) {
  parameter_values values;
  for (const parameter& p : http_parameters()) values[p.name] = s.parameter(p.name);
  echo_request request = echo_request_of(values);
  s.runtime();  // idle: only its number of workers is asked for
  request.workers = s.workers();
  const std::filesystem::path program = std::filesystem::path{this_program()}.parent_path() / "ramie-web";
  if (!std::filesystem::exists(program)) throw lab_error{program.string() + " is not there: was ramie::http built?"};
  request.server = {"python3", RAMIE_LAB_SERVE, program, "--style=fiber", "--workers=" + std::to_string(s.workers())};
  return measure_echo(request);
}

}  // namespace

workload http_workload() {
  return {
      .name = "http",
      .summary = "experiment 7: hello over HTTP, by a server in a process of its own",
      .unit = "request",
      .parameters = http_parameters(),
      .styles = {{"fiber", "ramie::http, a fiber for each connection", true, by_fibers}},
      .yardstick = "",
      .standard_runs = 5,
      .standard_warmup = 0,
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
