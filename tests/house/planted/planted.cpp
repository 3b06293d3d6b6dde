// What verdict_test.py has to tell apart: programs with a race, a leak, a wrong value, and a failure by chance.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

TEST(planted, race) {
  int shared = 0;
  std::thread other{[&shared] { ++shared; }};
  ++shared;
  other.join();
  EXPECT_GE(shared, 1);
}

TEST(planted, leak) {
  static int* volatile kept;
  kept = new int{7};
  EXPECT_EQ(*kept, 7);
  kept = nullptr;
}

TEST(planted, wrong_value) { EXPECT_EQ(2 + 2, 5); }

/// Fails in three of ten runs, the first of them included; the file that counts the runs is given by PLANTED_RUNS. With
/// threads, as what chance fails has.
TEST(planted, chance) {
  std::thread{[] {}}.join();
  std::FILE* const runs = std::fopen(std::getenv("PLANTED_RUNS"), "a+");
  ASSERT_NE(runs, nullptr);
  int run = 0;
  while (std::fgetc(runs) != EOF) ++run;
  std::fputc('.', runs);
  std::fclose(runs);
  EXPECT_FALSE(run % 10 == 0 || run % 10 == 4 || run % 10 == 7) << "run " << run;
}

TEST(planted, nothing) { EXPECT_EQ(2 + 2, 4); }

}  // namespace
