#include <lab/harness/table.hpp>

#include <gtest/gtest.h>

#include <stdexcept>

namespace ramie::lab {
namespace {

using enum table::align;

TEST(table, lines_up_words_left_and_numbers_right) {
  table t{{{"name", left}, {"ns"}}};
  t.add({"a", "1.5"});
  t.add({"longer", "12.25"});
  EXPECT_EQ(t.text(),
            "name       ns\n"
            "------  -----\n"
            "a         1.5\n"
            "longer  12.25\n");
}

TEST(table, leaves_out_repeated_names_and_empty_columns) {
  table t{{{"name", left}, {"empty"}, {"note", left}}};
  t.add({"a", "", "x"});
  t.add({"a", "", "y"});
  t.add({"b"});
  EXPECT_EQ(t.text(),
            "name  note\n"
            "----  ----\n"
            "a     x\n"
            "      y\n"
            "b\n");
}

TEST(table, refuses_rows_that_are_too_long) {
  table t{{{"one"}}};
  EXPECT_THROW(t.add({"1", "2"}), std::invalid_argument);
}

TEST(readable_bytes, chooses_the_unit) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1536), "1.5 KiB");
  EXPECT_EQ(readable_bytes(3.0 * 1024 * 1024 * 1024), "3.0 GiB");
}

TEST(readable_number, gives_four_digits) {
  EXPECT_EQ(readable_number(0), "0");
  EXPECT_EQ(readable_number(1.23456), "1.235");
  EXPECT_EQ(readable_number(71.2345), "71.23");
  EXPECT_EQ(readable_number(1240000.4), "1240000");
  EXPECT_EQ(readable_number(0.0031234), "0.003123");
}

}  // namespace
}  // namespace ramie::lab
