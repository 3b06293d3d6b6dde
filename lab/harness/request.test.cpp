#include <lab/harness/request.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ramie::lab {
namespace {

using json = nlohmann::ordered_json;

record example() {
  record r;
  r.what = {.workload = "skynet", .style = "fork_join", .workers = 0, .runs = 3, .parameters = {{"leaves", 1000}}};
  r.workers = 2;
  r.unit = "fiber";
  r.units = 1000;
  r.seconds = {3e-6, 1e-6, 2e-6};
  r.plain_seconds = {1e-6, 1e-6, 1e-6};
  r.plain_units = 1000;
  r.busy_cores = {1.5, 1.5, 1.5};
  r.plain_busy_cores = {0.5, 1, 1};
  r.figures = {{"bytes_per_fiber", {1, 2, 3}}};
  r.counters = {{"steals", 7}};
  r.peak_rss_bytes = 5'000'000;
  r.base_rss_bytes = 4'000'000;
  r.ok = true;
  return r;
}

std::vector<std::string> names_in(const json& j) {
  std::vector<std::string> names;
  for (const auto& [name, value] : j.items()) names.push_back(name);
  return names;
}

TEST(record, derives_its_figures) {
  const record r = example();
  ASSERT_TRUE(r.ns_per_unit());
  EXPECT_DOUBLE_EQ(r.ns_per_unit()->median, 2);
  EXPECT_DOUBLE_EQ(r.ns_per_unit()->max, 3);
  EXPECT_DOUBLE_EQ(r.plain_ns_per_unit().value(), 1);
  EXPECT_DOUBLE_EQ(r.ratio_to_plain().value(), 2);
  EXPECT_DOUBLE_EQ(r.cpu_ratio_to_plain().value(), 3);  // of 9, 1.5, 3
}

TEST(record, derives_nothing_from_nothing) {
  EXPECT_FALSE(record{}.ns_per_unit());
  EXPECT_FALSE(record{}.plain_ns_per_unit());
  EXPECT_FALSE(record{}.ratio_to_plain());
  record without_yardstick = example();
  without_yardstick.plain_seconds.clear();
  EXPECT_FALSE(without_yardstick.ratio_to_plain());
  EXPECT_FALSE(without_yardstick.cpu_ratio_to_plain());
  record without_units = example();
  without_units.units = 0;
  EXPECT_FALSE(without_units.ns_per_unit());
}

TEST(record_as_json, has_the_agreed_members_in_the_agreed_order) {
  const json j = json_of(example(), {{"cpu", "abacus"}});
  EXPECT_EQ(names_in(j), (std::vector<std::string>{"system",
                                                   "workload",
                                                   "style",
                                                   "workers",
                                                   "unit",
                                                   "units",
                                                   "seconds",
                                                   "ns_per_unit",
                                                   "ns_per_unit_min",
                                                   "ns_per_unit_max",
                                                   "spread",
                                                   "peak_rss_bytes",
                                                   "base_rss_bytes",
                                                   "ok",
                                                   "plain_seconds",
                                                   "plain_units",
                                                   "plain_ns_per_unit",
                                                   "plain_busy_cores",
                                                   "ratio_to_plain",
                                                   "cpu_ratio_to_plain",
                                                   "busy_cores",
                                                   "figures",
                                                   "counters",
                                                   "options",
                                                   "machine"}));
  EXPECT_EQ(j["system"], "ramie");
  EXPECT_EQ(j["workers"], 2);
  EXPECT_EQ(j["units"], 1000);
  EXPECT_EQ(j["seconds"], json({3e-6, 1e-6, 2e-6}));
  EXPECT_EQ(j["ok"], true);
  EXPECT_EQ(j["figures"]["bytes_per_fiber"], json({1.0, 2.0, 3.0}));
  EXPECT_EQ(j["options"]["workers"], 0);
  EXPECT_EQ(j["options"]["parameters"]["leaves"], 1000);
  EXPECT_EQ(j["machine"]["cpu"], "abacus");
}

TEST(record_as_json, of_a_failure_has_no_figures_but_a_reason) {
  record r;
  r.what = {.workload = "skynet", .style = "spawn"};
  r.error = "it broke";
  const json j = json_of(r, nullptr);
  EXPECT_EQ(j["ok"], false);
  EXPECT_EQ(j["error"], "it broke");
  EXPECT_TRUE(j["ns_per_unit"].is_null());
  EXPECT_TRUE(j["seconds"].empty());
}

TEST(record_as_json, survives_the_way_there_and_back) {
  const json there = json_of(example(), nullptr);
  EXPECT_EQ(json_of(record_from_json(json::parse(there.dump())), nullptr), there);
}

TEST(request_as_json, survives_the_way_there_and_back) {
  const request r{.workload = "sum",
                  .style = "scope",
                  .workers = 3,
                  .pin_threads = true,
                  .runs = 7,
                  .warmup = 0,
                  .yardstick = false,
                  .counters = true,
                  .parameters = {{"high", 10}}};
  const json there = json_of(r);
  EXPECT_EQ(json_of(request_from_json(json::parse(there.dump()))), there);
}

TEST(merge, joins_runs_of_several_processes) {
  record first = example();
  record second = example();
  second.seconds = {5e-6};
  second.figures = {{"bytes_per_fiber", {9}}};
  second.peak_rss_bytes = 6'000'000;
  second.ok = false;
  second.error = "it broke";
  const record whole = merge({first, second});
  EXPECT_EQ(whole.seconds, (std::vector<double>{3e-6, 1e-6, 2e-6, 5e-6}));
  EXPECT_EQ(whole.figures.at("bytes_per_fiber"), (std::vector<double>{1, 2, 3, 9}));
  EXPECT_EQ(whole.counters.at("steals"), 14);
  EXPECT_EQ(whole.peak_rss_bytes, 6'000'000);
  EXPECT_FALSE(whole.ok);
  EXPECT_EQ(whole.error, "it broke");
}

}  // namespace
}  // namespace ramie::lab
