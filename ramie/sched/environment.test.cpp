// Options completed from the environment, and refused with the name, the value and the range.
#include <ramie/sched/environment.hpp>

#include <ramie/base/error.hpp>
#include <ramie/machine/cpu_count.hpp>
#include <ramie/stack/pool.hpp>

#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <string>
#include <vector>

namespace ramie::detail {
namespace {

using namespace std::chrono_literals;

class environment : public ::testing::Test {
 protected:
  static constexpr const char* variables[] = {"RAMIE_WORKERS",     "RAMIE_PLACEMENT",    "RAMIE_STACK_SIZE",
                                              "RAMIE_PIN_THREADS", "RAMIE_PAINT_STACKS", "RAMIE_MIGRATE_ALWAYS",
                                              "RAMIE_SPREADING"};
  // The tests decide what the environment says, not the shell that runs them.
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* v : variables) ::unsetenv(v);
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

  /// Resolving fails with a message that has all of `parts` in it.
  template <class Options>
  static void expect_refusal(const Options& o, const std::vector<std::string>& parts) {
    try {
      static_cast<void>(resolve(o));
      ADD_FAILURE() << "taken, though it should be refused because of " << parts.front();
    } catch (const invalid_argument& e) {
      for (const std::string& part : parts)
        EXPECT_NE(std::string{e.what()}.find(part), std::string::npos) << part << " is not in: " << e.what();
    }
  }
};

TEST_F(environment, defaults) {
  const runtime_options o = resolve(runtime_options{});
  EXPECT_EQ(o.workers, std::min(usable_cpus(), 1024));
  EXPECT_EQ(o.stack_size, stack_size_default);
  EXPECT_EQ(o.placement, placement::work_stealing);
}

TEST_F(environment, empty_variables_are_none) {
  for (const char* v : variables) set(v, "");
  EXPECT_EQ(resolve(runtime_options{}).workers, std::min(usable_cpus(), 1024));
  EXPECT_EQ(resolve(runtime_options{}).stack_size, stack_size_default);
}

TEST_F(environment, workers) {
  for (const int n : {1, 2, 1024}) {
    runtime_options o;
    o.workers = n;
    EXPECT_EQ(resolve(o).workers, n);
    set("RAMIE_WORKERS", std::to_string(n));
    EXPECT_EQ(resolve(runtime_options{}).workers, n);
    o.workers = 7;
    EXPECT_EQ(resolve(o).workers, 7);  // said in the program, so the environment has no say
  }
  set("RAMIE_WORKERS", "nonsense");
  runtime_options o;
  o.workers = 3;
  EXPECT_EQ(resolve(o).workers, 3);
}

TEST_F(environment, workers_out_of_range) {
  for (const int n : {-1, 1025, INT_MAX, INT_MIN}) {
    runtime_options o;
    o.workers = n;
    expect_refusal(o, {"runtime_options::workers", " " + std::to_string(n) + ";", "from 1 to 1024"});
  }
  for (const char* text : {"0", "-1", "1025", "abc", "4x", " 4", "4 ", "+4", "1e3", "4.5", "0x10", "4K",
                           "99999999999999999999", "-99999999999999999999"}) {
    set("RAMIE_WORKERS", text);
    expect_refusal(runtime_options{}, {"RAMIE_WORKERS", text, "from 1 to 1024"});
  }
}

TEST_F(environment, switches) {
  EXPECT_FALSE(resolve(runtime_options{}).pin_threads);
  EXPECT_FALSE(resolve(runtime_options{}).paint_stacks);
  const std::pair<const char*, bool runtime_options::*> switches[] = {
      {"RAMIE_PIN_THREADS", &runtime_options::pin_threads}, {"RAMIE_PAINT_STACKS", &runtime_options::paint_stacks}};
  for (const auto& [name, which] : switches) {
    clear();
    set(name, "1");
    EXPECT_TRUE(resolve(runtime_options{}).*which);
    set(name, "0");
    EXPECT_FALSE(resolve(runtime_options{}).*which);
    runtime_options o;
    o.*which = true;
    EXPECT_TRUE(resolve(o).*which);
    for (const char* text : {"yes", "2", " 1"}) {
      set(name, text);
      expect_refusal(runtime_options{}, {name, text, "0 or 1"});
    }
  }
}

TEST_F(environment, stack_size) {
  const std::pair<const char*, std::size_t> sizes[] = {{"16384", 16384},   {"16K", 16384},         {"64k", 65536},
                                                       {"1M", 1 << 20},    {"1m", 1 << 20},        {"1024M", 1 << 30},
                                                       {"100000", 100000}, {"1073741824", 1 << 30}};
  for (const auto& [text, size] : sizes) {
    set("RAMIE_STACK_SIZE", text);
    EXPECT_EQ(resolve(runtime_options{}).stack_size, size) << text;
    runtime_options o;
    o.stack_size = 32768;
    EXPECT_EQ(resolve(o).stack_size, 32768u);
  }
}

TEST_F(environment, stack_size_out_of_range) {
  const std::string range =
      "from " + std::to_string(stack_size_min) + " to " + std::to_string(stack_size_max) + " bytes";
  for (const std::size_t n : {std::size_t{1}, stack_size_min - 1, stack_size_max + 1, ~std::size_t{0}}) {
    runtime_options o;
    o.stack_size = n;
    expect_refusal(o, {"runtime_options::stack_size", " " + std::to_string(n) + ";", range});
  }
  for (const char* text : {"0", "1", "15K", "16383", "1025M", "-16K", "16KB", "16 K", "K", "abc", "1G",
                           "99999999999999999999", "9223372036854775807K", "9007199254740993M"}) {
    set("RAMIE_STACK_SIZE", text);
    const std::string shown = std::string{text} == "15K" ? "15360" : std::string{text} == "1025M" ? "1074790400" : text;
    expect_refusal(runtime_options{}, {"RAMIE_STACK_SIZE", shown, range});
  }
}

TEST_F(environment, placement) {
  set("RAMIE_PLACEMENT", "work_stealing");
  EXPECT_EQ(resolve(runtime_options{}).placement, ramie::placement::work_stealing);
  for (const char* text : {"Work_Stealing", "stealing", "0", " work_stealing", "shared_queue", "round_robin"}) {
    set("RAMIE_PLACEMENT", text);
    expect_refusal(runtime_options{}, {"RAMIE_PLACEMENT", "\"" + std::string{text} + "\"",
                                       "one of work_stealing, stealing_no_affinity, dedicated"});
  }
}

TEST_F(environment, what_is_for_tests) {
  const auto now = [](const test_options& given = {}) { return resolve(given); };
  EXPECT_FALSE(now().migrate_always);
  EXPECT_EQ(now().spreading, spreading::automatic);
  set("RAMIE_MIGRATE_ALWAYS", "1");
  set("RAMIE_SPREADING", "at_home");
  EXPECT_TRUE(now().migrate_always);
  EXPECT_EQ(now().spreading, spreading::at_home);
  EXPECT_EQ(now({.spreading = spreading::by_waker}).spreading, spreading::by_waker) << "what the test says goes first";
  for (const char* text : {"home", "At_home", "1", "together "}) {
    set("RAMIE_SPREADING", text);
    expect_refusal(test_options{},
                   {"RAMIE_SPREADING", "\"" + std::string{text} + "\"", "one of automatic", "by_waker"});
  }
  clear();
  set("RAMIE_MIGRATE_ALWAYS", "yes");
  expect_refusal(test_options{}, {"RAMIE_MIGRATE_ALWAYS", "yes", "0 or 1"});
}

TEST_F(environment, options_for_tests_hold_for_what_is_made_in_their_life) {
  EXPECT_FALSE(with_test_options::now().migrate_always);
  {
    const with_test_options outer{{.migrate_always = true}};
    {
      const with_test_options inner{{.spreading = spreading::together}};
      EXPECT_FALSE(with_test_options::now().migrate_always);
      EXPECT_EQ(with_test_options::now().spreading, spreading::together);
    }
    EXPECT_TRUE(with_test_options::now().migrate_always);
  }
  EXPECT_FALSE(with_test_options::now().migrate_always);
}

TEST_F(environment, placement_of_no_known_kind) {
  // A value that no enumerator has must not be looked up in a table.
  for (const int n : {3, 4, 1000, -1}) {
    runtime_options o;
    o.placement = static_cast<ramie::placement>(n);
    expect_refusal(o, {"runtime_options::placement"});
  }
}

TEST_F(environment, spare_workers) {
  for (const int n : {0, 1, 256}) {
    runtime_options o;
    o.spare_workers = n;
    EXPECT_EQ(resolve(o).spare_workers, n);
  }
  for (const int n : {-1, 257, INT_MAX, INT_MIN}) {
    runtime_options o;
    o.spare_workers = n;
    expect_refusal(o, {"runtime_options::spare_workers", " " + std::to_string(n) + ";", "from 0 to 256"});
  }
}

TEST_F(environment, blocking_threads) {
  for (const int n : {1, 4096}) {
    runtime_options o;
    o.blocking_threads = n;
    EXPECT_EQ(resolve(o).blocking_threads, n);
  }
  for (const int n : {-1, 0, 4097, INT_MAX, INT_MIN}) {
    runtime_options o;
    o.blocking_threads = n;
    expect_refusal(o, {"runtime_options::blocking_threads", " " + std::to_string(n) + ";", "from 1 to 4096"});
  }
}

TEST_F(environment, stall_after) {
  for (const auto t : {1ms, 10ms, 3'600'000ms}) {
    runtime_options o;
    o.stall_after = t;
    EXPECT_EQ(resolve(o).stall_after, t);
  }
  for (const auto t : {0ms, -1ms, 3'600'001ms, std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
    runtime_options o;
    o.stall_after = t;
    expect_refusal(o, {"runtime_options::stall_after", " " + std::to_string(t.count()) + ";", "from 1 to 3600000"});
  }
}

TEST_F(environment, the_rest_stays_as_it_is) {
  runtime_options o;
  o.name = "somebody";
  o.guard = stack_guard::mprotect;
  const runtime_options r = resolve(o);
  EXPECT_EQ(r.name, "somebody");
  EXPECT_EQ(r.guard, stack_guard::mprotect);
}

}  // namespace
}  // namespace ramie::detail
