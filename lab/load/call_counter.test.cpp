#include <lab/load/call_counter.hpp>

#include <lab/harness/error.hpp>
#include <lab/load/server_process.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace ramie::lab {
namespace {

TEST(call_counter, counts_the_calls_of_another_process) {
  if (std::system("strace -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "strace is not installed";
  const server_process server{{"/bin/sh", "-c", "echo port 1234; while kill -0 $$; do :; done"}, split_cores(1).server};
  call_counter counter{server.pid()};
  const double before = server.cpu_seconds();
  while (server.cpu_seconds() < before + 0.05) {
  }
  EXPECT_GT(counter.stop(), 0);
  // And lets it go on.
  const double after = server.cpu_seconds();
  while (server.cpu_seconds() <= after) {
  }
}

TEST(call_counter, one_that_does_not_exist_is_an_error) { EXPECT_THROW(call_counter{0x3fffffff}, lab_error); }

}  // namespace
}  // namespace ramie::lab
