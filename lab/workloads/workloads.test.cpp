// Every style of every workload, small, on one worker and on several: the results must be right.
#include <lab/harness/measure.hpp>
#include <lab/workloads/registry.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

namespace ramie::lab {
namespace {

/// Sizes that take milliseconds, and that touch the edges: one leaf, one number, a batch that is not full.
const std::multimap<std::string, parameter_values>& small_sizes() {
  static const std::multimap<std::string, parameter_values> sizes{
      {"skynet", {{"leaves", 1}}},
      {"skynet", {{"leaves", 1000}}},
      {"sum", {{"high", 1}}},
      {"sum", {{"high", 1001}}},
      {"fib", {{"n", 0}}},
      {"fib", {{"n", 15}}},
      {"yield", {{"fibers", 3}, {"count", 1000}}},
      {"spawn", {{"count", 1}}},
      {"spawn", {{"count", 1234}}},
      {"memory", {{"count", 500}}},
      {"pingpong", {{"messages", 1000}}},
      {"stream", {{"messages", 5000}, {"capacity", 128}}},
      {"stream", {{"messages", 100}, {"capacity", 1}}},
      {"select", {{"messages", 4000}, {"capacity", 16}}},
      {"mpmc", {{"messages", 4000}, {"capacity", 16}, {"producers", 3}, {"consumers", 5}}},
      {"mutex", {{"fibers", 3}, {"count", 1000}}},
      {"affinity",
       {{"actors", 6},
        {"state", 64},
        {"accesses", 20},
        {"talking", 0},
        {"hot", 0},
        {"every", 2},
        {"messages", 1},
        {"count", 6000}}},
      {"affinity",
       {{"actors", 7},
        {"state", 64},
        {"accesses", 20},
        {"talking", 1},
        {"hot", 90},
        {"every", 3},
        {"messages", 4},
        {"count", 6000}}},
      {"affinity",
       {{"actors", 8},
        {"state", 4000},
        {"accesses", 100},
        {"talking", 1},
        {"hot", 0},
        {"every", 2},
        {"messages", 6},
        {"count", 6000}}},
      {"timers", {{"count", 1000}}},
      {"operations", {{"count", 2000}}},
      {"overhead", {{"n", 10}, {"x", 1000}}},
      {"ticker", {{"hogs", 2}, {"ticks", 20}, {"period-us", 500}}},
      {"wake", {{"count", 50}, {"pause-us", 0}}},
      {"wake", {{"count", 5}, {"pause-us", 100}}},
      {"idle", {{"seconds", 1}}},
      {"files", {{"count", 300}, {"depth", 1}, {"megabytes", 1}, {"sequential", 1}, {"direct", 0}}},
      {"files", {{"count", 100}, {"depth", 4}, {"megabytes", 1}, {"sequential", 0}, {"direct", 1}}},
      {"actors", {{"count", 1}}},
      {"actors", {{"count", 1234}}},
      {"idle_actors", {{"count", 500}}},
      {"supervision", {{"count", 300}, {"rate", 0}, {"supervisors", 3}, {"children", 50}, {"names", 200}}},
      {"supervision", {{"count", 30}, {"rate", 5000}, {"supervisors", 1}, {"children", 1}, {"names", 0}}},
      {"thread_ring", {{"nodes", 7}, {"hops", 1000}}},
      {"counting", {{"count", 1000}}},
      {"fork_join_throughput", {{"actors", 5}, {"messages", 200}}},
      {"fork_join_create", {{"actors", 500}}},
      {"big", {{"actors", 9}, {"pings", 100}}},
      {"chameneos", {{"creatures", 5}, {"meetings", 300}}},
      {"bank_transaction", {{"accounts", 10}, {"transactions", 500}}},
      {"concurrent_dictionary", {{"actors", 5}, {"requests", 200}, {"write-percent", 30}}},
      {"dining_philosophers", {{"actors", 5}, {"meals", 100}}},
      {"sleeping_barber", {{"customers", 200}, {"chairs", 3}}},
      {"cigarette_smokers", {{"actors", 5}, {"rounds", 500}}},
      {"logistic_map", {{"series", 3}, {"terms", 200}}},
      {"sieve", {{"below", 5000}, {"primes-each", 50}}},
      {"cobwebbed_tree", {{"nodes", 500}, {"work", 3}}},
      {"n_queens", {{"size", 7}, {"depth", 3}, {"actors", 4}}},
      {"queens", {{"size", 1}}},
      {"queens", {{"size", 3}}},
      {"queens", {{"size", 8}}},
      {"uts", {{"size", 1}}},
      {"uts", {{"size", 300}}},
      {"merge_sort", {{"size", 1}}},
      {"merge_sort", {{"size", 50'001}}},
      {"strassen", {{"size", 64}}},
      {"strassen", {{"size", 256}}},
      {"sparselu", {{"size", 1}}},
      {"sparselu", {{"size", 7}}},
      {"cholesky", {{"size", 1}}},
      {"cholesky", {{"size", 6}}},
      {"health", {{"size", 1}}},
      {"health", {{"size", 3}}},
      {"floorplan", {{"size", 1}}},
      {"floorplan", {{"size", 4}}},
      {"bfs", {{"size", 1}}},
      {"bfs", {{"size", 9}}},
      {"for_each", {{"size", 1001}, {"work", 2}}},
      {"transform", {{"size", 1001}, {"work", 2}}},
      {"reduce", {{"size", 1001}, {"work", 2}}},
      {"count_if", {{"size", 1001}, {"work", 2}}},
      {"min_element", {{"size", 1001}, {"work", 2}}},
      {"find", {{"size", 1001}, {"work", 2}}},
      {"inclusive_scan", {{"size", 1001}, {"work", 2}}},
      {"copy_if", {{"size", 1001}, {"work", 2}}},
      {"histogram", {{"size", 1001}, {"work", 2}}},
      {"merge", {{"size", 1001}, {"work", 2}}},
      {"sort", {{"size", 1001}, {"work", 2}}},
      {"stable_sort", {{"size", 1001}, {"work", 2}}},
      {"partition", {{"size", 1001}, {"work", 2}}},
      {"unique", {{"size", 1001}, {"work", 2}}},
      {"triangle", {{"size", 1001}, {"work", 2}}},
      {"power_law", {{"size", 1001}, {"work", 2}}},
      {"long_end", {{"size", 1001}, {"work", 2}}},
      {"reduce", {{"size", 1}, {"work", 0}}},
      {"wavefront", {{"side", 1}, {"work", 0}}},
      {"wavefront", {{"side", 40}, {"work", 3}}},
      {"sort", {{"size", 1}, {"work", 0}}},
      {"mixed", {{"rings", 1}, {"ring-size", 2}, {"token", 0}, {"repetitions", 1}, {"messages-only", 1}}},
      {"mixed", {{"rings", 3}, {"ring-size", 5}, {"token", 40}, {"repetitions", 3}, {"messages-only", 1}}},
  };
  return sizes;
}

struct small_case {
  std::string workload;
  std::string style;
  int workers;
  parameter_values parameters;
};

/// GoogleTest would print the bytes.
void PrintTo(const small_case& c, std::ostream* out) { *out << c.workload << ' ' << c.style; }

std::vector<small_case> all_cases() {
  std::vector<small_case> cases;
  for (const auto& [name, parameters] : small_sizes()) {
    for (const style& s : find_workload(name)->styles) {
      for (const int workers : s.on_runtime ? std::vector<int>{1, 2, 4} : std::vector<int>{1}) {
        cases.push_back({name, s.name, workers, parameters});
      }
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<small_case>& info) {
  std::string name = info.param.workload + "_" + info.param.style + "_" + std::to_string(info.param.workers) + "w";
  for (const auto& [parameter, value] : info.param.parameters) name += "_" + parameter + std::to_string(value);
  std::replace(name.begin(), name.end(), '-', '_');  // GoogleTest requires names that are valid in C++
  return name;
}

class every_style : public testing::TestWithParam<small_case> {};

TEST_P(every_style, gives_the_right_result) {
  const small_case& c = GetParam();
  const workload& w = *find_workload(c.workload);
  const int runs = std::min(2, w.standard_runs);
  const record r = measure_here(w, {.workload = w.name,
                                    .style = c.style,
                                    .workers = c.workers,
                                    .runs = runs,
                                    .warmup = w.standard_warmup,
                                    .parameters = c.parameters});
  EXPECT_TRUE(r.ok) << r.error;
  EXPECT_EQ(r.workers, c.workers);
  EXPECT_EQ(r.seconds.size(), static_cast<std::size_t>(runs));
  EXPECT_GT(r.units, 0);
}

INSTANTIATE_TEST_SUITE_P(small, every_style, testing::ValuesIn(all_cases()), case_name);

TEST(registry, has_a_small_size_for_every_workload_that_users_see) {
  for (const workload& w : all_workloads()) {
    // These start ramie-lab itself (commands/command_line.test.cpp), http a server with ramie::http.
    if (!w.hidden && w.name != "echo" && w.name != "http" && !w.name.starts_with("across")) {
      EXPECT_TRUE(small_sizes().contains(w.name)) << w.name;
    }
  }
}

TEST(registry, is_well_formed) {
  std::set<std::string> names;
  for (const workload& w : all_workloads()) {
    EXPECT_TRUE(names.insert(w.name).second) << w.name << " is there twice";
    EXPECT_FALSE(w.styles.empty()) << w.name;
    EXPECT_FALSE(w.unit.empty()) << w.name;
    if (!w.yardstick.empty()) {
      EXPECT_NE(w.find_style(w.yardstick), nullptr) << w.name;
    }
    for (const parameter& p : w.parameters) {
      EXPECT_GE(p.standard, p.min) << w.name << ' ' << p.name;
      EXPECT_LE(p.standard, p.max) << w.name << ' ' << p.name;
      if (p.objection != nullptr) {
        EXPECT_EQ(p.objection(p.standard), "") << w.name << ' ' << p.name;
      }
    }
  }
}

TEST(registry, finds_by_name) {
  EXPECT_EQ(find_workload("sum")->name, "sum");
  EXPECT_EQ(find_workload("tea"), nullptr);
}

}  // namespace
}  // namespace ramie::lab
