// Experiment 6: an echo server. The server is a process of its own, so that its processor time is told apart from that
// of the load; peers' servers are driven by the same load (`ramie-lab load`).
#include <lab/harness/child.hpp>
#include <lab/harness/session.hpp>
#include <lab/load/measure.hpp>
#include <lab/workloads/echo.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ramie::lab {
namespace {

constexpr std::size_t buffer_size = 4096;

void echo(net::tcp_stream connection) {
  for (;;) {
    connection.wait_readable();  // an idle connection has no buffer, and its fiber touches one page of stack
    const std::unique_ptr<std::byte[]> buffer{new std::byte[buffer_size]};
    const std::size_t n = connection.read_some({buffer.get(), buffer_size});
    if (n == 0) return;
    connection.write_all(std::span<const std::byte>{buffer.get(), n});
  }
}

class echo_actor : public actor<echo_actor> {
 public:
  explicit echo_actor(net::tcp_stream connection) : connection_{std::move(connection), self(), buffer_size} {
    connection_.activate(connection_.always);
  }
  void on(const net::received& m) {
    try {
      connection_->write_all(m.bytes());
    } catch (const net::io_error&) {
      stop();  // the client is gone
    }
  }
  void on(net::ended) { stop(); }

 private:
  net::active_stream<net::tcp_stream> connection_;
};

run_result by(const char* style, session& s) {
  parameter_values values;
  for (const parameter& p : echo_parameters()) values[p.name] = s.parameter(p.name);
  echo_request request = echo_request_of(values);
  s.runtime();  // idle: only its number of workers is asked for
  request.workers = s.workers();
  request.server = {this_program(), echo_server_command, std::string{"--style="} + style,
                    "--workers=" + std::to_string(s.workers())};
  return measure_echo(request);
}

}  // namespace

int serve_echo(const std::string& style, int workers) {
  die_with_parent();
  ramie::runtime_options options;
  options.workers = static_cast<unsigned>(workers);
  ramie::runtime runtime{options};
  runtime.run([&] {
    net::tcp_listener listener{{"127.0.0.1", 0}};
    std::printf("port %d\n", listener.local().port());
    std::fflush(stdout);
    if (style == "actor")
      for (;;) spawn_actor<echo_actor>(listener.accept());
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
      .styles = {{"fiber", "a fiber for each connection", true, [](session& s) { return by("fiber", s); }},
                 {"actor", "an actor that is told what arrives", true, [](session& s) { return by("actor", s); }}},
      .yardstick = "",
      .standard_runs = 5,
      .standard_warmup = 0,
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
