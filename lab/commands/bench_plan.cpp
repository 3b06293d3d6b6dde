#include <lab/commands/bench_plan.hpp>

#include <lab/harness/error.hpp>
#include <lab/harness/numbers.hpp>
#include <lab/harness/options.hpp>
#include <lab/harness/runtime_facts.hpp>
#include <lab/workloads/registry.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace ramie::lab {
namespace {

/// The size of a measurement: enough runs for a meaningful median on a machine that is not quiet.
struct size {
  std::map<std::string, std::string> parameters;
  int runs;
};

struct plan_entry {
  std::string experiment;
  std::string workload;
  std::string styles;
  bool all_workers;  // else the workload's default
  size full;
  size quick;
};

const std::vector<plan_entry>& plan() {
  static const std::vector<plan_entry> entries{
      {"1 skynet", "skynet", "all", true, {{{"leaves", "1000000"}}, 51}, {{{"leaves", "100000"}}, 11}},
      {"2 sum", "sum", "all", true, {{{"high", "10000000"}}, 15}, {{{"high", "1000000"}}, 11}},
      {"3 mixed",
       "mixed",
       "actor",
       true,
       {{{"token", "1000"}, {"repetitions", "1"}, {"messages-only", "1"}}, 11},
       {{{"token", "100"}, {"repetitions", "1"}, {"messages-only", "1"}}, 5}},
      {"4 overhead",
       "overhead",
       "all",
       true,
       {{{"n", "1,10,100,1000"}, {"x", "100,1000,10000,100000"}}, 7},
       {{{"n", "1,10,100"}, {"x", "100,1000,10000,100000"}}, 3}},
      {"6 echo",
       "echo",
       "all",
       true,
       {{{"connections", "1,50,500"}, {"milliseconds", "1000"}}, 5},
       {{{"connections", "50"}, {"milliseconds", "300"}}, 3}},
      {"6b files",
       "files",
       "all",
       false,
       {{{"direct", "0,1"}, {"sequential", "0,1"}, {"depth", "1,8"}, {"count", "50000"}}, 3},
       {{{"direct", "0,1"}, {"depth", "1,8"}, {"count", "5000"}}, 3}},
      {"9 task suites", "queens", "all", true, {{{"size", "13"}}, 7}, {{{"size", "10"}}, 3}},
      {"9 task suites", "uts", "all", true, {{{"size", "20000"}}, 7}, {{{"size", "2000"}}, 3}},
      {"9 task suites", "merge_sort", "all", true, {{{"size", "4000000"}}, 7}, {{{"size", "400000"}}, 3}},
      {"9 task suites", "strassen", "all", true, {{{"size", "1024"}}, 7}, {{{"size", "256"}}, 3}},
      {"9 task suites", "sparselu", "all", true, {{{"size", "32"}}, 7}, {{{"size", "12"}}, 3}},
      {"9 task suites", "cholesky", "all", true, {{{"size", "24"}}, 7}, {{{"size", "12"}}, 3}},
      {"9 task suites", "health", "all", true, {{{"size", "5"}}, 7}, {{{"size", "4"}}, 3}},
      {"9 task suites", "floorplan", "all", true, {{{"size", "9"}}, 7}, {{{"size", "7"}}, 3}},
      {"9 task suites", "bfs", "all", true, {{{"size", "17"}}, 7}, {{{"size", "14"}}, 3}},
      {"fib", "fib", "all", true, {{{"n", "35"}}, 25}, {{{"n", "27"}}, 11}},
      {"yield", "yield", "all", false, {{{"count", "2000000"}}, 15}, {{{"count", "200000"}}, 5}},
      {"spawn", "spawn", "all", false, {{{"count", "1000000"}}, 15}, {{{"count", "100000"}}, 5}},
      {"pingpong", "pingpong", "all", false, {{{"messages", "1000000"}}, 11}, {{{"messages", "100000"}}, 5}},
      {"stream", "stream", "all", false, {{{"messages", "2000000"}}, 11}, {{{"messages", "200000"}}, 5}},
      {"actors",
       "actors",
       "plain,tell,pingpong,ask,spawn",
       false,
       {{{"count", "1000000"}}, 11},
       {{{"count", "100000"}}, 5}},
      {"select", "select", "all", false, {{{"messages", "1000000"}}, 11}, {{{"messages", "100000"}}, 5}},
      {"mpmc", "mpmc", "all", true, {{{"messages", "2000000"}}, 11}, {{{"messages", "200000"}}, 5}},
      {"mutex", "mutex", "plain,mutex", true, {{{"count", "500000"}}, 11}, {{{"count", "50000"}}, 5}},
      {"timers", "timers", "plain,cancel,fire", false, {{{"count", "200000"}}, 7}, {{{"count", "50000"}}, 3}},
      {"memory", "memory", "all", false, {{{"count", "200000"}}, 3}, {{{"count", "20000"}}, 1}},
      {"idle", "idle", "all", false, {{{"seconds", "5"}}, 1}, {{{"seconds", "1"}}, 1}},
  };
  return entries;
}

/// On a machine with one CPU "1,all" is the same number twice.
std::string distinct_workers(const std::string& text) {
  std::vector<int> numbers;
  for (int number : parse_workers(text)) {
    if (number == 0) number = standard_worker_count();
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
  }
  return fmt::format("{}", fmt::join(numbers, ","));
}

std::vector<std::string> chosen_workloads(const std::string& only) {
  std::vector<std::string> names;
  for (const plan_entry& entry : plan()) names.push_back(entry.workload);
  if (only == "all") return names;
  const std::vector<std::string> chosen = split_list(only);
  for (const std::string& name : chosen) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw usage_error{
        fmt::format("--only {}: the bench has {}, all", name.empty() ? "''" : name, fmt::join(names, ", "))};
  }
  return chosen;
}

}  // namespace

std::vector<bench_step> plan_bench(const bench_options& options) {
  const std::vector<std::string> chosen = chosen_workloads(options.only);
  const std::string workers = distinct_workers(options.workers);
  std::vector<bench_step> steps;
  for (const plan_entry& entry : plan()) {
    if (std::find(chosen.begin(), chosen.end(), entry.workload) == chosen.end()) continue;
    const workload& w = *find_workload(entry.workload);
    const size& wanted = options.quick ? entry.quick : entry.full;
    typed_options typed = standard_options(w);
    typed.styles = entry.styles;
    typed.placement = options.placement;
    typed.runs = options.runs.empty() ? std::to_string(wanted.runs) : options.runs;
    if (entry.all_workers) typed.workers = workers;
    for (const auto& [name, value] : wanted.parameters) typed.parameters.at(name) = value;
    steps.push_back({.experiment = entry.experiment, .requests = requests_for(w, typed)});
  }
  return steps;
}

}  // namespace ramie::lab
