// The program as a user runs it: what it prints, and how it ends.
#include <lab/harness/child.hpp>
#include <lab/harness/error.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace ramie::lab {
namespace {

using json = nlohmann::ordered_json;

child_outcome run_lab(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RAMIE_LAB_PROGRAM);
  return run_child(arguments);
}

/// With standard error instead of standard output.
child_outcome errors_of_lab(const std::string& arguments) {
  return run_child({"sh", "-c", "exec '" + std::string{RAMIE_LAB_PROGRAM} + "' " + arguments + " 2>&1 >/dev/null"});
}

std::vector<json> objects_in(const std::string& output) {
  std::vector<json> objects;
  std::istringstream lines{output};
  for (std::string line; std::getline(lines, line);) objects.push_back(json::parse(line));
  return objects;
}

TEST(ramie_lab, prints_one_object_a_line_and_nothing_else) {
  const child_outcome outcome =
      run_lab({"skynet", "--leaves", "100", "--style", "plain,fork_join", "--workers", "1,2", "--runs", "3", "--json"});
  EXPECT_EQ(outcome.exit_code, exit_fine);
  const auto objects = objects_in(outcome.output);
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(objects[0]["style"], "plain");
  EXPECT_EQ(objects[2]["workers"], 2);
  for (const json& object : objects) {
    EXPECT_EQ(object["system"], "ramie");
    EXPECT_EQ(object["units"], 111);
    EXPECT_EQ(object["seconds"].size(), 3U);
    EXPECT_EQ(object["ok"], true);
    EXPECT_GT(object["peak_rss_bytes"], 0);
    EXPECT_FALSE(object["machine"]["kernel"].empty());
  }
}

TEST(ramie_lab, prints_a_table_otherwise) {
  const child_outcome outcome = run_lab({"sum", "--high", "100", "--style", "plain,scope"});
  EXPECT_EQ(outcome.exit_code, exit_fine);
  EXPECT_NE(outcome.output.find("x plain"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("scope"), std::string::npos);
  EXPECT_NE(outcome.output.find("right"), std::string::npos);
}

TEST(ramie_lab, shows_what_was_counted_if_asked_to) {
  const std::vector<std::string> arguments{"pingpong", "--messages", "100", "--style", "actor", "--runs", "2"};
  std::vector<std::string> asked = arguments;
  asked.emplace_back("--counters");
  EXPECT_EQ(run_lab(arguments).output.find("dispatches"), std::string::npos);
  const std::string table = run_lab(asked).output;
  for (const char* name : {"counted by the runtime, 2 runs together", "dispatches", "steals_tried", "steals ", "wakes ",
                           "wakes_elsewhere", "migrations", "sleeps", "injected", "time_slices", "spares"})
    EXPECT_NE(table.find(name), std::string::npos) << name << '\n' << table;
  asked.emplace_back("--json");
  const auto objects = objects_in(run_lab(asked).output);
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_GT(objects[0].at("counters").at("dispatches"), 100);
  // There are no counters without a runtime.
  EXPECT_NE(errors_of_lab("pingpong --messages 100 --style plain --runs 1 --counters").output.find("--counters: "),
            std::string::npos);
}

TEST(ramie_lab, measures_other_placements_and_bound_threads) {
  for (const char* placement : {"stealing_no_affinity", "shared_queue", "round_robin", "dedicated"}) {
    const auto objects = objects_in(run_lab({"pingpong", "--messages", "100", "--style", "channel", "--workers", "2",
                                             "--runs", "1", "--json", "--pin-threads", "--placement", placement})
                                        .output);
    ASSERT_EQ(objects.size(), 1U);
    EXPECT_EQ(objects[0].at("ok"), true);
    EXPECT_EQ(objects[0].at("options").at("placement"), placement);
    EXPECT_EQ(objects[0].at("options").at("pin_threads"), true);
  }
}

TEST(ramie_lab, ends_with_1_if_a_result_is_wrong_and_goes_on_with_the_rest) {
  const child_outcome outcome = run_lab({"self-test", "--style", "wrong,throws,crashes,exits,right", "--json"});
  EXPECT_EQ(outcome.exit_code, exit_wrong_result);
  const auto objects = objects_in(outcome.output);
  ASSERT_EQ(objects.size(), 5U);
  EXPECT_EQ(objects[0]["ok"], false);
  EXPECT_EQ(objects[0]["error"], "wrong result from wrong");
  EXPECT_EQ(objects[1]["error"], "thrown on purpose");
  EXPECT_EQ(objects[2]["error"], "the measuring process was ended by signal 6 (Aborted)");
  EXPECT_EQ(objects[3]["error"], "the measuring process ended with exit code 0 and printed no record");
  EXPECT_EQ(objects[4]["ok"], true);
}

TEST(ramie_lab, says_what_is_wrong_with_the_command_line) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "ramie-lab: no command was given."},
      {"tea", "ramie-lab: The following argument was not expected: tea"},
      {"fib sum", "ramie-lab: The following argument was not expected: sum"},
      {"skynet --leaves", "--leaves"},
      {"skynet --leaves 12", "ramie-lab: --leaves 12: must be a power of ten\n"},
      {"skynet --style tea", "ramie-lab: --style tea: skynet has"},
      {"skynet --workers 9999", "ramie-lab: --workers 9999: must be a whole number from 0 to 1024, or all\n"},
      {"skynet --runs many", "ramie-lab: --runs many: must be a whole number"},
      {"skynet --placement anywhere", "ramie-lab: --placement anywhere: must be one of work_stealing"},
      {"skynet --stacks none", "ramie-lab: --stacks none: must be one of guarded, pooled\n"},
      {"skynet --tea", "--tea"},
      {"bench --only tea", "ramie-lab: --only tea: the bench has skynet"},
  };
  for (const auto& [arguments, complaint] : cases) {
    const child_outcome outcome = errors_of_lab(arguments);
    EXPECT_EQ(outcome.exit_code, exit_usage) << arguments;
    EXPECT_NE(outcome.output.find(complaint), std::string::npos) << arguments << '\n' << outcome.output;
  }
}

TEST(ramie_lab, helps_with_every_workload) {
  for (const char* name : {"skynet", "sum", "fib", "yield", "spawn", "memory", "idle", "bench", "list", "machine"}) {
    const child_outcome outcome = run_lab({name, "--help"});
    EXPECT_EQ(outcome.exit_code, exit_fine) << name;
    EXPECT_NE(outcome.output.find(name), std::string::npos) << outcome.output;
  }
}

TEST(ramie_lab, lists_for_programs) {
  const child_outcome outcome = run_lab({"list", "--json"});
  EXPECT_EQ(outcome.exit_code, exit_fine);
  const auto objects = objects_in(outcome.output);
  ASSERT_FALSE(objects.empty());
  EXPECT_EQ(objects[0].at("workload"), "skynet");
  EXPECT_EQ(objects[0].at("styles")[0], "plain");
  EXPECT_EQ(objects[0].at("placements")[0], "work_stealing");
  EXPECT_EQ(objects[0].at("parameters").at("leaves"), 1'000'000);
}

TEST(ramie_lab, lists_what_users_may_see) {
  const child_outcome outcome = run_lab({"list"});
  EXPECT_EQ(outcome.exit_code, exit_fine);
  EXPECT_NE(outcome.output.find("skynet"), std::string::npos);
  EXPECT_NE(outcome.output.find("fork_join"), std::string::npos);
  EXPECT_EQ(outcome.output.find("self-test"), std::string::npos);
}

TEST(ramie_lab, describes_the_machine) {
  EXPECT_TRUE(run_lab({"machine"}).ended_well());
  EXPECT_EQ(objects_in(run_lab({"machine", "--json"}).output).size(), 1U);
}

TEST(ramie_lab, bench_shows_a_table_and_keeps_the_results) {
  const auto folder = std::filesystem::path{testing::TempDir()} / ("ramie-lab-" + std::to_string(::getpid()));
  const auto file = folder / "deeper" / "results.json";
  const child_outcome outcome =
      run_lab({"bench", "--quick", "--only", "fib", "--runs", "2", "--workers", "1,2", "--output", file});
  EXPECT_EQ(outcome.exit_code, exit_fine);
  EXPECT_NE(outcome.output.find("speed-up"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("results: " + file.string() + "\n"), std::string::npos) << outcome.output;
  std::ifstream stream{file};
  const json kept = json::parse(stream);
  ASSERT_EQ(kept["results"].size(), 3U);
  EXPECT_EQ(kept["results"][2]["style"], "fork_join");
  EXPECT_EQ(kept["results"][2]["workers"], 2);
  EXPECT_EQ(kept["results"][2]["ok"], true);
  std::filesystem::remove_all(folder);
}

TEST(ramie_lab, bench_refuses_a_file_that_cannot_be_written_before_it_measures) {
  const child_outcome outcome = errors_of_lab("bench --quick --output /proc/no-such-folder/results.json");
  EXPECT_EQ(outcome.exit_code, exit_wrong_result);
  EXPECT_NE(outcome.output.find("/proc/no-such-folder"), std::string::npos) << outcome.output;
}

TEST(ramie_lab, drives_servers_of_its_own_and_of_others_alike) {
  const std::vector<std::string> load{"--connections=3", "--milliseconds=20", "--warm-up=10", "--runs=2"};
  std::vector<std::string> own{"echo", "--workers=1", "--json"};
  std::vector<std::string> other{"load", "--system=tea", "--style=cup", "--workers=1"};
  own.insert(own.end(), load.begin(), load.end());
  other.insert(other.end(), load.begin(), load.end());
  for (const char* word : {"--", RAMIE_LAB_PROGRAM, "echo_server"}) other.emplace_back(word);
  for (const auto& [words, system, style] : {std::tuple{own, "ramie", "fiber"}, std::tuple{other, "tea", "cup"}}) {
    const child_outcome outcome = run_lab(words);
    ASSERT_TRUE(outcome.ended_well()) << outcome.describe();
    const json j = objects_in(outcome.output).at(0);
    EXPECT_EQ(j.at("system"), system);
    EXPECT_EQ(j.at("style"), style);
    EXPECT_EQ(j.at("workload"), "echo");
    EXPECT_EQ(j.at("figures").at("server_cpu_ns_per_request").size(), 2U);
    EXPECT_TRUE(j.at("ok"));
  }
}

#ifdef RAMIE_LAB_CLUSTER
TEST(ramie_lab, measures_between_two_processes) {
  for (const auto& [name, more] :
       {std::pair{"across_tell", "--size=64"}, std::pair{"across_ask", "--workers=2"},
        std::pair{"across_fan_out", "--members=3"}, std::pair{"across_queue", "--fibers=4"}}) {
    const child_outcome outcome = run_lab({name, "--count=50", "--runs=2", "--json", more});
    ASSERT_TRUE(outcome.ended_well()) << name << ": " << outcome.describe();
    const json j = objects_in(outcome.output).at(0);
    EXPECT_EQ(j.at("seconds").size(), 2U) << name;
    EXPECT_TRUE(j.at("ok")) << name;
    EXPECT_EQ(j.at("units"), std::string{name} == "across_fan_out" ? 150 : 50);
    EXPECT_EQ(j.at("figures").at("processor_ns_per_unit").size(), 2U);
  }
}
#endif

TEST(ramie_lab, tells_why_a_server_could_not_be_driven) {
  const child_outcome outcome = run_lab({"load", "--", "/no/such/server"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("/no/such/server"), std::string::npos);
}

}  // namespace
}  // namespace ramie::lab
