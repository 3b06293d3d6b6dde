// The judge of histories says which are wrong, and why.
#include "soak/history.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace {

std::string judged(std::initializer_list<const char*> lines) {
  soak::judge j;
  for (const char* line : lines) j.read(line);
  const soak::verdict v = j.decide();
  std::string all;
  for (const std::string& w : v.wrong) all += w + "\n";
  return all;
}

bool says(const std::string& verdict, const std::string& what) { return verdict.find(what) != std::string::npos; }

TEST(histories, that_are_right_pass) {
  EXPECT_EQ(judged({"S a o1", "H 10 3 7 a o1", "A a o1", "S a o2", "F a o2", "S b o3", "H 20 3 9 b o3", "H 15 4 8 b o2",
                    "A b o3", "P j1", "J j1", "J j1", "E j1", "R s 0", "R s 1", "T s 2", "R lost 0", "X a", "X b"}),
            "");
  EXPECT_EQ(judged({"S killed o9"}), "");  // its process was killed
}

TEST(histories, that_are_wrong_are_found) {
  EXPECT_TRUE(says(judged({"H 10 3 7 a o1", "H 11 3 7 b o2"}), "both had token 7"));
  // By time, not by the order in which logs are read.
  EXPECT_TRUE(says(judged({"H 20 3 7 a o1", "H 10 3 8 b o2"}), "acted with token 7 after one with 8"));
  EXPECT_FALSE(says(judged({"H 20 3 8 a o1", "H 10 3 7 b o2"}), "acted"));
  EXPECT_TRUE(says(judged({"H 10 3 7 a o1", "H 11 3 7 a o1"}), "o1 was handled twice"));
  EXPECT_TRUE(says(judged({"S a o1", "A a o1"}), "answered, and never handled"));
  EXPECT_TRUE(says(judged({"S a o1", "X a"}), "o1 never ended"));
  EXPECT_TRUE(says(judged({"P j1"}), "j1 was stored, and never handled"));
  EXPECT_TRUE(says(judged({"P j1", "J j1", "E j1", "E j1"}), "j1 is there twice"));
  EXPECT_TRUE(says(judged({"R s 0", "R s 2"}), "2 came instead of 1"));
  EXPECT_TRUE(says(judged({"R s 0", "R s 0"}), "0 came instead of 1"));
  EXPECT_TRUE(says(judged({"R s 1", "R s 0"}), "1 came instead of 0"));
  EXPECT_TRUE(says(judged({"R s 0", "T s 2"}), "2 were told, 1 came"));
  EXPECT_TRUE(says(judged({"T s 2"}), "2 were told, 0 came"));
  EXPECT_TRUE(says(judged({"R s 0", "R s 1", "R s 2", "T s 2"}), "2 were told, 3 came"));
  EXPECT_TRUE(says(judged({"S a o1", "A a o1", "H 10 3 7 a o1", "A a o1"}), "o1 ended twice"));
  EXPECT_TRUE(says(judged({"S a o1", "F a o1", "A a o1"}), "o1 ended twice"));
  EXPECT_TRUE(says(judged({"S a o1", "H 10 3 7 b o2"}), "o2 was handled, and never sent"));
  // One wrong among many that are right, whichever node wrote it, and in whichever order they are read.
  EXPECT_TRUE(
      says(judged({"H 30 1 3 c o3", "H 10 1 2 a o1", "H 40 1 2 a o4", "H 20 1 2 a o2"}), "acted with token 2 after"));
  EXPECT_EQ(judged({"H 30 1 3 c o3", "H 10 1 2 a o1", "H 25 1 2 a o4", "H 20 1 2 a o2"}), "");
  EXPECT_TRUE(says(judged({"H 10 1 2 a o1", "H 20 1 3 b o2", "H 30 1 3 c o3"}), "b and c both had token 3"));
}

TEST(histories, that_cannot_be_read_are_not_taken_for_right) {
  for (const char* line :
       {"H 10 3 7 a", "H ten 3 7 a o1", "R s", "R s x", "T s -1", "T s 99999999999999999999999", "?", ""})
    EXPECT_TRUE(says(judged({line}), "not understood")) << line;
}

}  // namespace
