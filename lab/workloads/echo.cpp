// Experiment 6: an echo server. The server is a process of its own, so that its processor time is told apart from that
// of the load; peers' servers are driven by the same load (`ramie-lab load`).
#include <lab/harness/child.hpp>
#include <lab/harness/session.hpp>
#include <lab/load/measure.hpp>
#include <lab/workloads/echo.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <utility>

namespace ramie::lab {
namespace {

void echo(net::tcp_stream connection) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t n = connection.read_some(buffer))
    connection.write_all(std::span<const std::byte>{buffer}.first(n));
}

run_result by_fibers(session& s) {
  parameter_values values;
  for (const parameter& p : echo_parameters()) values[p.name] = s.parameter(p.name);
  echo_request request = echo_request_of(values);
  s.runtime();  // idle: only its number of workers is asked for
  request.workers = s.workers();
  request.server = {this_program(), echo_server_command, "--style=fiber", "--workers=" + std::to_string(s.workers())};
  return measure_echo(request);
}

}  // namespace

int serve_echo(int workers) {
  die_with_parent();
  ramie::runtime_options options;
  options.workers = static_cast<unsigned>(workers);
  ramie::runtime runtime{options};
  runtime.run([] {
    net::tcp_listener listener{{"127.0.0.1", 0}};
    std::printf("port %d\n", listener.local().port());
    std::fflush(stdout);
    ramie::scope connections;
    for (;;)
      connections.spawn([connection = listener.accept()]() mutable {
        try {
          echo(std::move(connection));
        } catch (const net::io_error&) {
          // The client is gone.
        }
      });
  });
  return 0;
}

workload echo_workload() {
  return {
      .name = "echo",
      .summary = "experiment 6: a server that sends back what it gets, in a process of its own",
      .unit = "request",
      .parameters = echo_parameters(),
      .styles = {{"fiber", "a fiber for each connection", true, by_fibers}},
      .yardstick = "",
      .standard_runs = 5,
      .standard_warmup = 0,
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
