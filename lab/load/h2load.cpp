#include <lab/load/h2load.hpp>

#include <lab/harness/child.hpp>
#include <lab/harness/error.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <vector>

namespace ramie::lab {

load_outcome drive_by_h2load(const load_options& options, bool http2, std::chrono::milliseconds time) {
  std::vector<std::string> command{"h2load", "-t1", "-m1", fmt::format("-c{}", options.connections),
                                   fmt::format("-D{}ms", time.count())};
  if (!http2) command.emplace_back("--h1");
  command.push_back(fmt::format("https://127.0.0.1:{}{}", options.port, options.path));
  const child_outcome child = run_child(command);
  if (!child.ended_well()) throw lab_error{fmt::format("h2load (Debian: nghttp2-client) {}", child.describe())};
  // "requests: 12345 total, 12409 started, 12345 done, 12345 succeeded, 0 failed, 0 errored, 0 timeout"
  long total = 0, started = 0, done = 0, succeeded = 0, failed = -1;
  const std::size_t at = child.output.find("requests: ");
  if (at == std::string::npos ||
      std::sscanf(child.output.c_str() + at, "requests: %ld total, %ld started, %ld done, %ld succeeded, %ld failed",
                  &total, &started, &done, &succeeded, &failed) != 5)
    throw lab_error{"h2load said something else than expected: " + child.output};
  if (failed != 0 || succeeded != done || done == 0)
    throw lab_error{fmt::format("{} of {} requests have failed", done - succeeded, done)};
  load_outcome outcome;
  outcome.seconds = std::chrono::duration<double>(time).count();
  outcome.requests = succeeded;
  return outcome;
}

}  // namespace ramie::lab
