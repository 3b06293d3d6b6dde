#include <lab/load/server_process.hpp>

#include <lab/harness/error.hpp>

#include <gtest/gtest.h>

#include <sched.h>

namespace ramie::lab {
namespace {

std::vector<int> some_core() { return split_cores(1).server; }

TEST(server_process, is_ready_when_it_has_printed_its_port) {
  const server_process server{{"/bin/sh", "-c", "echo a greeting; echo port 1234; exec sleep 1000"}, some_core()};
  EXPECT_EQ(server.port(), 1234);
  EXPECT_GE(server.cpu_seconds(), 0);
  EXPECT_GT(server.resident_bytes(), 0);
}

TEST(server_process, one_that_ends_before_is_an_error) {
  EXPECT_THROW((server_process{{"/bin/sh", "-c", "echo oops"}, some_core()}), lab_error);
  EXPECT_THROW((server_process{{"/no/such/program"}, some_core()}), lab_error);
}

TEST(server_process, cores_are_shared_only_if_there_are_too_few) {
  const std::size_t all = split_cores(CPU_SETSIZE).server.size();
  ASSERT_GE(all, 1U);
  EXPECT_EQ(split_cores(CPU_SETSIZE).driver, split_cores(CPU_SETSIZE).server);
  const core_split split = split_cores(1);
  EXPECT_EQ(split.server.size(), 1U);
  if (all > 1) {
    EXPECT_EQ(split.driver.size(), all - 1);
    EXPECT_NE(split.driver.front(), split.server.front());
  }
}

}  // namespace
}  // namespace ramie::lab
