// Experiment 6, echo: one server, of ramie's or of a peer's, under one load.
//
// A server is a program that is started as `PROGRAM ... --style=NAME --workers=N`, prints the line `port NUMBER` as
// soon as it listens on that port of the loopback, sends back what each connection sends, and serves until it is
// killed.
#pragma once

#include <lab/harness/workload.hpp>
#include <lab/load/drive.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace ramie::lab {

struct echo_request {
  std::vector<std::string> server;  // its command, style and workers included
  int workers = 1;
  load_options load;  // but for the port
  std::chrono::milliseconds warm_up{200};
  std::chrono::milliseconds time{1000};
};

/// Starts the server on as many cores as it has workers, drives it from the others, and ends it. Figures:
/// `server_cpu_ns_per_request`, `p50_us`, `p99_us`, `p999_us`, `requests_per_second`,
/// `resident_bytes_per_connection` (after one message over each), `server_busy_cores`. Throws lab_error. The calling
/// thread stays bound to the driver's cores.
run_result measure_echo(const echo_request& request);

/// What `measure_echo` takes from a workload's parameters `connections`, `size`, `rate`, `milliseconds`, `warm-up`.
echo_request echo_request_of(const parameter_values& values);

/// Those parameters.
std::vector<parameter> echo_parameters();

}  // namespace ramie::lab
