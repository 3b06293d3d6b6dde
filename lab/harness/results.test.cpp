#include <lab/harness/results.hpp>

#include <lab/harness/error.hpp>

#include <gtest/gtest.h>

#include <sstream>

namespace ramie::lab {
namespace {

record good(const std::string& style, std::int64_t leaves, double busy_cores) {
  record r;
  r.what = {.workload = "skynet", .style = style, .runs = 1, .parameters = {{"leaves", leaves}}};
  r.workers = 1;
  r.unit = "fiber";
  r.units = 1000;
  r.seconds = {2e-6};
  r.plain_seconds = {1e-6};
  r.plain_units = 1000;
  r.busy_cores = {busy_cores};
  r.plain_busy_cores = {busy_cores / 2};
  r.ok = true;
  return r;
}

record bad(const std::string& style) {
  record r = good(style, 10, 1);
  r.seconds.clear();
  r.ok = false;
  r.error = "it broke";
  return r;
}

TEST(results_table, shows_what_varies_and_what_went_wrong) {
  record told = good("scope", 100, 1);
  told.figures = {{"bytes_per_fiber", {1, 3, 2}}};
  EXPECT_EQ(results_table({good("plain", 10, 1), told, bad("spawn")}),
            "skynet: ns a fiber, 1 run\n"
            "style  leaves  workers  ns each  least   most  x plain  x plain CPU  busy cores  peak memory  result      "
            "      also\n"
            "-----  ------  -------  -------  -----  -----  -------  -----------  ----------  -----------  "
            "----------------  ---------------------\n"
            "plain      10        1    2.000  2.000  2.000     2.00         4.00        1.00          0 B  right\n"
            "scope     100        1    2.000  2.000  2.000     2.00         4.00        1.00          0 B  right       "
            "      bytes_per_fiber 2.000\n"
            "spawn      10        1        -      -      -                              1.00          0 B  FAILED: it "
            "broke\n");
}

TEST(counters_table, shows_all_that_was_counted) {
  EXPECT_EQ(counters_table({good("plain", 10, 1)}), "");
  EXPECT_EQ(counters_table({}), "");
  record few = good("scope", 10, 1), more = good("scope", 100, 1);
  few.counters = {{"dispatches", 7}, {"steals", 0}};
  more.counters = {{"dispatches", 12345}};
  more.workers = 2;
  EXPECT_EQ(counters_table({good("plain", 10, 1), few, more}),
            "\ncounted by the runtime, 1 run\n"
            "style  leaves  workers  dispatches  steals\n"
            "-----  ------  -------  ----------  ------\n"
            "scope      10        1           7       0\n"
            "          100        2       12345\n");
  few.what.runs = 5;
  EXPECT_NE(counters_table({few}).find("5 runs together\n"), std::string::npos);
}

TEST(results, writes_json_at_once_and_a_table_at_the_end) {
  std::ostringstream lines;
  results as_json{lines, true};
  as_json.add(good("plain", 10, 1));
  EXPECT_TRUE(lines.str().starts_with("{\"system\":\"ramie\""));
  EXPECT_TRUE(lines.str().ends_with("}\n"));
  const std::string before = lines.str();
  EXPECT_EQ(as_json.finish(), exit_fine);
  EXPECT_EQ(lines.str(), before);

  std::ostringstream text;
  results as_table{text, false};
  as_table.add(good("plain", 10, 1));
  EXPECT_EQ(text.str(), "");
  EXPECT_EQ(as_table.finish(), exit_fine);
  EXPECT_EQ(text.str(), results_table(as_table.records()));
}

TEST(exit_code_for, is_bad_if_one_is) {
  EXPECT_EQ(exit_code_for({}), exit_fine);
  EXPECT_EQ(exit_code_for({good("plain", 10, 1)}), exit_fine);
  EXPECT_EQ(exit_code_for({good("plain", 10, 1), bad("spawn")}), exit_wrong_result);
}

TEST(contention_remark, speaks_up_if_one_worker_did_not_have_a_core) {
  EXPECT_EQ(contention_remark({good("plain", 10, 0.97)}), "");
  EXPECT_NE(contention_remark({good("plain", 10, 0.97), good("scope", 10, 0.5)}).find(" 50 % "), std::string::npos);
  record many = good("scope", 10, 0.5);
  many.workers = 2;
  EXPECT_EQ(contention_remark({many}), "");
}

}  // namespace
}  // namespace ramie::lab
