#include <lab/load/measure.hpp>

#include <lab/load/server_process.hpp>

namespace ramie::lab {

run_result measure_echo(const echo_request& request) {
  const core_split cores = split_cores(request.workers);
  const server_process server{request.server, cores.server};
  bind_to(cores.driver);
  const std::int64_t before = server.resident_bytes();
  load_options load = request.load;
  load.port = server.port();
  load_driver driver{load};
  const auto resident = static_cast<double>(server.resident_bytes() - before);
  driver.run(request.warm_up);
  const double cpu_before = server.cpu_seconds();
  const load_outcome outcome = driver.run(request.time);
  const double cpu = server.cpu_seconds() - cpu_before;
  const auto requests = static_cast<double>(outcome.requests);
  const auto us = [&](double share) { return static_cast<double>(outcome.times.quantile(share)) * 1e-3; };
  return {.seconds = outcome.seconds,
          .units = outcome.requests,
          .ok = outcome.requests > 0,
          .figures = {{"server_cpu_ns_per_request", cpu / requests * 1e9},
                      {"p50_us", us(0.5)},
                      {"p99_us", us(0.99)},
                      {"p999_us", us(0.999)},
                      {"requests_per_second", requests / outcome.seconds},
                      {"resident_bytes_per_connection", resident / load.connections},
                      {"server_busy_cores", cpu / outcome.seconds}}};
}

echo_request echo_request_of(const parameter_values& values) {
  echo_request request;
  request.load.connections = static_cast<int>(values.at("connections"));
  request.load.size = static_cast<int>(values.at("size"));
  request.load.rate = values.at("rate");
  request.time = std::chrono::milliseconds{values.at("milliseconds")};
  request.warm_up = std::chrono::milliseconds{values.at("warm-up")};
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
  };
}

}  // namespace ramie::lab
