#include <lab/harness/options.hpp>

#include <lab/harness/error.hpp>
#include <lab/workloads/registry.hpp>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ramie::lab {
namespace {

using namespace std::string_literals;

const workload& skynet() { return *find_workload("skynet"); }

std::vector<request> requests_with(const std::function<void(typed_options&)>& change) {
  typed_options typed = standard_options(skynet());
  change(typed);
  return requests_for(skynet(), typed);
}

/// The error for refused options; empty if they are accepted.
std::string complaint_about(const std::function<void(typed_options&)>& change) {
  try {
    requests_with(change);
    return {};
  } catch (const usage_error& e) {
    return e.what();
  }
}

TEST(requests_for, asks_for_every_style_by_default) {
  const auto requests = requests_with([](typed_options&) {});
  ASSERT_EQ(requests.size(), skynet().styles.size());
  EXPECT_EQ(requests.front().style, "plain");
  EXPECT_EQ(requests.front().runs, 5);
  EXPECT_EQ(requests.front().warmup, 1);
  EXPECT_TRUE(requests.front().yardstick);
  EXPECT_EQ(requests.front().parameters, (parameter_values{{"leaves", 1'000'000}}));
}

TEST(requests_for, combines_lists) {
  const auto requests = requests_with([](typed_options& typed) {
    typed.styles = "fork_join,spawn"s;
    typed.workers = "1,2,all"s;
    typed.parameters["leaves"] = "10,100"s;
  });
  ASSERT_EQ(requests.size(), 12U);
  EXPECT_EQ(requests[0].workers, 1);
  EXPECT_EQ(requests[2].workers, 0);
  EXPECT_EQ(requests[3].style, "spawn");
  EXPECT_EQ(requests[5].parameters.at("leaves"), 10);
  EXPECT_EQ(requests[6].parameters.at("leaves"), 100);
}

TEST(requests_for, measures_plain_code_once_on_its_one_thread) {
  const auto requests = requests_with([](typed_options& typed) {
    typed.styles = "plain"s;
    typed.workers = "2,4"s;
  });
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].workers, 1);
}

TEST(requests_for, says_what_styles_there_are) {
  EXPECT_EQ(complaint_about([](auto& typed) { typed.styles = "plain,tea"s; }),
            "--style tea: skynet has plain, fork_join, scope, spawn, channel, buffered, actor, all");
  EXPECT_EQ(complaint_about([](auto& typed) { typed.styles = ""s; }),
            "--style '': skynet has plain, fork_join, scope, spawn, channel, buffered, actor, all");
}

TEST(requests_for, refuses_numbers_out_of_range) {
  EXPECT_EQ(complaint_about([](auto& typed) { typed.workers = "1025"s; }),
            "--workers 1025: must be a whole number from 0 to 1024, or all");
  EXPECT_EQ(complaint_about([](auto& typed) { typed.workers = "-1"s; }),
            "--workers -1: must be a whole number from 0 to 1024, or all");
  EXPECT_EQ(complaint_about([](auto& typed) { typed.runs = "0"s; }),
            "--runs 0: must be a whole number from 1 to 100000");
  EXPECT_EQ(complaint_about([](auto& typed) { typed.warmup = "x"s; }),
            "--warmup x: must be a whole number from 0 to 100000");
  EXPECT_EQ(complaint_about([](auto& typed) { typed.parameters["leaves"] = "1e10"s; }),
            "--leaves 1e10: must be a whole number from 1 to 1000000000");
}

TEST(requests_for, refuses_values_that_the_workload_objects_to) {
  EXPECT_EQ(complaint_about([](auto& typed) { typed.parameters["leaves"] = "10,20"s; }),
            "--leaves 20: must be a power of ten");
}

TEST(add_options, takes_a_switch_with_or_without_its_value) {
  const workload& mixed = *find_workload("mixed");
  for (const auto& [arguments, value] :
       std::vector<std::pair<std::vector<std::string>, int>>{{{"--messages-only", "--runs", "2"}, 1},
                                                             {{"--messages-only"}, 1},
                                                             {{"--messages-only", "1"}, 1},
                                                             {{"--messages-only", "0"}, 0},
                                                             {{}, 0}}) {
    CLI::App command;
    typed_options typed = standard_options(mixed);
    add_options(command, mixed, typed);
    command.parse(std::vector<std::string>{arguments.rbegin(), arguments.rend()});
    for (const request& r : requests_for(mixed, typed)) EXPECT_EQ(r.parameters.at("messages-only"), value);
  }
}

TEST(requests_for, knows_placements) {
  EXPECT_EQ(complaint_about([](auto& typed) { typed.placement = "work_stealing"s; }), "");
  EXPECT_EQ(
      complaint_about([](auto& typed) { typed.placement = "anywhere"s; }),
      "--placement anywhere: must be one of work_stealing, stealing_no_affinity, dedicated, shared_queue, round_robin");
  EXPECT_EQ(complaint_about([](auto& typed) { typed.placement = "dedicated"s; }), "");
}

}  // namespace
}  // namespace ramie::lab
