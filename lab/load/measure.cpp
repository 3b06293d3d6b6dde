#include <lab/load/measure.hpp>

#include <lab/load/call_counter.hpp>
#include <lab/load/h2load.hpp>
#include <lab/load/newcomers.hpp>
#include <lab/load/server_process.hpp>

#include <optional>
#include <thread>

namespace ramie::lab {

namespace {

run_result measure_encrypted(const echo_request& request) {
  const core_split cores = split_cores(request.workers);
  std::vector<std::string> command = request.server;
  command.emplace_back("--tls");
  const server_process server{command, cores.server};
  bind_to(cores.driver);
  load_options load = request.load;
  load.port = server.port();
  const double before = server.cpu_seconds();
  // Longer, for the handshakes are within it.
  const load_outcome outcome =
      drive_by_h2load(load, request.encrypted == echo_request::cover::tls_http2, 4 * request.time);
  const double cpu = server.cpu_seconds() - before;
  const auto requests = static_cast<double>(outcome.requests);
  return {.seconds = outcome.seconds,
          .units = outcome.requests,
          .ok = true,
          .figures = {{"server_cpu_ns_per_request", cpu / requests * 1e9},
                      {"requests_per_second", requests / outcome.seconds}}};
}

/// The values of the parameter `http`.
enum what_is_asked : std::int64_t { bytes, hello, json, websocket, hello_tls, hello_http2, whats };

}  // namespace

run_result measure_echo(const echo_request& request) {
  if (request.encrypted != echo_request::cover::none) return measure_encrypted(request);
  const core_split cores = split_cores(request.workers);
  const server_process server{request.server, cores.server};
  bind_to(cores.driver);
  const std::int64_t before = server.resident_bytes();
  load_options load = request.load;
  load.port = server.port();
  load_driver driver{load};
  std::this_thread::sleep_for(request.rest);
  const auto resident = static_cast<double>(server.resident_bytes() - before);
  driver.run(request.warm_up);
  std::optional<newcomers> beside;
  if (request.newcomers > 0) beside.emplace(load, request.newcomers);
  const double cpu_before = server.cpu_seconds();
  const load_outcome outcome = driver.run(request.time);
  const double cpu = server.cpu_seconds() - cpu_before;
  const auto requests = static_cast<double>(outcome.requests);
  const auto us_of = [](const histogram& times, double share) {
    return static_cast<double>(times.quantile(share)) * 1e-3;
  };
  const auto us = [&](double share) { return us_of(outcome.times, share); };
  run_result result{.seconds = outcome.seconds,
                    .units = outcome.requests,
                    .ok = outcome.requests > 0,
                    .figures = {{"server_cpu_ns_per_request", cpu / requests * 1e9},
                                {"p50_us", us(0.5)},
                                {"p99_us", us(0.99)},
                                {"p999_us", us(0.999)},
                                {"requests_per_second", requests / outcome.seconds},
                                {"resident_bytes_per_connection", resident / load.connections},
                                {"server_busy_cores", cpu / outcome.seconds}}};
  if (beside) {
    const histogram first_answers = beside->stop();
    result.figures.push_back({"newcomer_p50_us", us_of(first_answers, 0.5)});
    result.figures.push_back({"newcomer_p99_us", us_of(first_answers, 0.99)});
  }
  if (request.count_calls) {
    call_counter calls{server.pid()};
    const auto counted = static_cast<double>(driver.run(request.time / 5).requests);
    result.figures.push_back({"system_calls_per_request", static_cast<double>(calls.stop()) / counted});
  }
  return result;
}

echo_request echo_request_of(const parameter_values& values) {
  echo_request request;
  request.load.connections = static_cast<int>(values.at("connections"));
  request.load.size = static_cast<int>(values.at("size"));
  request.load.rate = values.at("rate");
  request.newcomers = values.at("newcomers");
  request.count_calls = values.at("calls") != 0;
  request.time = std::chrono::milliseconds{values.at("milliseconds")};
  request.warm_up = std::chrono::milliseconds{values.at("warm-up")};
  request.rest = std::chrono::milliseconds{values.at("rest")};
  const auto http = values.find("http");
  const auto what = http == values.end() ? bytes : static_cast<what_is_asked>(http->second);
  if (what == bytes) return request;
  request.load.how = what == websocket ? talk::websocket : talk::http;
  request.load.path = what == websocket ? "/echo" : what == json ? "/json" : "/";
  if (what == hello_tls) request.encrypted = echo_request::cover::tls;
  if (what == hello_http2) request.encrypted = echo_request::cover::tls_http2;
  return request;
}

std::vector<parameter> echo_parameters() {
  return {
      {.name = "connections", .help = "open at once", .standard = 50, .min = 1, .max = 1'000'000},
      {.name = "size", .help = "bytes of a message", .standard = 64, .min = 1, .max = 1 << 24},
      {.name = "rate",
       .help = "requests a second of all connections together; 0: each sends as soon as it has its answer",
       .standard = 0,
       .min = 0,
       .max = 10'000'000},
      {.name = "milliseconds", .help = "how long a run lasts", .standard = 1000, .min = 10, .max = 600'000},
      {.name = "warm-up",
       .help = "milliseconds before it that do not count",
       .standard = 200,
       .min = 1,
       .max = 600'000},
      {.name = "rest",
       .help = "milliseconds of nothing before the memory of its connections is looked at: servers give some back",
       .standard = 0,
       .min = 0,
       .max = 600'000},
      {.name = "newcomers",
       .help = "new connections a second beside them; how long the first answer takes, from the time when each was due",
       .standard = 0,
       .min = 0,
       .max = 10'000},
      {.name = "calls",
       .help = "count the server's system calls, too, in a run of its own under strace",
       .standard = 0,
       .min = 0,
       .max = 1},
  };
}

std::vector<parameter> http_parameters() {
  std::vector<parameter> all = echo_parameters();
  all.push_back({.name = "http",
                 .help = "0: bytes that come back, as in echo; HTTP/1.1: 1: GET /, 2: GET /json, 3: messages of a "
                         "WebSocket at /echo; by h2load: 4: GET / over TLS, 5: GET / by HTTP/2 over TLS",
                 .standard = hello,
                 .min = bytes,
                 .max = whats - 1});
  return all;
}

}  // namespace ramie::lab
