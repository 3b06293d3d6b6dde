#include <lab/harness/numbers.hpp>

#include <lab/harness/error.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace ramie::lab {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

std::int64_t parse(std::string_view text) { return parse_number("--n", text, 0, most); }

TEST(parse_number, reads_the_ways_people_write_numbers) {
  EXPECT_EQ(parse("0"), 0);
  EXPECT_EQ(parse("250000"), 250000);
  EXPECT_EQ(parse(" 7 "), 7);
  EXPECT_EQ(parse("1e6"), 1'000'000);
  EXPECT_EQ(parse("64k"), 64'000);
  EXPECT_EQ(parse("2M"), 2'000'000);
  EXPECT_EQ(parse("9223372036854775807"), most);
}

TEST(parse_number, refuses_what_is_no_whole_number) {
  for (const char* text : {"", " ", "x", "1.5", "1x", "1e", "e6", "1e-1", "1e99", "0x10", "--1", "1 000", "k",
                           "9223372036854775808", "10e18"}) {
    EXPECT_THROW(parse(text), usage_error) << '"' << text << '"';
  }
}

TEST(parse_number, refuses_what_is_out_of_range_and_names_option_value_and_range) {
  EXPECT_EQ(parse_number("--n", "1", 1, 10), 1);
  EXPECT_EQ(parse_number("--n", "10", 1, 10), 10);
  EXPECT_THROW(parse_number("--n", "0", 1, 10), usage_error);
  try {
    parse_number("--n", "11", 1, 10);
    FAIL() << "11 was taken";
  } catch (const usage_error& e) {
    EXPECT_STREQ(e.what(), "--n 11: must be a whole number from 1 to 10");
  }
}

TEST(parse_numbers, reads_lists) {
  EXPECT_EQ(parse_numbers("--n", "1,10, 1k", 0, most), (std::vector<std::int64_t>{1, 10, 1000}));
  EXPECT_THROW(parse_numbers("--n", "1,,2", 0, most), usage_error);
  EXPECT_THROW(parse_numbers("--n", "1,", 0, most), usage_error);
}

TEST(split_list, keeps_empty_parts) {
  EXPECT_EQ(split_list("a, b,,c"), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split_list(""), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace ramie::lab
