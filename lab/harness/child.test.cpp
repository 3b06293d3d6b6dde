#include <lab/harness/child.hpp>

#include <lab/harness/error.hpp>

#include <gtest/gtest.h>

#include <csignal>

namespace ramie::lab {
namespace {

TEST(run_child, collects_standard_output) {
  const child_outcome outcome = run_child({"sh", "-c", "echo one; echo two"});
  EXPECT_TRUE(outcome.ended_well());
  EXPECT_EQ(outcome.output, "one\ntwo\n");
}

TEST(run_child, passes_arguments_unchanged) {
  EXPECT_EQ(run_child({"printf", "%s|", "a b", "$HOME", "\"'"}).output, "a b|$HOME|\"'|");
}

TEST(run_child, takes_more_output_than_a_pipe_holds) {
  EXPECT_EQ(run_child({"sh", "-c", "yes | head -c 300000"}).output.size(), 300'000U);
}

TEST(run_child, tells_exit_code_and_signal) {
  const child_outcome code = run_child({"sh", "-c", "exit 3"});
  EXPECT_EQ(code.exit_code, 3);
  EXPECT_FALSE(code.ended_well());
  EXPECT_EQ(code.describe(), "ended with exit code 3");
  const child_outcome signal = run_child({"sh", "-c", "kill -ABRT $$"});
  EXPECT_EQ(signal.signal, SIGABRT);
  EXPECT_FALSE(signal.ended_well());
  EXPECT_EQ(signal.describe(), "was ended by signal 6 (Aborted)");
}

TEST(run_child, refuses_what_cannot_be_started) { EXPECT_THROW(run_child({"/no/such/program"}), lab_error); }

}  // namespace
}  // namespace ramie::lab
