// Experiments 6, echo, and 7, HTTP: one server, of ramie's or of a peer's, under one load.
//
// A server is a program that is started as `PROGRAM ... --style=NAME --workers=N`, prints the line `port NUMBER` as
// soon as it listens on that port of the loopback, sends back what each connection sends, and serves until it is
// killed.
#pragma once

#include <lab/harness/workload.hpp>
#include <lab/load/drive.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ramie::lab {

struct echo_request {
  std::vector<std::string> server;  // its command, style and workers included
  int workers = 1;
  load_options load;  // but for the port
  enum class cover : std::uint8_t { none, tls, tls_http2 };
  cover encrypted = cover::none;  // by h2load; the server gets --tls besides
  std::chrono::milliseconds warm_up{200};
  std::chrono::milliseconds time{1000};
  std::chrono::milliseconds rest{0};  // before the memory of its connections is looked at
  std::int64_t newcomers = 0;         // connections a second that are opened beside, in the measured time
  bool count_calls = false;
};

/// Starts the server on as many cores as it has workers, drives it from the others, and ends it. Figures:
/// `server_cpu_ns_per_request`, `p50_us`, `p99_us`, `p999_us`, `requests_per_second`,
/// `resident_bytes_per_connection` (after one message over each, and `rest`), `server_busy_cores`; with `newcomers`,
/// `newcomer_p50_us` and `newcomer_p99_us`, from when one was due to its first answer; with `count_calls`, from a
/// second run of a fifth of the time under strace(1), `system_calls_per_request`. Throws lab_error. The calling thread
/// stays bound to the driver's cores. Over TLS there are the first figure and `requests_per_second` alone, and
/// connections are made within the time.
run_result measure_echo(const echo_request& request);

/// What `measure_echo` takes from a workload's parameters `connections`, `size`, `rate`, `milliseconds`, `warm-up`,
/// `rest`, `newcomers`, `calls`.
echo_request echo_request_of(const parameter_values& values);

/// Those parameters.
std::vector<parameter> echo_parameters();
/// The same, and `http`: what is asked for.
std::vector<parameter> http_parameters();

}  // namespace ramie::lab
