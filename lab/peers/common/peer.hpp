// The frame of the peers that are written in C++: reads the options, runs and times, prints ramie-lab's JSON object.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace peer {

/// What is wrong with the command line.
[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "peer: %s\n", what.c_str());
  std::exit(2);
}

struct options {
  std::string workload;
  std::string style;
  int workers = 1;
  int runs = 5;
  int warmup = 1;
  int least_ms = 0;  // repeat the work inside a measured run until it has taken so long
  int pause_ms = 0;  // between repetitions
  std::map<std::string, std::string> rest;

  [[nodiscard]] std::int64_t number(const std::string& name, std::int64_t standard) const {
    const auto found = rest.find(name);
    return found == rest.end() ? standard : std::atoll(found->second.c_str());
  }
};

struct outcome {
  double seconds;
  std::int64_t units;
  bool ok;
  std::map<std::string, double> figures = {};
  std::int64_t repeats = 1;
};

/// Runs once. Called `warmup` + `runs` times inside one call of an entry's `around`.
using run_once = std::function<outcome()>;

/// One workload in one style. It starts its runtime, then calls its argument as often as that wants to be called.
struct entry {
  std::string workload;
  std::string style;
  std::string unit;
  std::function<void(const options&, const std::function<void(const run_once&)>& measure)> run;
};

template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  std::forward<F>(f)();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A line of /proc/self/status in bytes, 0 if there is none.
inline std::int64_t status_bytes(const std::string& field) {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, field.size(), field) == 0) return std::atoll(line.c_str() + field.size()) * 1024;
  }
  return 0;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

inline std::string text_of(const std::vector<double>& values) {
  std::string text = "[";
  for (const double value : values) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", value);
    text += (text.size() > 1 ? "," : "") + std::string{digits};
  }
  return text + "]";
}

/// A measured run: repeats the work until it has taken as long as was asked for. The result is the mean of one.
inline outcome run_measured(const options& o, const run_once& once) {
  outcome all = once();
  while (all.ok && all.seconds * 1e3 < o.least_ms && all.repeats < 1'000'000) {
    if (o.pause_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds{o.pause_ms});
    const outcome next = once();
    all.seconds += next.seconds;
    all.ok = next.ok;
    for (const auto& [name, value] : next.figures) all.figures[name] += value;
    ++all.repeats;
  }
  all.seconds /= static_cast<double>(all.repeats);
  for (auto& [name, sum] : all.figures) sum /= static_cast<double>(all.repeats);
  return all;
}

inline options read_options(int argc, char** argv) {
  if (argc < 2) fail("which workload?");
  options o;
  o.workload = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (word.compare(0, 2, "--") != 0 || equals == std::string::npos) fail("'" + word + "' is no --name=value");
    const std::string name = word.substr(2, equals - 2);
    const std::string value = word.substr(equals + 1);
    if (name == "style") o.style = value;
    else if (name == "workers") o.workers = std::max(1, std::atoi(value.c_str()));
    else if (name == "runs") o.runs = std::max(1, std::atoi(value.c_str()));
    else if (name == "warmup") o.warmup = std::atoi(value.c_str());
    else if (name == "least-ms") o.least_ms = std::atoi(value.c_str());
    else if (name == "pause-ms") o.pause_ms = std::atoi(value.c_str());
    else o.rest[name] = value;
  }
  return o;
}

inline int print(const std::string& system, const std::string& version, const options& o, const entry& e,
                 const std::vector<outcome>& runs, bool ok, std::int64_t base_rss_bytes) {
  std::vector<double> seconds;
  std::vector<double> repeats;
  std::map<std::string, std::vector<double>> figures;
  for (const outcome& run : runs) {
    seconds.push_back(run.seconds);
    repeats.push_back(static_cast<double>(run.repeats));
    for (const auto& [name, value] : run.figures) figures[name].push_back(value);
  }
  std::string more;
  for (const auto& [name, values] : figures) more += (more.empty() ? "\"" : ",\"") + name + "\":" + text_of(values);
  if (!more.empty()) more = ",\"figures\":{" + more + "}";
  const std::int64_t units = runs.front().units;
  std::printf(
      "{\"system\":\"%s\",\"version\":\"%s\",\"workload\":\"%s\",\"style\":\"%s\",\"workers\":%d,\"unit\":\"%s\","
      "\"units\":%lld,\"seconds\":%s,\"repeats\":%s,\"ns_per_unit\":%.9g,\"peak_rss_bytes\":%lld,\"base_rss_bytes\":%"
      "lld,\"ok\":%s%s}"
      "\n",
      system.c_str(), version.c_str(), o.workload.c_str(), e.style.c_str(), o.workers, e.unit.c_str(),
      static_cast<long long>(units), text_of(seconds).c_str(), text_of(repeats).c_str(),
      median(seconds) * 1e9 / static_cast<double>(units), static_cast<long long>(status_bytes("VmHWM:")),
      static_cast<long long>(base_rss_bytes), ok ? "true" : "false", more.c_str());
  return ok ? 0 : 1;
}

/// All of main().
inline int run(const std::string& system, const std::string& version, const std::vector<entry>& entries, int argc,
               char** argv) {
  const options o = read_options(argc, argv);
  for (const entry& e : entries) {
    if (e.workload != o.workload || (!o.style.empty() && e.style != o.style)) continue;
    const std::int64_t base_rss_bytes = status_bytes("VmRSS:");
    std::vector<outcome> runs;
    bool ok = true;
    try {
      e.run(o, [&](const run_once& once) {
        for (int i = 0; i < o.warmup; ++i) ok = once().ok && ok;
        for (int i = 0; i < o.runs; ++i) {
          runs.push_back(run_measured(o, once));
          ok = runs.back().ok && ok;
        }
      });
    } catch (const std::exception& e2) {
      std::fprintf(stderr, "peer: %s\n", e2.what());
      return 1;
    }
    return print(system, version, o, e, runs, ok, base_rss_bytes);
  }
  fail("there is no workload " + o.workload + " in style " + o.style);
}

}  // namespace peer
