#include <lab/harness/memory.hpp>

#include <lab/harness/opaque.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace ramie::lab {
namespace {

TEST(read_memory_use, sees_memory_that_is_touched) {
  constexpr std::int64_t size = 64 << 20;
  constexpr std::int64_t tolerance = 8 << 20;
  memory_use before, after;
  for (int i = 0; i < 10; ++i) {  // a machine that is short of memory may take some of it away meanwhile
    before = read_memory_use();
    std::vector<char> block(size);
    std::memset(opaque(block.data()), 1, block.size());  // memory that is never read may be optimised away
    after = read_memory_use();
    if (std::abs(after.resident_bytes - before.resident_bytes - size) <= tolerance) break;
  }
  EXPECT_NEAR(static_cast<double>(after.resident_bytes - before.resident_bytes), size, tolerance);
  EXPECT_GE(after.peak_resident_bytes, before.resident_bytes + size - tolerance);
  EXPECT_GT(after.page_table_bytes, 0);
}

TEST(available_memory, is_some) { EXPECT_GT(available_memory(), 0); }

}  // namespace
}  // namespace ramie::lab
